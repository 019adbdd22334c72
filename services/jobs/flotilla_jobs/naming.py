"""Names for objects that this service creates."""

import hashlib
from collections.abc import Container
from itertools import count

LONGEST = 253
DIGITS = 6


def free_name(prefix: str, seed: str, taken: Container[str]) -> str:
    """Return `<prefix>-<digits>`, the same for a seed as long as the name is free.

    So all who need the object create only one.
    """
    names = (
        f"{prefix[: LONGEST - DIGITS - 1]}-{hashlib.sha256(f'{seed}{salt}'.encode()).hexdigest()[:DIGITS]}"
        for salt in count()
    )
    return next(name for name in names if name not in taken)
