"""The five characters at the end of names that look random, and are derived from what exists: a plan that is made twice
from the same view plans the same names, so that a repeated create meets its own object."""

import hashlib

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, and no digits that look like letters: they spell no words."""
LENGTH = 5


def suffix(seed: bytes, attempt: int) -> str:
    """Five characters for a seed. `attempt`: those of earlier attempts are taken."""
    number = int.from_bytes(hashlib.sha256(seed + attempt.to_bytes(8)).digest()[:8])
    characters: list[str] = []
    for _ in range(LENGTH):
        number, index = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[index])
    return "".join(characters)
