"""Words with a meaning for our code: keys of labels and annotations, and the enums of schemas."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

_KEY = re.compile(r'"([a-z.]*(?:kruise|kubernetes)\.io/[a-z0-9-]+)"')
_WORD = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)*\b")


@cache
def known_keys() -> Sequence[str]:
    """Return the keys of labels and annotations in the sources of the services and of their shared packages."""
    services = {point.module.partition(".")[0] for point in entry_points(group="flotilla.services")}
    folders = [folder for package in ("flotilla_common", *services) for folder in _folders(package)]
    sources = (file.read_text() for folder in folders for file in folder.rglob("*.py"))
    return sorted({key for source in sources for key in _KEY.findall(source)})


@cache
def vocabulary(description: str) -> Sequence[str]:
    """Return the words that a description names as values, as "In, NotIn, Exists or DoesNotExist"."""
    found = [word for word in _WORD.findall(description) if not description.startswith(word) or "," in description]
    return found if len(found) > 1 else ()


def _folders(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []
