"""The outcomes of writes, in words for the user who asked for them."""

import msgspec

from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_console.blocks.types import Tone

STALE = (
    "The object was changed after the form was shown, so nothing was done. "
    "Look at the changes, and preview the action again."
)


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one request: an HTTP status, and what it means."""

    status: int
    tone: Tone
    text: str
    done: bool = False
    """The change was made."""


def refused(error: Exception) -> Outcome:
    """Return the outcome of a request that failed with ApiError, Unreachable or TimeoutError."""
    if isinstance(error, ApiError):
        return _answered(error)
    if isinstance(error, Unreachable) and not error.sent:
        return Outcome(503, "bad", f"The apiserver was not reached, so nothing was done: {error}")
    return Outcome(
        504,
        "bad",
        "The apiserver did not answer in time. It is not known whether the change was made: "
        f"look at the object before you try again. ({error or 'timeout'})",
    )


def _answered(error: ApiError) -> Outcome:
    if error.code == 401:
        return Outcome(401, "bad", f"The apiserver does not accept your identity: {error.message}")
    if _is_by_admission(error):
        return Outcome(422, "bad", f"Admission refused this change, so nothing was done: {error.message}")
    if error.code == 403:
        return Outcome(403, "bad", f"You may not do this: {error.message}")
    if error.code == 404:
        return Outcome(404, "bad", f"It does not exist any more: {error.message}")
    if error.code == 409:
        return Outcome(409, "warn", f"{STALE} ({error.message})")
    if error.code == 429:
        return Outcome(429, "warn", f"The apiserver refuses this for now; try again later: {error.message}")
    if error.code >= 500:
        return Outcome(
            502,
            "bad",
            f"The apiserver failed. Look at the object before you try again: {error.message}",
        )
    return Outcome(422, "bad", f"The apiserver refused this change, so nothing was done: {error.message}")


def _is_by_admission(error: ApiError) -> bool:
    """Report whether an admission webhook or policy refused it: the right itself was there."""
    return "admission webhook" in error.message or "ValidatingAdmissionPolicy" in error.message
