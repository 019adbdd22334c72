"""What a DELETE does to an object: mark it, shorten its time, hand it to finalizers, or end it."""

from datetime import UTC, datetime, timedelta

import msgspec

from flotilla_common.api.documents import member
from flotilla_common.api.meta import rfc3339
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.errors import conflict
from tests.simulation.apiserver.kinds.base import Kind

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
"""Finalizers by which the garbage collector is asked to do something before the object goes."""


_PRECONDITIONS = (
    ("uid", "UID", "deleted and then recreated"),
    ("resourceVersion", "ResourceVersion", "modified"),
)


class Fate(msgspec.Struct, frozen=True):
    """The decision: the marked object if it is to be stored, and whether the object ends now."""

    marked: Json | None
    ends: bool


def check_preconditions(kind: Kind, document: Json, options: Json) -> None:
    """The object must be the one that was meant. ApiError 409."""
    wanted, metadata = member(options, "preconditions"), document["metadata"]
    for key, told, happened in _PRECONDITIONS:
        if wanted.get(key) and wanted[key] != metadata[key]:
            asked, found = f"the {told} in the precondition ({wanted[key]})", f"the {told} in record ({metadata[key]})"
            why = f"{asked} does not match {found}. The object might have been {happened}"
            group = f".{kind.resource.group}" if kind.resource.group else ""
            raise conflict(f"{kind.resource.kind}{group}", metadata["name"], why)


def decide(kind: Kind, document: Json, options: Json, now: datetime) -> Fate:
    """What becomes of the object."""
    metadata = document["metadata"]
    seconds = options.get("gracePeriodSeconds")
    policy = options.get("propagationPolicy") or ("Orphan" if kind.orphans else None)
    finalizers = _finalizers(metadata.get("finalizers", []), policy)
    if "deletionTimestamp" in metadata:
        return _again(kind, _with_finalizers(document, finalizers), document, seconds)
    grace = kind.grace(document, seconds)
    held = bool(finalizers) or kind.held(document)
    if not kind.graceful and not held:
        return Fate(None, ends=True)
    changes: Json = {
        "deletionTimestamp": rfc3339(now + timedelta(seconds=grace)),
        "deletionGracePeriodSeconds": grace,
    }
    if metadata.get("generation"):
        changes["generation"] = metadata["generation"] + 1
    document = _with_finalizers(document, finalizers)
    marked = document | {"metadata": document["metadata"] | changes}
    return Fate(kind.terminating(marked), ends=not held and not grace)


def _again(kind: Kind, document: Json, stored: Json, seconds: int | None) -> Fate:
    """A deletion under way can be made shorter, and be asked for in another way."""
    metadata = document["metadata"]
    left = metadata.get("deletionGracePeriodSeconds") or 0
    held = bool(metadata.get("finalizers")) or kind.held(document)
    if not kind.graceful or not left:
        return Fate(None if document == stored else document, ends=not held)
    if seconds is None or kind.grace(document, seconds) >= left:
        return Fate(None, ends=False)
    until = datetime.strptime(metadata["deletionTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    shorter = kind.grace(document, seconds)
    moment = rfc3339(until - timedelta(seconds=left - shorter))
    marked = metadata | {"deletionTimestamp": moment, "deletionGracePeriodSeconds": shorter}
    return Fate(document | {"metadata": marked}, ends=not held and not shorter)


def _with_finalizers(document: Json, finalizers: list[str]) -> Json:
    rest = {key: value for key, value in document["metadata"].items() if key != "finalizers"}
    return document | {"metadata": rest | ({"finalizers": finalizers} if finalizers else {})}


def _finalizers(present: list[str], policy: str | None) -> list[str]:
    """The finalizers with the one that the propagation policy asks for."""
    if policy is None:
        return present
    others = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    asked = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    return [*others, *asked]


def ended(kind: Kind, document: Json) -> bool:
    """An update has taken the last finalizer of an object whose time is over."""
    metadata = document["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not kind.held(document)
    )
