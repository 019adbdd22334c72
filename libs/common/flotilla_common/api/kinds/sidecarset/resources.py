"""Computes resources of a sidecar from those of the pod's own containers (sidecarset.md §6.11)."""

from collections.abc import Collection, Iterable, Iterator
from functools import reduce

from flotilla_common.api import re2
from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.kinds.sidecarset.expressions import Quantity, amount_of

RESOURCES = ("cpu", "memory")
"""The resources that can be computed."""

ANY_NAME = ".*"
"""The default regular expression for the names of containers that count."""

_NOTHING = Quantity.parse(0)


def computed_resources(policy: Json, pod: Json, sidecar_names: Collection[str]) -> Json:
    """Return the `resources` of the sidecar with this resourcesPolicy, in this pod.

    `sidecar_names` are the injected containers of all SidecarSets, which do not count. Raises ValueError if no
    container is left that counts, or if an expression fails.
    """
    targets = [member(container, "resources") for container in _targets(policy, pod, sidecar_names)]
    largest = policy.get("targetContainersMode") == "max"
    expressions = member(policy, "resourcesExpr")
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for name in RESOURCES:
        expression = text(member(expressions, "limits").get(name))
        if expression and (limit := _limit(targets, name, largest=largest)) is not None:
            limits[name] = str(amount_of(expression, limit))
        if expression := text(member(expressions, "requests").get(name)):
            requests[name] = str(amount_of(expression, _request(targets, name, largest=largest)))
    return {kind: amounts for kind, amounts in (("limits", limits), ("requests", requests)) if amounts}


def _targets(policy: Json, pod: Json, sidecar_names: Collection[str]) -> list[Json]:
    """Return the containers that count: long-running ones that are not sidecars and whose name matches."""
    pattern = text(policy.get("targetContainersNameRegex")) or ANY_NAME
    matches = re2.compiled(pattern).search
    found = [one for one in _running(mapping(pod.get("spec"))) if text(one.get("name")) not in sidecar_names]
    targets = [one for one in found if matches(text(one.get("name")))]
    if not targets:
        raise ValueError(f"no containers match the regex {pattern!r}")
    return targets


def _running(spec: Json) -> Iterator[Json]:
    yield from (one for one in mappings(spec.get("initContainers")) if one.get("restartPolicy") == "Always")
    yield from mappings(spec.get("containers"))


def _limit(targets: Iterable[Json], name: str, *, largest: bool) -> Quantity | None:
    """Return the aggregate limit; None if one of the containers has no limit."""
    written = [member(resources, "limits").get(name) for resources in targets]
    given = [Quantity.parse(one) for one in written if one is not None]
    return _together(given, largest=largest) if len(given) == len(written) else None


def _request(targets: Iterable[Json], name: str, *, largest: bool) -> Quantity:
    written = [member(resources, "requests").get(name) for resources in targets]
    return _together((Quantity.parse(one) for one in written if one is not None), largest=largest)


def _together(amounts: Iterable[Quantity], *, largest: bool) -> Quantity:
    if largest:
        return max(amounts, key=lambda one: one.amount, default=_NOTHING)
    return reduce(Quantity.plus, amounts, _NOTHING)
