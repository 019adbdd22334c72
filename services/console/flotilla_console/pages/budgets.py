"""Reads PodUnavailableBudgets and PodDisruptionBudgets: what is left, who took it, and the workloads they protect."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial

import msgspec

from flotilla_common.api.documents import Json, is_object, mapping, member, strings, text, typed
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, is_ahead
from flotilla_common.api.meta import LabelSelector, ObjectMeta, group_of
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import Selector
from flotilla_console.model.kinds import KINDS
from flotilla_console.model.kinds.fields import number, word
from flotilla_console.model.objects import Stored, read
from flotilla_console.model.resources import DISRUPTION_BUDGET
from flotilla_console.model.sight import Sight
from flotilla_console.model.workload import Workload
from flotilla_console.pages.memo import Memo

Identity = tuple[str, str, str]
"""Group, kind and name of a workload."""

BudgetKey = tuple[str, str, str]
"""Resource, namespace and name."""

BUDGETS = (POD_UNAVAILABLE_BUDGET, DISRUPTION_BUDGET)


class Use(msgspec.Struct, frozen=True):
    """A pod that budget was taken for."""

    pod: str
    operation: str
    since: float


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """A budget of either kind. Numbers are those of its controller."""

    resource: Resource
    metadata: ObjectMeta
    limit: str
    allowed: int
    available: int
    desired: int
    total: int  # -1: not known
    uses: tuple[Use, ...]
    ahead: int  # units that the webhook holds for future requests
    target: Identity | None
    selector: Selector | None
    label: tuple[str, str] | None  # one that all selected pods have

    @property
    def key(self) -> BudgetKey:
        """Return the identity among the budgets of both kinds."""
        return self.resource.id, *self.metadata.key


class Protected(msgspec.Struct, frozen=True):
    """A workload with what budgets know it by."""

    workload: Workload
    labels: Mapping[str, str]  # of its pod template

    @property
    def identity(self) -> Identity:
        """Return group, kind and name."""
        return self.workload.group, self.workload.kind.resource.kind, self.workload.name


class Around:
    """A namespace: its workloads that own pods, and its budgets, those that may be seen."""

    def __init__(self, sight: Sight, namespace: str) -> None:
        self._workloads = sorted(_workloads(sight, namespace), key=lambda one: one.identity)
        self._by_identity = {one.identity: one for one in self._workloads}
        self._by_label: dict[tuple[str, str], list[Protected]] = {}
        for one in self._workloads:
            for label in one.labels.items():
                self._by_label.setdefault(label, []).append(one)
        self._budgets: dict[Identity, list[Budget]] = {}
        for resource in BUDGETS:
            for stored in sight.stored_in(resource, namespace):
                budget = budget_of(resource, stored)
                for one in self.protected(budget):
                    self._budgets.setdefault(one.identity, []).append(budget)

    def protected(self, budget: Budget) -> list[Protected]:
        """Return the workloads whose pods a budget protects, by kind and name."""
        if budget.target is not None:
            found = self._by_identity.get(budget.target)
            return [found] if found is not None else []
        selector = budget.selector
        if selector is None:
            return []
        candidates = self._workloads if budget.label is None else self._by_label.get(budget.label, [])
        return [one for one in candidates if selector.matches(one.labels)]

    def others(self, budget: Budget) -> list[Budget]:
        """Return the other budgets that protect workloads which the budget protects."""
        found = {other.key: other for one in self.protected(budget) for other in self._budgets[one.identity]}
        return [other for key, other in found.items() if key != budget.key]


def budget_of(resource: Resource, stored: Stored) -> Budget:
    """Return a stored budget of either kind."""
    return _READ[resource].of(stored)


def _read(resource: Resource, stored: Stored) -> Budget:
    spec, status = read(stored.spec), read(stored.status)
    ours = resource == POD_UNAVAILABLE_BUDGET
    disrupted = mapping(status.get("disruptedPods"))
    uses = [
        *_uses(disrupted, "deletion" if ours else "eviction"),
        *_uses(mapping(status.get("unavailablePods")), "update"),
    ]
    names = _OURS if ours else _BUILT_IN
    return Budget(
        resource=resource,
        metadata=stored.metadata,
        limit=_limit(spec),
        allowed=number(status, names[0]),
        available=number(status, names[1]),
        desired=number(status, names[2]),
        total=number(status, names[3]),
        uses=tuple(sorted(uses, key=lambda use: (use.since, use.pod))),
        ahead=sum(map(is_ahead, disrupted)),
        target=_target(member(spec, "targetRef")),
        selector=_selector(spec.get("selector"), everything=not ours),
        label=next(iter(strings(member(spec, "selector").get("matchLabels")).items()), None),
    )


_READ = {resource: Memo(partial(_read, resource)) for resource in BUDGETS}

_OURS = ("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas")
_BUILT_IN = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def _limit(spec: Json) -> str:
    """Return the limit as written; maxUnavailable has precedence."""
    for name in ("maxUnavailable", "minAvailable"):
        if written := word(spec, name):
            return f"{name} {written}"
    return ""


def _uses(entries: Json, operation: str) -> Iterator[Use]:
    for pod, at in entries.items():
        if not is_ahead(pod):
            yield Use(pod, operation, _seconds(at))


def _seconds(written: object) -> float:
    """Return a time in seconds since 1970; 0 for one that cannot be read."""
    try:
        return msgspec.convert(written, datetime).timestamp()
    except (msgspec.ValidationError, ValueError, OverflowError):
        return 0.0


def _target(reference: Json) -> Identity | None:
    name = text(reference.get("name"))
    return (group_of(text(reference.get("apiVersion"))), text(reference.get("kind")), name) if name else None


def _selector(written: object, everything: bool) -> Selector | None:
    """Return the selector; None without one, and for one that cannot be read.

    An empty one selects everything only in a PodDisruptionBudget.
    """
    if not is_object(written) or not (written or everything):
        return None
    try:
        return Selector.compile(typed(written, LabelSelector))
    except ValueError:
        return None


class _TemplateMeta(msgspec.Struct, frozen=True):
    labels: dict[str, str] = {}


class _Template(msgspec.Struct, frozen=True):
    metadata: _TemplateMeta = _TemplateMeta()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


_SPEC = Reader(_Spec)


def _workloads(sight: Sight, namespace: str) -> Iterator[Protected]:
    for kind in KINDS.values():
        if not kind.has_pods:
            continue
        for stored in sight.stored_in(kind.resource, namespace):
            one = sight.workload(kind.resource.group, kind.resource.plural, namespace, stored.metadata.name)
            if one is not None:
                yield Protected(one, _LABELS.of(stored))


def _labels(stored: Stored) -> Mapping[str, str]:
    """Return the labels of a pod template; none if they cannot be read."""
    try:
        return _SPEC.read(stored.spec).template.metadata.labels
    except ValueError:
        return {}


_LABELS = Memo(_labels)
