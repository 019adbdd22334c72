"""The number of hostile objects that a test tries."""

import os

_KNOB = "FLOTILLA_HOSTILE"


def amount(usual: int) -> int:
    """Return the number set by FLOTILLA_HOSTILE, as in the nightly run, or the usual one."""
    return int(os.environ.get(_KNOB) or usual)


def is_nightly() -> bool:
    """Report whether FLOTILLA_HOSTILE sets a number."""
    return bool(os.environ.get(_KNOB))
