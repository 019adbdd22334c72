"""Names for objects that this service makes."""

import hashlib
from collections.abc import Container
from itertools import count

LONGEST = 253
DIGITS = 6


def free_name(prefix: str, seed: str, taken: Container[str]) -> str:
    """`<prefix>-<digits>`: always the same for a seed, so that whoever wants the object makes one only; another while
    the name is taken by something else."""
    names = (
        f"{prefix[: LONGEST - DIGITS - 1]}-{hashlib.sha256(f'{seed}{salt}'.encode()).hexdigest()[:DIGITS]}"
        for salt in count()
    )
    return next(name for name in names if name not in taken)
