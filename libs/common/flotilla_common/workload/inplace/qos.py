"""The QoS class of a template: it cannot change while a pod runs (common.md §9.2)."""

from decimal import Decimal

from flotilla_common.api import quantity
from flotilla_common.api.documents import mapping, mappings
from flotilla_common.control.plan import Json

_COUNTED = ("cpu", "memory")


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, for a pod spec in canonical form.

    A pod with resources of its own takes its class from these alone.
    """
    if mapping(spec.get("resources")):
        return _class([spec])
    return _class([*mappings(spec.get("initContainers")), *mappings(spec.get("containers"))])


def _class(holders: list[Json]) -> str:
    requests: dict[str, Decimal] = {}
    limits: dict[str, Decimal] = {}
    guaranteed = True
    for holder in holders:
        resources = mapping(holder.get("resources"))
        limited = _amounts(mapping(resources.get("limits")))
        # A limit without a request is the request, too: the apiserver fills that in when the pod is created.
        requested = limited | _amounts(mapping(resources.get("requests")))
        guaranteed = guaranteed and len(limited) == len(_COUNTED)
        _add(limits, limited)
        _add(requests, requested)
    if not requests:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _amounts(entries: Json) -> dict[str, Decimal]:
    """The counted entries that are not zero."""
    amounts = {name: quantity.parse(str(entries.get(name, "0"))) for name in _COUNTED}
    return {name: amount for name, amount in amounts.items() if amount}


def _add(totals: dict[str, Decimal], amounts: dict[str, Decimal]) -> None:
    for name, amount in amounts.items():
        totals[name] = totals.get(name, Decimal(0)) + amount
