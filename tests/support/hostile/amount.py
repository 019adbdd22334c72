"""How many hostile objects a test tries."""

import os

_KNOB = "FLOTILLA_HOSTILE"


def amount(usual: int) -> int:
    """Return the number that FLOTILLA_HOSTILE says, as the nightly run does, or the usual one."""
    return int(os.environ.get(_KNOB) or usual)


def is_nightly() -> bool:
    """Return whether somebody has said how many."""
    return bool(os.environ.get(_KNOB))
