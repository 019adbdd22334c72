"""Carry out the actions of plans on objects, by the rules of the apiserver that matter to plans: merging of
patches, subresources, generations, graceful deletion, finalizers."""

import hashlib
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.documents import Json, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Action, Create, Delete, Patch, PatchType
from flotilla_common.model import patches, strategic
from flotilla_common.model.store import Objects

DEFAULT_GRACE = 30
"""Seconds that a pod gets to end when it does not say otherwise."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One action carried out, and the object before and after it."""

    action: Action
    before: Json | None = None
    after: Json | None = None
    problem: str = ""  # why it was refused

    @property
    def effective(self) -> bool:
        """It changed something."""
        return self.before != self.after


def carry_out(objects: Objects, action: Action) -> Write:
    """Do what the action says."""
    held = objects.get(action.resource, action.namespace, action.name)
    match action:
        case Create():
            if held is not None:
                name = f"{action.resource.plural} {action.name!r}"
                return Write(action=action, before=held, after=held, problem=f"{name} already exists")
            return Write(action=action, after=objects.put(action.resource, _created(action, objects.clock.now())))
        case Patch():
            if held is None:
                return Write(action=action, problem="it does not exist")
            after = patched(held, action)
            return Write(action=action, before=held, after=_stored(objects, action, held, after))
        case Delete():
            return Write(action=action, before=held, after=_deleted(objects, action, held))


def patched(held: Json, patch: Patch) -> Json:
    """The object with the patch applied to it, or to its subresource."""
    body = {key: value for key, value in patch.body.items() if key not in ("apiVersion", "kind")}
    merge = strategic.merge if patch.patch_type is PatchType.STRATEGIC else patches.merge
    wanted: Json = merge(held, body)
    metadata = _kept(wanted["metadata"], held["metadata"])
    parts = ("status",) if patch.subresource == "status" else tuple(wanted.keys() - {"metadata", "status"})
    result = held | {"metadata": metadata} | {key: wanted[key] for key in parts if key in wanted}
    if "generation" in metadata and any(result.get(key) != held.get(key) for key in parts if key != "status"):
        result["metadata"] = metadata | {"generation": metadata["generation"] + 1}
    return result


def _kept(wanted: Json, held: Json) -> Json:
    """Metadata as it can be written: the apiserver looks after these members itself."""
    own = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields")
    changed = {key: value for key, value in wanted.items() if key not in own and value is not None}
    return changed | {key: held[key] for key in own if key in held}


def _stored(objects: Objects, action: Action, held: Json, after: Json) -> Json | None:
    if after == held:
        return held
    stored = objects.put(action.resource, after)
    return _let_go(objects, action, stored)


def _let_go(objects: Objects, action: Action, document: Json) -> Json | None:
    """An object on its way out is gone with its last finalizer; a pod ends first."""
    metadata = document["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers") or action.resource == POD:
        return document
    objects.remove(action.resource, document)
    return None


def _created(action: Create, now: datetime) -> Json:
    """The uid is made of the name, so that the same plan always tells the same story."""
    place = f"{action.resource.id}/{action.namespace}/{action.name}/{now.isoformat()}"
    metadata = {key: value for key, value in action.body["metadata"].items() if value is not None} | {
        "uid": f"model-{hashlib.sha256(place.encode()).hexdigest()[:16]}",
        "creationTimestamp": rfc3339(now),
        "generation": 1,
    }
    document = action.body | {"metadata": metadata}
    return document | {"status": {"phase": "Pending"}} if action.resource == POD else document


def _deleted(objects: Objects, action: Delete, held: Json | None) -> Json | None:
    """Marked, when somebody has to let go of it first; else gone."""
    if held is None:
        return None
    metadata, now = held["metadata"], objects.clock.now()
    if "deletionTimestamp" in metadata:
        return held
    grace = _grace(held) if action.resource == POD else 0
    if not grace and not metadata.get("finalizers"):
        objects.remove(action.resource, held)
        return None
    marks = {"deletionTimestamp": rfc3339(now + timedelta(seconds=grace)), "deletionGracePeriodSeconds": grace}
    return objects.put(action.resource, held | {"metadata": metadata | marks})


def _grace(pod: Json) -> int:
    """Seconds; none for a pod that runs nowhere, or not any more."""
    over = member(pod, "status").get("phase") in ("Succeeded", "Failed")
    spec = member(pod, "spec")
    return 0 if over or not spec.get("nodeName") else int(spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE))
