"""The apiserver's version, as far as in-place updates depend on it (common.md §9.7)."""

import re
from functools import lru_cache

_RESIZE_SUBRESOURCE = (1, 32)


@lru_cache(maxsize=8)
def has_resize_subresource(git_version: str) -> bool:
    """Whether cpu and memory are changed through pods/resize. A version that nobody can read counts as old."""
    parts = git_version.removeprefix("v").split(".")
    numbers = [re.match(r"\d+", part) for part in parts[:2]]
    read = tuple(int(number[0]) for number in numbers if number is not None)
    return len(read) == 2 and read >= _RESIZE_SUBRESOURCE
