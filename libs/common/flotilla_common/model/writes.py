"""Applies the actions of plans to objects, by the apiserver's rules that matter to plans.

These are: merging of patches, subresources, generations, graceful deletion, finalizers.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from flotilla_common.api import documents, strategic
from flotilla_common.api.documents import Json, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import CLAIM, POD, Resource
from flotilla_common.control.plan import Action, Create, Delete, Patch, PatchType
from flotilla_common.model.kubelet import ENDED
from flotilla_common.model.store import Objects, cleaned, kept, spec_of

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


_CREATED: dict[Resource, tuple[Json, Json]] = {
    POD: ({}, {"status": {"phase": "Pending"}}),
    CLAIM: ({"finalizers": ["kubernetes.io/pvc-protection"]}, {"status": {"phase": "Pending"}}),
}
"""Additions of the apiserver to the metadata and to the rest of new objects."""

_RULES: dict[Resource, Rules] = {POD: PodRules()}
_USUAL = Rules()


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was carried out, and the object before and after it."""

    action: Action
    before: Json | None = None
    after: Json | None = None
    problem: str = ""  # why it was refused

    @property
    def effective(self) -> bool:
        """Report whether the action changed something."""
        return self.before != self.after


Admit = Callable[[Resource, Json, Json | None], Json]
"""Returns a new object, or an update of the stored one, with the additions of admission."""


def _as_it_is(_resource: Resource, document: Json, _old: Json | None) -> Json:
    return document


def carry_out(objects: Objects, action: Action, admit: Admit = _as_it_is) -> Write:
    """Carry out the action."""
    resource, held = action.resource, objects.get(action.resource, action.namespace, action.name)
    match action:
        case Create():
            if held is not None:
                name = f"{resource.plural} {action.name!r}"
                return Write(action=action, before=held, after=held, problem=f"{name} already exists")
            return Write(action=action, after=create(objects, resource, admit(resource, action.body, None)))
        case Patch():
            if held is None:
                return Write(action=action, problem="it does not exist")
            wanted = patched(held, action)
            if not action.subresource:
                wanted = admit(resource, wanted, held)
            return Write(action=action, before=held, after=store(objects, resource, held, wanted))
        case Delete():
            after = None if held is None else delete(objects, resource, held, {})
            return Write(action=action, before=held, after=after)


def create(objects: Objects, resource: Resource, body: Json) -> Json:
    """Store a new object. Its uid is derived from its name, so that the same plan always gives the same result."""
    now, meta = objects.clock.now(), cleaned(body["metadata"])
    place = f"{resource.id}/{meta.get('namespace', '')}/{meta['name']}/{now.isoformat()}"
    own = {"uid": f"model-{hashlib.sha256(place.encode()).hexdigest()[:16]}", "creationTimestamp": rfc3339(now)}
    more, rest = _CREATED.get(resource, ({}, {}))
    return objects.put(resource, body | {"metadata": more | meta | own | {"generation": 1}} | rest)


def patched(held: Json, patch: Patch) -> Json:
    """Return the object with the patch applied, or with its subresource patched."""
    body = {key: value for key, value in patch.body.items() if key not in ("apiVersion", "kind")}
    merge = strategic.merge if patch.patch_type is PatchType.STRATEGIC else documents.merge
    wanted: Json = merge(held, body)
    parts = ("status",) if patch.subresource == "status" else tuple(spec_of(wanted))
    result = held | {"metadata": kept(wanted["metadata"], held["metadata"])}
    return result | {key: wanted[key] for key in parts if key in wanted}


def store(objects: Objects, resource: Resource, held: Json, after: Json) -> Json | None:
    """Store an update, with a new generation if the spec changed. Return the object, or None if it ended."""
    after = after | {"metadata": kept(after["metadata"], held["metadata"])}
    generation = held["metadata"].get("generation")
    if generation and spec_of(after) != spec_of(held):
        after["metadata"]["generation"] = generation + 1
    if after == held:
        return held
    if ended(_RULES.get(resource, _USUAL), after):
        objects.remove(resource, after)
        return None
    return objects.put(resource, after)


def delete(objects: Objects, resource: Resource, held: Json, options: Json) -> Json | None:
    """Delete the object. Return the marked object if finalizers or a grace period keep it, else None."""
    fate = decide(_RULES.get(resource, _USUAL), held, options, objects.clock.now())
    if fate.ends:
        objects.remove(resource, held)
        return None
    return held if fate.marked is None else objects.put(resource, fate.marked)
