"""Applies the actions of plans to objects, by the apiserver's rules that matter to plans.

These are: merging of patches, subresources, generations, graceful deletion, finalizers.
"""

import hashlib
from collections.abc import Callable

import msgspec

from flotilla_common.api import documents, strategic
from flotilla_common.api.documents import Json
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import CLAIM, POD, Resource
from flotilla_common.control.plan import Action, Create, Delete, Patch, PatchType
from flotilla_common.model import deletion
from flotilla_common.model.store import Objects, cleaned, kept, spec_of

_CREATED: dict[Resource, tuple[Json, Json]] = {
    POD: ({}, {"status": {"phase": "Pending"}}),
    CLAIM: ({"finalizers": ["kubernetes.io/pvc-protection"]}, {"status": {"phase": "Pending"}}),
}
"""Additions of the apiserver to the metadata and to the rest of new objects."""

_RULES: dict[Resource, deletion.Rules] = {POD: deletion.PodRules()}
_USUAL = deletion.Rules()


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
    if deletion.ended(_RULES.get(resource, _USUAL), after):
        objects.remove(resource, after)
        return None
    return objects.put(resource, after)


def delete(objects: Objects, resource: Resource, held: Json, options: Json) -> Json | None:
    """Delete the object. Return the marked object if finalizers or a grace period keep it, else None."""
    fate = deletion.decide(_RULES.get(resource, _USUAL), held, options, objects.clock.now())
    if fate.ends:
        objects.remove(resource, held)
        return None
    return held if fate.marked is None else objects.put(resource, fate.marked)
