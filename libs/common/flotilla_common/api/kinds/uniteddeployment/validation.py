"""Validation of a UnitedDeployment, as v1beta1 (uniteddeployment.md §4).

The rules read the raw document. The apiserver's faults of pod templates, terms and tolerations are passed in.
"""

from collections.abc import Iterable, Iterator, Sequence

from flotilla_common.api.admission.fields import (
    NON_NEGATIVE,
    Fault,
    forbidden,
    invalid,
    label_faults,
    not_supported,
    required,
)
from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text, typed
from flotilla_common.api.kinds.uniteddeployment.types import ADAPTIVE
from flotilla_common.api.meta import IntOrString, LabelSelector
from flotilla_common.api.numbers import integer
from flotilla_common.api.selectors import Selector

TEMPLATES = ("statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate")
JUDGED_TEMPLATES = ("statefulSetTemplate", "deploymentTemplate")
"""The templates whose pods are fully validated here. The others are when their workloads are created."""

_STATEFUL = ("statefulSetTemplate", "advancedStatefulSetTemplate")
_SETTLED = {  # what an update may change in a template
    "statefulSetTemplate": (
        "template",
        "updateStrategy",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "ordinals",
        "replicas",
    ),
    "advancedStatefulSetTemplate": ("template", "updateStrategy", "replicas"),
}
_SUBSETS = "spec.topology.subsets"
_UNLIMITED = 1_000_000


def template_path(name: str) -> str:
    """Return the path prefix of the fields of the workload's spec."""
    return f"spec.template.{name}.spec."


def validate(document: Json, old: Json | None = None, template_faults: Iterable[Fault] = ()) -> list[Fault]:
    """Return all faults, including those found by the apiserver and those of forbidden changes to `old`."""
    spec = mapping(document.get("spec"))
    changes = _change_faults(spec, mapping(old.get("spec"))) if old is not None else ()
    return [*_spec_faults(spec), *template_faults, *changes]


def _spec_faults(spec: Json) -> Iterator[Fault]:
    if (spec.get("replicas") or 0) < 0:
        yield invalid("spec.replicas", spec["replicas"], NON_NEGATIVE)
    yield from _selector_faults(spec)
    yield from _template_faults(spec)
    yield from _subset_faults(spec)
    yield from _strategy_faults(spec)


def _selector_faults(spec: Json) -> Iterator[Fault]:
    given = spec.get("selector")
    if given is None:
        yield required("spec.selector")
        return
    try:
        if Selector.compile(typed(given, LabelSelector)).empty:
            yield invalid("spec.selector", given, "empty selector is invalid for uniteddeployment")
    except ValueError as error:
        yield invalid("spec.selector", given, str(error))


def _template_faults(spec: Json) -> Iterator[Fault]:
    template = mapping(spec.get("template"))
    found = [name for name in TEMPLATES if template.get(name) is not None]
    if not found:
        names = ", ".join(TEMPLATES)
        yield required("spec.template", f"should provide one of {names}")
    elif len(found) > 1:
        yield invalid("spec.template", ", ".join(found), "should provide only one of these templates")
    for name in found:
        yield from _workload_faults(spec, name, mapping(template.get(name)))


def _workload_faults(spec: Json, name: str, template: Json) -> Iterator[Fault]:
    if name == "cloneSetTemplate":
        return  # validated when the CloneSets are created
    path, workload = template_path(name), mapping(template.get("spec"))
    labels = member(template, "metadata").get("labels")
    if not _matches(spec, labels):
        detail = "`selector` does not match template `labels`"
        yield invalid(f"spec.template.{name}.metadata.labels", labels, detail)
    pod = member(workload, "template")
    if not _matches(spec, member(pod, "metadata").get("labels")):
        labels = member(pod, "metadata").get("labels")
        yield invalid(f"{path}template.metadata.labels", labels, "`selector` does not match template `labels`")
    if workload.get("replicas") is not None:
        yield invalid(f"{path}replicas", workload["replicas"], "replicas in the template will not be used")
    if name in _STATEFUL:
        yield from _stateful_faults(path, workload)
    if name in JUDGED_TEMPLATES:
        yield from _endless_faults(path, member(pod, "spec"))
    if name == "statefulSetTemplate":
        yield from _built_in_faults(path, workload)


def _matches(spec: Json, labels: object) -> bool:
    """Report whether labels match the selector, or the selector is invalid, which is another fault."""
    try:
        return Selector.compile(typed(spec.get("selector") or {}, LabelSelector)).matches(strings(labels))
    except ValueError:
        return True


def _stateful_faults(path: str, workload: Json) -> Iterator[Fault]:
    strategy = member(workload, "updateStrategy")
    partition = member(strategy, "rollingUpdate").get("partition")
    if strategy.get("type") == "RollingUpdate" and partition is not None:
        detail = "partition in the template will not be used"
        yield invalid(f"{path}updateStrategy.rollingUpdate.partition", partition, detail)


def _endless_faults(path: str, pod: Json) -> Iterator[Fault]:
    restart = pod.get("restartPolicy")
    if restart not in (None, "", "Always"):
        yield not_supported(f"{path}template.spec.restartPolicy", restart, ["Always"])
    if pod.get("activeDeadlineSeconds") is not None:
        yield forbidden(f"{path}template.spec.activeDeadlineSeconds", "pods of a workload have no deadline")


def _built_in_faults(path: str, workload: Json) -> Iterator[Fault]:
    """Yield faults for which the apiserver would refuse a StatefulSet of apps/v1."""
    management = text(workload.get("podManagementPolicy")) or "OrderedReady"
    if management not in ("OrderedReady", "Parallel"):
        yield not_supported(f"{path}podManagementPolicy", management, ("OrderedReady", "Parallel"))
    strategy = member(workload, "updateStrategy")
    kind = text(strategy.get("type")) or "RollingUpdate"
    if kind not in ("RollingUpdate", "OnDelete"):
        yield not_supported(f"{path}updateStrategy.type", kind, ("RollingUpdate", "OnDelete"))
    elif kind == "OnDelete" and strategy.get("rollingUpdate") is not None:
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        yield invalid(f"{path}updateStrategy.rollingUpdate", strategy["rollingUpdate"], detail)
    policy = workload.get("persistentVolumeClaimRetentionPolicy")
    for name in ("whenDeleted", "whenScaled") if policy is not None else ():
        value = mapping(policy).get(name)
        if value not in (None, "", "Retain", "Delete"):
            where = f"{path}persistentVolumeClaimRetentionPolicy.{name}"
            yield not_supported(where, text(value), ("Retain", "Delete"))
    seconds = workload.get("minReadySeconds") or 0
    if isinstance(seconds, int) and seconds < 0:
        yield invalid(f"{path}minReadySeconds", seconds, NON_NEGATIVE)


def _subset_faults(spec: Json) -> Iterator[Fault]:
    topology = member(spec, "topology")
    subsets = mappings(topology.get("subsets"))
    adaptive = member(topology, "scheduleStrategy").get("type") == ADAPTIVE
    seen: set[str] = set()
    for index, subset in enumerate(subsets):
        path, name = f"{_SUBSETS}[{index}]", text(subset.get("name"))
        if not name:
            yield required(f"{path}.name")
        if name in seen:
            yield invalid(f"{path}.name", name, f"duplicated subset name {name}")
        seen.add(name)
        yield from label_faults(f"{path}.name", name)
        if adaptive and subset.get("replicas") is not None:
            yield forbidden(f"{path}.replicas", "use minReplicas and maxReplicas with the Adaptive strategy")
    unreadable = list(_number_faults(subsets))
    yield from unreadable or _sum_faults(subsets, spec.get("replicas"))


def _number_faults(subsets: Sequence[Json]) -> Iterator[Fault]:
    for index, subset in enumerate(subsets):
        for name in ("replicas", "minReplicas", "maxReplicas"):
            value = subset.get(name)
            if value is not None and _scaled(value, 0) is None:
                detail = "must be a number that is not negative, or a whole percentage between 0% and 100%"
                yield invalid(f"{_SUBSETS}[{index}].{name}", value, detail)


def _scaled(value: IntOrString | None, total: int) -> int | None:
    """Return the number of pods, rounded half up; None if the value is invalid (§7.1)."""
    if value is None or (isinstance(value, int) and value < 0):
        return None
    if isinstance(value, int):
        return value
    percent = integer(value[:-1]) if value.endswith("%") else None
    return (total * percent + 50) // 100 if percent is not None and 0 <= percent <= 100 else None


def _sum_faults(subsets: Sequence[Json], replicas: int | None) -> Iterator[Fault]:
    bounded = any(one.get("minReplicas") is not None or one.get("maxReplicas") is not None for one in subsets)
    given = [one["replicas"] for one in subsets if one.get("replicas") is not None]
    if bounded and given:
        yield invalid(_SUBSETS, len(subsets), "replicas and minReplicas or maxReplicas are mutually exclusive")
    elif bounded:
        yield from _bound_faults(subsets, replicas)
    else:
        yield from _share_faults(len(subsets), given, replicas)


def _bound_faults(subsets: Sequence[Json], replicas: int | None) -> Iterator[Fault]:
    if replicas is None:
        yield invalid("spec.replicas", None, "must be set with minReplicas and maxReplicas")
        return
    least = [_scaled(one.get("minReplicas"), replicas) or 0 for one in subsets]
    found = [_scaled(one.get("maxReplicas"), replicas) for one in subsets]
    most = [_UNLIMITED if one is None else one for one in found]
    for index, (low, high) in enumerate(zip(least, most, strict=True)):
        if low > high:
            detail = "minReplicas must be less than or equal to maxReplicas"
            yield invalid(f"{_SUBSETS}[{index}].minReplicas", subsets[index].get("minReplicas"), detail)
    if all(one.get("maxReplicas") is not None for one in subsets):
        yield invalid(_SUBSETS, len(subsets), "at least one subset.maxReplicas must be empty")
    if sum(least) > sum(most):
        yield invalid(_SUBSETS, sum(least), f"the sum of minReplicas is greater than that of maxReplicas: {sum(most)}")


def _share_faults(count: int, given: Sequence[IntOrString], replicas: int | None) -> Iterator[Fault]:
    if replicas is None:
        if len(given) < count:
            yield invalid(_SUBSETS, count, "all subsets must have replicas when UnitedDeployment replicas is not set")
        return
    total = sum(_scaled(one, replicas) or 0 for one in given)
    if total > replicas:
        detail = f"sum of indicated subset replicas should not be greater than UnitedDeployment replicas: {replicas}"
        yield invalid(_SUBSETS, total, detail)
    elif count and len(given) == count and total != replicas:
        detail = f"sum of indicated subset replicas should equal UnitedDeployment replicas: {replicas}"
        yield invalid(_SUBSETS, total, detail)


def _strategy_faults(spec: Json) -> Iterator[Fault]:
    topology = member(spec, "topology")
    stateful = any(mapping(spec.get("template")).get(name) is not None for name in _STATEFUL)
    strategy = member(topology, "scheduleStrategy")
    reserves = member(strategy, "adaptive").get("reserveUnschedulablePods") is True
    if strategy.get("type") == ADAPTIVE and reserves and stateful:
        detail = "reserveUnschedulablePods: only stateless workloads (Deployment, CloneSet) are supported"
        yield invalid("spec.topology.scheduleStrategy", strategy.get("type"), detail)
    update = member(spec, "updateStrategy")
    if update.get("type") not in (None, "", "Manual"):
        yield not_supported("spec.updateStrategy.type", update.get("type"), ["Manual"])
    names = {text(subset.get("name")) for subset in mappings(topology.get("subsets"))}
    for name in mapping(member(update, "manualUpdate").get("partitions")):
        if name not in names:
            path = "spec.updateStrategy.manualUpdate.partitions"
            yield invalid(path, name, f"subset {name} does not exist")


def _change_faults(spec: Json, old: Json) -> Iterator[Fault]:
    template, before = mapping(spec.get("template")), mapping(old.get("template"))
    for name, mutable in _SETTLED.items():
        new, former = template.get(name), before.get(name)
        if new is None or former is None:
            continue
        if _fixed(member(mapping(new), "spec"), mutable) != _fixed(member(mapping(former), "spec"), mutable):
            detail = f"updates to fields other than {', '.join(mutable[:-1])} are forbidden"
            yield forbidden(f"spec.template.{name}.spec", detail)
    known = {text(one.get("name")): one for one in mappings(member(old, "topology").get("subsets"))}
    for index, subset in enumerate(mappings(member(spec, "topology").get("subsets"))):
        former = known.get(text(subset.get("name")))
        for name in ("nodeSelectorTerm", "tolerations") if former is not None else ():
            if (subset.get(name) or None) != (mapping(former).get(name) or None):
                yield forbidden(f"{_SUBSETS}[{index}].{name}", "may not be changed in an update")


def _fixed(workload: Json, mutable: Sequence[str]) -> Json:
    """Return the immutable fields; absent and empty are the same."""
    return {
        key: value for key, value in workload.items() if key not in mutable and value not in (None, {}, [], "", False)
    }
