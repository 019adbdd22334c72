"""Classifies updates of a pod for its budget: nothing, an update, or a resize (podunavailablebudget.md §8.3).

Any difference of the specs counts, also in members that our types leave out. So raw documents are compared.
"""

from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text
from flotilla_common.api.kinds.podunavailablebudget.types import RESIZE, UPDATE
from flotilla_common.workload.budget.availability import is_unavailable_by_label
from flotilla_common.workload.inplace.calculate import qos_class

_SOURCE, _FROM_APISERVER = "kubernetes.io/config.source", "api"
_RESIZABLE = frozenset({"cpu", "memory"})
_WITHOUT_RESTART = ("", "NotRequired")


def operation_of_update(before: Json, after: Json) -> str:
    """Return `UPDATE` or `RESIZE`, or an empty text for an update that disrupts nothing.

    `before` and `after` are the documents of the stored pod and of its update.
    """
    if _becomes_unavailable(before, after):
        return UPDATE
    old, new = member(before, "spec"), member(after, "spec")
    if old == new:
        return ""
    return RESIZE if not (_is_static(before) or _is_static(after)) and _is_resize(old, new) else UPDATE


def _becomes_unavailable(before: Json, after: Json) -> bool:
    """Return whether the pod gets its first label that makes it unavailable."""
    return not is_unavailable_by_label(_labels(before)) and is_unavailable_by_label(_labels(after))


def _labels(pod: Json) -> dict[str, str]:
    return strings(member(pod, "metadata").get("labels"))


def _is_static(pod: Json) -> bool:
    source = strings(member(pod, "metadata").get("annotations")).get(_SOURCE)
    return source is not None and source != _FROM_APISERVER


def _is_resize(old: Json, new: Json) -> bool:
    """Return whether only CPU and memory of containers change, without restarts and without another QoS class."""
    if _without_resources(old) != _without_resources(new):
        return False
    try:
        if qos_class(old) != qos_class(new):
            return False
    except ValueError:  # a quantity that cannot be parsed
        return False
    pairs = zip(mappings(old.get("containers")), mappings(new.get("containers")), strict=True)
    return all(_takes_resize(before, after) for before, after in pairs)


def _without_resources(spec: Json) -> Json:
    return spec | {"containers": [container | {"resources": None} for container in mappings(spec.get("containers"))]}


def _takes_resize(before: Json, after: Json) -> bool:
    old, new = member(before, "resources"), member(after, "resources")
    amounts = ("requests", "limits")
    if any(old.get(key) != new.get(key) for key in {*old, *new} - set(amounts)):
        return False
    changed = {name for side in amounts for name in _changed(mapping(old.get(side)), mapping(new.get(side)))}
    restarts = {
        text(policy.get("resourceName"))
        for policy in mappings(after.get("resizePolicy"))
        if text(policy.get("restartPolicy")) not in _WITHOUT_RESTART
    }
    return changed <= _RESIZABLE - restarts


def _changed(old: Json, new: Json) -> set[str]:
    return {name for name in {*old, *new} if old.get(name) != new.get(name)}
