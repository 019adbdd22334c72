"""Strategic merge patch: lists of the built-in kinds are merged by a key or as sets, instead of being replaced.

Which lists merge is written in the Go types of the Kubernetes API as `patchStrategy` and `patchMergeKey`; the tables
below hold those of the kinds that Flotilla and its users patch. Unknown lists are atomic, as there.
"""

from typing import Any, cast

from flotilla_common.api.documents import mappings, sequence
from flotilla_common.control.plan import Json

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
}
"""Merge key by the name of the list; no two of our kinds disagree about one."""

SETS = frozenset({"finalizers"})
"""Lists of plain values that are united."""

_ORDER, _DELETE_PLAIN, _RETAIN = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys"


def merge(target: Json, patch: Json) -> Json:
    """The target with the strategic merge patch applied; neither is changed."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    result = dict(target)
    if _RETAIN in patch:
        kept = cast("list[str]", patch[_RETAIN])
        result = {key: value for key, value in result.items() if key in kept}
    for key, value in patch.items():
        if key.startswith(_DELETE_PLAIN):
            _remove_plain(result, key.removeprefix(_DELETE_PLAIN), value)
        elif not key.startswith("$"):
            _member(result, key, value)
    for key, value in patch.items():
        if key.startswith(_ORDER):
            _reorder(result, key.removeprefix(_ORDER), value)
    return result


def _member(result: Json, key: str, value: Any) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        old = result.get(key)
        result[key] = merge(cast("Json", old) if isinstance(old, dict) else {}, cast("Json", value))
    elif isinstance(value, list) and key in MERGE_KEYS and _of_objects(cast("list[Any]", value)):
        result[key] = _merge_list(mappings(result.get(key)), cast("list[Json]", value), MERGE_KEYS[key])
    elif isinstance(value, list) and key in SETS:
        united = [*sequence(result.get(key)), *cast("list[str]", value)]
        result[key] = list(dict.fromkeys(united))
    else:
        result[key] = value


def _of_objects(items: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in items)


def _merge_list(items: list[Json], patches: list[Json], merge_key: str) -> list[Json]:
    """Elements are found by their key; new ones go to the end."""
    if any(patch.get("$patch") == "replace" and len(patch) == 1 for patch in patches):
        return [patch for patch in patches if "$patch" not in patch]
    result: list[Json] = list(items)
    for patch in patches:
        wanted = patch.get(merge_key)
        place = next((index for index, item in enumerate(result) if item.get(merge_key) == wanted), None)
        if patch.get("$patch") == "delete":
            result = [item for item in result if item.get(merge_key) != wanted]
        elif place is None:
            result.append(merge({}, patch))
        else:
            result[place] = merge(result[place], patch)
    return result


def _identity(item: object, merge_key: str) -> str:
    """What tells an element of a list from the others."""
    return str(cast("Json", item).get(merge_key) if isinstance(item, dict) else item)


def _remove_plain(result: Json, key: str, values: list[Any]) -> None:
    if key in result:
        result[key] = [item for item in result[key] if item not in values]


def _reorder(result: Json, key: str, order: list[Any]) -> None:
    """Elements that the order names stand in that order; others stay behind the element they followed."""
    merge_key = MERGE_KEYS.get(key, "")
    ranks = [_identity(entry, merge_key) for entry in order]
    rank = -1
    placed: list[tuple[int, int, Any]] = []
    for position, item in enumerate(sequence(result.get(key))):
        name = _identity(item, merge_key)
        rank = ranks.index(name) if name in ranks else rank
        placed.append((rank, position, item))
    if placed:
        result[key] = [item for _, _, item in sorted(placed, key=lambda entry: entry[:2])]
