"""Selects the WorkloadSpread of a new pod (workloadspread.md §5.2), and the rules of the pods that may have one."""

import msgspec
import structlog

from flotilla_common.api.documents import Json, member, strings, text, without_nulls
from flotilla_common.api.errors import ApiError, found_or_none
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds.workloadspread.targets import (
    BUILT_IN,
    CustomWorkload,
    GroupKind,
    custom_workloads,
    owners_of_pods,
    supported,
)
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WORKLOAD_SPREAD, WorkloadSpread, to_hub
from flotilla_common.api.meta import LabelSelector, OwnerReference
from flotilla_common.api.podrules import PodRule, controlled_by
from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.api.selectors import Selector
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_webhook.cache import Cache, decoder, read_all
from flotilla_webhook.owners import Owners

UNSEEN_SECONDS = 10.0
"""Limit of waiting for an admitted WorkloadSpread: it may never be stored."""

ASKED_SECONDS = 2.0
"""Time for which the result is cached that the apiserver has no WorkloadSpread for the pods of a namespace."""

MAX_NAMED = 64
"""Limit of WorkloadSpreads with rules of their own workload's name; with more, rules are per kind.

Each name makes the webhook configuration longer.
"""

_REFUSED = (401, 403)
"""Codes that a retry does not change: administrators let us read custom kinds, or not."""

_HAS_PLACE = (
    f"has(oldObject.metadata.annotations) && '{MATCHED}' in oldObject.metadata.annotations"
    " && !has(oldObject.metadata.deletionTimestamp)"
)
"""CEL, over the pod about to be deleted."""


_log = structlog.get_logger()


class SpreadSelection:
    """The WorkloadSpreads of the cluster, and the rules that they require; none without the gate."""

    def __init__(self, api: Api, clock: Clock, *, on: bool, namespace: str) -> None:
        """Read further kinds of workloads from `namespace`, Flotilla's own; `on` is the state of the gate."""
        self.cache = Cache(WORKLOAD_SPREAD, decoder(WorkloadSpread), _target_key)
        self.on = on
        self.owners = Owners(api, clock)
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._unseen: dict[tuple[str, str], float] = {}  # about to be stored, and until when they are awaited
        self._asked: dict[str, float] = {}  # namespaces, and until when the apiserver's answer is cached

    @property
    def known(self) -> bool:
        """Report whether all WorkloadSpreads of the cluster are known."""
        return self.cache.known or not self.on

    async def removal_rules(self) -> list[PodRule]:
        """Return the rules of pods with a place, in the namespaces that have a WorkloadSpread."""
        namespaces = {spread.metadata.namespace for spread in self.cache.values()} if self.on else set[str]()
        return [PodRule("WorkloadSpreads", _HAS_PLACE, namespace, probed=False) for namespace in sorted(namespaces)]

    async def rules(self) -> list[PodRule]:
        """Return the rules of pods that the target of a WorkloadSpread may have created."""
        if not self.on:
            return []
        custom, spreads = await self.custom(), self.cache.values()
        return [_rule(spread, custom, by_name=len(spreads) <= MAX_NAMED) for spread in spreads]

    async def rules_of(self, document: Json, namespace: str) -> list[PodRule]:
        """Return the rules that a WorkloadSpread about to be stored requires."""
        if not self.on:
            return []
        spread = msgspec.json.decode(msgspec.json.encode(without_nulls(to_hub(document))), type=WorkloadSpread)
        return [_rule(spread, await self.custom(), by_name=len(self.cache.values()) < MAX_NAMED)]

    def admitted(self, document: Json) -> None:
        """Record that the WorkloadSpread is about to be stored."""
        metadata = member(document, "metadata")
        key = text(metadata.get("namespace")), text(metadata.get("name"))
        self._unseen[key] = self._clock.monotonic() + UNSEEN_SECONDS

    async def custom(self) -> list[CustomWorkload]:
        body = await found_or_none(self._api.get(CONFIG_MAP, self._namespace, CONFIGURATION))
        try:
            data = {} if body is None else strings(member(msgspec.json.decode(body, type=Json), "data"))
            return custom_workloads(data)
        except ValueError as fault:  # must not affect pods of other kinds
            _log.warning("cannot read which workloads can be spread", why=str(fault))
            return []

    async def spread_of(self, pod: Json, owner: OwnerReference, namespace: str) -> WorkloadSpread | None:
        """Return the first WorkloadSpread for the pod's workload and labels, or None."""
        # The watch may not show yet what another replica has just admitted, so the apiserver confirms that there is
        # none.
        found = await self._match(await self._known(namespace), pod, owner, namespace)
        if found is None and self._asked.get(namespace, 0.0) <= self._clock.monotonic():
            found = await self._match(await self._ask(namespace), pod, owner, namespace)
        return found

    async def _match(
        self, spreads: list[WorkloadSpread], pod: Json, owner: OwnerReference, namespace: str
    ) -> WorkloadSpread | None:
        custom = await self.custom() if any(kind_of(spread) not in BUILT_IN for spread in spreads) else []
        labels = strings(member(pod, "metadata").get("labels"))
        for spread in spreads:
            target = spread.spec.target_ref
            if not supported(kind_of(spread), custom):
                continue
            try:
                if _selects(spread, labels) and await self.owners.lead_to(target, owner, namespace, custom):
                    return spread
            except (ApiError, ValueError) as fault:
                if isinstance(fault, ApiError) and fault.code not in _REFUSED:
                    raise  # an owner that cannot be seen yet, or a busy apiserver: the pod's creation is retried
                _log.warning("skipped a WorkloadSpread", name=spread.metadata.name, why=str(fault))
        return None

    async def _known(self, namespace: str) -> list[WorkloadSpread]:
        """Return the WorkloadSpreads of the namespace, from the watch if it is reliable."""
        if not self.cache.known or self.cache.trouble or self._awaits(namespace):
            return await self._ask(namespace)
        return self._of(namespace)

    def _awaits(self, namespace: str) -> bool:
        """Report whether one of the namespace is about to be stored that the watch has not shown."""
        now = self._clock.monotonic()
        self._unseen = {
            key: until for key, until in self._unseen.items() if until > now and self.cache.get(*key) is None
        }
        return any(of == namespace for of, _ in self._unseen)

    async def _ask(self, namespace: str) -> list[WorkloadSpread]:
        now = self._clock.monotonic()
        for item in await read_all(self._api, WORKLOAD_SPREAD, namespace):
            self.cache.take(bytes(item))
        self._asked = {of: until for of, until in self._asked.items() if until > now}
        self._asked[namespace] = now + ASKED_SECONDS
        return self._of(namespace)

    def _of(self, namespace: str) -> list[WorkloadSpread]:
        return [spread for spread in self.cache.values() if spread.metadata.namespace == namespace]

    async def named(self, namespace: str, name: str) -> WorkloadSpread | None:
        found = self.cache.get(namespace, name)
        if found is not None or self.cache.known:
            return found
        body = await found_or_none(self._api.get(WORKLOAD_SPREAD, namespace, name))
        return None if body is None else msgspec.json.decode(body, type=WorkloadSpread)


def _target_key(spread: WorkloadSpread) -> tuple[str, ...]:
    return spread.metadata.namespace, spread.metadata.name, *spread.spec.target_ref.identity


def _rule(spread: WorkloadSpread, custom: list[CustomWorkload], *, by_name: bool) -> PodRule:
    """Return the rule of the pods that the target may have created.

    With few WorkloadSpreads, it matches only workloads of that name.
    """
    target, kind = spread.spec.target_ref, kind_of(spread)
    owners = owners_of_pods(kind, custom)
    condition = controlled_by(owners, {kind: target.name} if by_name and kind in owners else None)
    return PodRule("WorkloadSpreads", condition, spread.metadata.namespace)


def kind_of(spread: WorkloadSpread) -> GroupKind:
    return spread.spec.target_ref.identity[:2]


def _selects(spread: WorkloadSpread, labels: dict[str, str]) -> bool:
    """Report whether the filter selects the pod. Raises ValueError if it cannot be parsed."""
    given = spread.spec.target_filter
    if given is None or given.selector is None or given.selector == LabelSelector():
        return True
    return Selector.compile(given.selector).matches(labels)
