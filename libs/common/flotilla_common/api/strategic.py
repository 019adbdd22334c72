"""Applies strategic merge patches: lists of the built-in kinds are merged by a key or as sets, not replaced.

The Go types of the Kubernetes API declare the lists that merge as `patchStrategy` and `patchMergeKey`; the tables below
hold those of the kinds that Flotilla and its users patch. Unknown lists are atomic, as in Kubernetes.
"""

from collections import deque
from collections.abc import Collection
from typing import Any, cast

from flotilla_common.api.documents import Json, mappings, sequence

MERGE_KEYS: dict[str, str] = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "podIPs": "ip",
    "hostIPs": "ip",
    "addresses": "type",
    "ownerReferences": "uid",
    "resourceClaims": "name",
    "schedulingGates": "name",
}
"""Merge keys by the name of the list; they are the same in all kinds that we patch."""

SETS = frozenset({"finalizers"})
"""Lists of plain values that are merged as sets."""

_ORDER, _DELETE_PLAIN, _RETAIN = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys"


def merge(target: Json, patch: Json) -> Json:
    """Return the target with the strategic merge patch applied; neither is changed.

    Raises ValueError for list elements without the merge key, and for unknown directives: users write patches.
    """
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive is not None:
        raise ValueError(f"$patch: {directive!r} is not a supported directive")
    result = dict(target)
    if _RETAIN in patch:
        kept = _plain(patch[_RETAIN])
        result = {key: value for key, value in result.items() if key in kept}
    for key, value in patch.items():
        if key.startswith(_DELETE_PLAIN):
            _remove_plain(result, key.removeprefix(_DELETE_PLAIN), value)
        elif not key.startswith("$"):
            _member(result, key, value, sequence(patch.get(_ORDER + key)))
    return result


def _member(result: Json, key: str, value: Any, order: list[Any]) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        old = result.get(key)
        result[key] = merge(cast("Json", old) if isinstance(old, dict) else {}, cast("Json", value))
    elif isinstance(value, list) and key in MERGE_KEYS and _of_objects(cast("list[Any]", value)):
        result[key] = _merge_list(mappings(result.get(key)), cast("list[Json]", value), MERGE_KEYS[key], order)
    elif isinstance(value, list) and key in SETS:
        live, added = _plain(result.get(key) or []), _plain(cast("list[Any]", value))
        result[key] = _interleaved(live, _plain(order) or added, {*live, *added})
    else:
        result[key] = value


def _of_objects(items: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in items)


def _merge_list(items: list[Json], patches: list[Json], merge_key: str, order: list[Any]) -> list[Json]:
    """Merge lists whose elements are identified by a key."""
    if any(patch.get("$patch") == "replace" for patch in patches):
        return [patch for patch in patches if "$patch" not in patch]
    merged = {_identity(item, merge_key): item for item in items}
    live = list(merged)
    for patch in patches:
        if merge_key not in patch:
            raise ValueError(f"an element of a list that is merged by {merge_key} has no {merge_key}")
        wanted = _identity(patch, merge_key)
        if patch.get("$patch") == "delete":
            merged.pop(wanted, None)
        else:
            merged[wanted] = merge(merged.get(wanted, {}), patch)
    patched = [_identity(entry, merge_key) for entry in order or patches]
    return [merged[name] for name in _interleaved(live, [name for name in patched if name in merged], merged)]


def _interleaved(live: list[str], patched: list[str], merged: Collection[str]) -> list[str]:
    """Return the order of the merged elements.

    Elements in the patch keep the patch's order; each other one comes before the first of them that it preceded in the
    live list.
    """
    place = {name: index for index, name in enumerate(live)}
    others = deque(name for name in live if name in merged and name not in patched)
    result: list[str] = []
    for name in patched:
        while others and name in place and place[others[0]] < place[name]:
            result.append(others.popleft())
        result.append(name)
    return [*result, *others]


def _identity(item: object, merge_key: str) -> str:
    """Return the key that identifies an element of a list."""
    return str(cast("Json", item).get(merge_key) if isinstance(item, dict) else item)


def _remove_plain(result: Json, key: str, values: object) -> None:
    if key in result:
        removed = _plain(values)
        result[key] = [item for item in _plain(result[key]) if item not in removed]


def _plain(value: object) -> list[str]:
    """Return the list of texts. Raises ValueError for anything else."""
    if isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value)):
        return cast("list[str]", value)
    raise ValueError("a strategic merge patch has another value where a list of strings is needed")
