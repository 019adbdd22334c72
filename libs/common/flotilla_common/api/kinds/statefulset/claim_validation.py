"""Validates changes of a StatefulSet's claim templates (statefulset.md §3.3)."""

from collections.abc import Mapping

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.admission.fields import Fault, forbidden, invalid
from flotilla_common.api.admission.handlers import Tools
from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import STORAGE_CLASS

PATH = "spec.volumeClaimTemplates"

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


async def claim_fault(document: Json, old: Json, tools: Tools) -> Fault | None:
    """Return the first change of the templates that claims cannot follow, or None.

    The old update strategy counts: a request that enables resizing may change the templates a last time. Raises
    ApiError and Unreachable.
    """
    strategy = member(old, "spec", "volumeClaimUpdateStrategy").get("type")
    if strategy in (None, "", "OnDelete") or not tools.gates.on("StatefulSetAutoResizePVCGate"):
        return None
    claims, before = (mappings(member(one, "spec").get("volumeClaimTemplates")) for one in (document, old))
    if len(claims) != len(before):
        return invalid(PATH, claims, "volumeClaimTemplates can not be added or deleted")
    known = {_name(claim): claim for claim in before}
    for claim in claims:
        if fault := _shape_fault(claim, known) or await _growth_fault(claim, known[_name(claim)], tools):
            return fault
    return None


def _shape_fault(claim: Json, known: Mapping[str, Json]) -> Fault | None:
    path = f"{PATH}[{_name(claim)}]"
    old = known.get(_name(claim))
    if old is None:
        return forbidden(f"{path}.name", "volumeClaimTemplate name can not be modified")
    spec, before = member(claim, "spec"), member(old, "spec")
    classes = [one["storageClassName"] for one in (spec, before) if one.get("storageClassName") is not None]
    if len(set(classes)) > 1:
        return invalid(path, claim, "storageClassName can not be modified")
    if (spec.get("accessModes") or []) != (before.get("accessModes") or []):
        return invalid(path, claim, "accessModes can not be modified")
    return None


async def _growth_fault(claim: Json, old: Json, tools: Tools) -> Fault | None:
    """Return a fault if the size changes, up or down, and the storage class does not support expansion."""
    if _size(claim) == _size(old):
        return None
    path, name = f"{PATH}[{_name(claim)}].spec", member(claim, "spec").get("storageClassName")
    storage = await (_default_class(tools) if name is None else _class(tools, name))
    if storage is None:
        return None if name is None else invalid(f"{path}.storageClassName", name, f"can not get sc {name}")
    if storage.get("allowVolumeExpansion") is False:
        title = text(member(storage, "metadata").get("name"))
        detail = f"storage class {title} does not support volume expansion"
        return forbidden(f"{path}.resources.requests.storage", detail)
    return None


async def _class(tools: Tools, name: str) -> Json | None:
    """Return the class of that name, or None. An empty name means no class."""
    stored = await found_or_none(tools.read(STORAGE_CLASS, "", name)) if name else None
    return None if stored is None else msgspec.json.decode(stored, type=Json)


async def _default_class(tools: Tools) -> Json | None:
    """Return the newest class that is marked as default, or None."""
    classes = [msgspec.json.decode(body, type=Json) for body in await tools.read_all(STORAGE_CLASS)]
    defaults = [one for one in classes if _annotations(one).get(_DEFAULT_CLASS) == "true"]
    return max(defaults, key=lambda one: text(member(one, "metadata").get("creationTimestamp")), default=None)


def _annotations(document: Json) -> dict[str, str]:
    return strings(member(document, "metadata").get("annotations"))


def _name(claim: Json) -> str:
    return text(member(claim, "metadata").get("name"))


def _size(claim: Json) -> list[str]:
    """Return request and limit of storage, in canonical form; unreadable ones were refused before."""
    resources = member(claim, "spec", "resources")
    return [quantity.canonical(mapping(resources.get(kind)).get("storage") or 0) for kind in ("requests", "limits")]
