"""Decides what a DELETE does to an object: mark it, shorten its grace period, leave it to finalizers, or remove it."""

from datetime import UTC, datetime, timedelta

import msgspec

from flotilla_common.api.documents import Json, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.model.containers import ENDED

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
"""Finalizers that ask the garbage collector to act before the object goes."""


class Rules:
    """The default deletion rules of a kind."""

    graceful = False
    """True if deletion always marks the object first, even if nothing keeps it."""
    orphans = False
    """True if deletion without a propagation policy orphans dependents."""

    def held(self, document: Json) -> bool:
        """Report whether something other than metadata.finalizers keeps an object that is being deleted."""
        return False

    def terminating(self, document: Json) -> Json:
        """Return an object whose deletion has just begun."""
        return document

    def grace(self, document: Json, wanted: int | None) -> int:
        """Return the seconds between the deletion and the end of the object."""
        return 0


class PodRules(Rules):
    """Rules of pods: they get time to end if they run on a node."""

    graceful = True

    def grace(self, document: Json, wanted: int | None) -> int:
        spec = member(document, "spec")
        period = int(spec.get("terminationGracePeriodSeconds", 30)) if wanted is None else wanted
        ends_at_once = not spec.get("nodeName") or member(document, "status").get("phase") in ENDED
        return 0 if ends_at_once else 1 if period < 0 else period


class Fate(msgspec.Struct, frozen=True):
    """The decision: the marked object to store, if any, and whether the object ends now."""

    marked: Json | None
    ends: bool


def decide(rules: Rules, document: Json, options: Json, now: datetime) -> Fate:
    """Decide what becomes of the object, by gracePeriodSeconds and propagationPolicy in `options`."""
    metadata = document["metadata"]
    seconds = options.get("gracePeriodSeconds")
    policy = options.get("propagationPolicy") or ("Orphan" if rules.orphans else None)
    finalizers = _finalizers(metadata.get("finalizers", []), policy)
    if "deletionTimestamp" in metadata:
        return _again(rules, _with_finalizers(document, finalizers), document, seconds)
    grace = rules.grace(document, seconds)
    held = bool(finalizers) or rules.held(document)
    if not rules.graceful and not held:
        return Fate(None, ends=True)
    changes: Json = {
        "deletionTimestamp": rfc3339(now + timedelta(seconds=grace)),
        "deletionGracePeriodSeconds": grace,
    }
    if metadata.get("generation"):
        changes["generation"] = metadata["generation"] + 1
    document = _with_finalizers(document, finalizers)
    marked = document | {"metadata": document["metadata"] | changes}
    return Fate(rules.terminating(marked), ends=not held and not grace)


def ended(rules: Rules, document: Json) -> bool:
    """Report whether an update has removed the last finalizer of an object whose grace period is over."""
    metadata = document["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not rules.held(document)
    )


def _again(rules: Rules, document: Json, stored: Json, seconds: int | None) -> Fate:
    """Decide on a repeated DELETE: it can shorten the grace period and change the propagation policy."""
    metadata = document["metadata"]
    left = metadata.get("deletionGracePeriodSeconds") or 0
    held = bool(metadata.get("finalizers")) or rules.held(document)
    if not rules.graceful or not left:
        return Fate(None if document == stored else document, ends=not held)
    if seconds is None or rules.grace(document, seconds) >= left:
        return Fate(None, ends=False)
    until = datetime.strptime(metadata["deletionTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    shorter = rules.grace(document, seconds)
    moment = rfc3339(until - timedelta(seconds=left - shorter))
    marked = metadata | {"deletionTimestamp": moment, "deletionGracePeriodSeconds": shorter}
    return Fate(document | {"metadata": marked}, ends=not held and not shorter)


def _with_finalizers(document: Json, finalizers: list[str]) -> Json:
    rest = {key: value for key, value in document["metadata"].items() if key != "finalizers"}
    return document | {"metadata": rest | ({"finalizers": finalizers} if finalizers else {})}


def _finalizers(present: list[str], policy: str | None) -> list[str]:
    """Return the finalizers with that of the propagation policy."""
    if policy is None:
        return present
    others = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    asked = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    return [*others, *asked]
