"""Step 2 of the pod webhook: places a pod of a workload with a WorkloadSpread in a subset (workloadspread.md §5).

The place of a pod is given back when it is deleted.
"""

import asyncio
from contextlib import suppress
from functools import partial

import msgspec
import structlog

from flotilla_common.api.admission.review import Request, error
from flotilla_common.api.documents import Json, member, strings, text, without_nulls
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds.workloadspread.book import Versioned, by_ordinal, matched_of, uses_percent, version_of
from flotilla_common.api.kinds.workloadspread.targets import (
    BUILT_IN,
    NUMBERED,
    CustomWorkload,
    GroupKind,
    custom_workloads,
    owners_of_pods,
    replicas_of,
    replicas_path,
    supported,
)
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WORKLOAD_SPREAD, Matched, WorkloadSpread, to_hub
from flotilla_common.api.meta import LabelSelector, OwnerReference
from flotilla_common.api.podrules import PodRule, controlled_by
from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.api.selectors import Selector
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, Entropy
from flotilla_common.kube.interface import Api
from flotilla_common.settings import Settings
from flotilla_webhook.cache import Cache, decoder, read_all
from flotilla_webhook.owners import Owners, controller_in
from flotilla_webhook.pods.admission import UPDATE, AdmissionStep, Check, CheckResult, PodChange
from flotilla_webhook.spreading.peers import Grant, LoanRequest, Peers
from flotilla_webhook.spreading.places import Places, name_of
from flotilla_webhook.spreading.places_ahead import BOOKS_STATUS
from flotilla_webhook.spreading.subsets import apply_subset
from flotilla_webhook.status_writer import Gone, StatusWriter

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


class Spreads:
    """The step, the check of deletions, and the rules that WorkloadSpreads require."""

    def __init__(self, api: Api, bus: Bus, clock: Clock, entropy: Entropy, *, on: bool, settings: Settings) -> None:
        """Prepare the step; `on` is the state of the gate."""
        self.cache = Cache(WORKLOAD_SPREAD, decoder(WorkloadSpread), _target_key)
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._on = on
        self._namespace = settings.namespace
        self._versioned = Versioned.of(settings.ws_enabled_versioned_status)
        self._places: dict[str, Places] = {}  # by uid
        self._peers = Peers(bus, clock, entropy)
        self._owners = Owners(api, clock)
        self._unseen: dict[tuple[str, str], float] = {}  # about to be stored, and until when they are awaited
        self._asked: dict[str, float] = {}  # namespaces, and until when the apiserver's answer is cached

    async def serve(self) -> None:
        """Serve other replicas' requests for places."""
        if self._on:
            await self._peers.serve(self._lend)

    async def close(self) -> None:
        """Return the places that were taken ahead, so that other replicas need not wait until they time out."""
        await self._peers.close()
        await asyncio.gather(*(places.close() for places in self._places.values()))

    def step(self) -> AdmissionStep:
        """Return the step; idle without the gate."""
        return AdmissionStep("WorkloadSpread", self.rules, self.change, lambda: self.cache.known or not self._on)

    def check(self) -> Check:
        """Return the check of deletions."""
        return Check("WorkloadSpread", self.removal_rules, self.check_removal, lambda: self.cache.known or not self._on)

    async def removal_rules(self) -> list[PodRule]:
        """Return the rules of pods with a place, in the namespaces that have a WorkloadSpread."""
        namespaces = {spread.metadata.namespace for spread in self.cache.values()} if self._on else set[str]()
        return [PodRule("WorkloadSpreads", _HAS_PLACE, namespace, probed=False) for namespace in sorted(namespaces)]

    async def rules(self) -> list[PodRule]:
        """Return the rules of pods that the target of a WorkloadSpread may have created."""
        if not self._on:
            return []
        custom, spreads = await self._custom(), self.cache.values()
        return [_rule(spread, custom, by_name=len(spreads) <= MAX_NAMED) for spread in spreads]

    async def rules_of(self, document: Json, namespace: str) -> list[PodRule]:
        """Return the rules that a WorkloadSpread about to be stored requires."""
        if not self._on:
            return []
        spread = msgspec.json.decode(msgspec.json.encode(without_nulls(to_hub(document))), type=WorkloadSpread)
        return [_rule(spread, await self._custom(), by_name=len(self.cache.values()) < MAX_NAMED)]

    def admitted(self, document: Json) -> None:
        """Record that the WorkloadSpread is about to be stored."""
        metadata = member(document, "metadata")
        key = text(metadata.get("namespace")), text(metadata.get("name"))
        self._unseen[key] = self._clock.monotonic() + UNSEEN_SECONDS

    async def _custom(self) -> list[CustomWorkload]:
        body = await found_or_none(self._api.get(CONFIG_MAP, self._namespace, CONFIGURATION))
        try:
            data = {} if body is None else strings(member(msgspec.json.decode(body, type=Json), "data"))
            return custom_workloads(data)
        except ValueError as fault:  # must not affect pods of other kinds
            _log.warning("cannot read which workloads can be spread", why=str(fault))
            return []

    # Creation

    async def change(self, pod: Json, request: Request) -> None:
        """Inject the pod's subset. Raises ApiError, Unreachable, and ValueError if the subset is uncertain."""
        # After an error the pod's controller retries.
        if not self._on or request.dry_run or not _is_active(pod):
            return
        owner = controller_in(pod)
        spread = await self._spread_of(pod, owner, request.namespace) if owner is not None else None
        if spread is None or owner is None:
            return
        matched = await self._place(spread, pod, owner)
        if matched is not None:
            apply_subset(pod, spread, matched)
        elif spread.spec.leaves_pods_out:
            await self._wait_until_older(spread)

    async def _wait_until_older(self, spread: WorkloadSpread) -> None:
        """Wait until the WorkloadSpread is a second old."""
        # Timestamps have whole seconds, and the controller leaves a pod alone only if it is younger than the
        # WorkloadSpread.
        if spread.metadata.creation_timestamp is not None:
            left = 1 - (self._clock.now() - spread.metadata.creation_timestamp).total_seconds()
            if left > 0:
                await self._clock.sleep(min(left, 1))

    async def _spread_of(self, pod: Json, owner: OwnerReference, namespace: str) -> WorkloadSpread | None:
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
        custom = await self._custom() if any(_kind(spread) not in BUILT_IN for spread in spreads) else []
        labels = strings(member(pod, "metadata").get("labels"))
        for spread in spreads:
            target = spread.spec.target_ref
            if not supported(_kind(spread), custom):
                continue
            try:
                if _selects(spread, labels) and await self._owners.lead_to(target, owner, namespace, custom):
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

    async def _place(self, spread: WorkloadSpread, pod: Json, owner: OwnerReference) -> Matched | None:
        """Return the place of the pod, or None if no subset takes it (§5.3)."""
        subsets, name = spread.spec.subsets, spread.metadata.name
        if len(subsets) == 1 and subsets[0].max_replicas is None:
            return Matched(name=name, subset=subsets[0].name)
        if _kind(spread) in NUMBERED:
            found = by_ordinal(subsets, spread.status.subset_statuses, _ordinal(pod))
            return Matched(name=name, subset=found) if found else None
        version = self._version(pod, owner)
        with suppress(Gone):
            return await self._places_of(spread).take(pod, version, partial(self._replicas, spread, version))
        return None

    def _version(self, pod: Json, owner: OwnerReference) -> str:
        labels = strings(member(pod, "metadata").get("labels"))
        return version_of(labels, tracked=self._versioned.tracks(owner.kind))

    async def _replicas(self, spread: WorkloadSpread, version: str) -> int | None:
        """Return the target's replicas if a new book needs them, else None. Raises ValueError if not a number."""
        if spread.status.versioned_subset_statuses.get(version) or not uses_percent(spread.spec.subsets):
            return None
        target, chosen_by = spread.spec.target_ref, spread.spec.target_filter
        paths = replicas_path(_kind(spread), await self._custom(), chosen_by.replicas_path_list if chosen_by else ())
        resource = await self._owners.resource(target.api_version, target.kind)
        body = await found_or_none(self._api.get(resource, spread.metadata.namespace, target.name))
        return 0 if body is None else replicas_of(msgspec.json.decode(body, type=Json), paths)

    def _places_of(self, spread: WorkloadSpread) -> Places:
        meta = spread.metadata
        if meta.uid not in self._places:
            existing = {one.metadata.uid for one in self.cache.values()}
            self._places = {uid: places for uid, places in self._places.items() if uid in existing}
            writer = StatusWriter(
                self._api, self._clock, self._entropy, BOOKS_STATUS, self.cache, meta.namespace, meta.name
            )
            self._places[meta.uid] = Places(writer, self._clock, self._entropy, self._peers)
        return self._places[meta.uid]

    async def _lend(self, question: LoanRequest) -> Grant | None:
        """Return the place for a pod of another replica, as `Places.lend` does."""
        places = self._places.get(question.uid)
        return Grant() if places is None else await places.lend(question.version, question.subset, question.pod)

    # Deletion

    async def check_removal(self, change: PodChange) -> CheckResult:
        """Return the place of a pod that is about to be deleted or evicted (§5.5). Nothing is denied by policy."""
        if not self._on or change.dry_run or change.operation == UPDATE:
            return CheckResult()
        pod = change.pod
        matched = matched_of(strings(member(pod, "metadata").get("annotations")))
        owner = controller_in(pod)
        if matched is None or not _is_active(pod) or owner is None:
            return CheckResult()
        try:
            spread = await self._named(change.namespace, matched.name)
            if spread is None or _keeps_no_book(spread):
                return CheckResult()
            places = self._places_of(spread)
            place = self._version(pod, owner), matched.subset, name_of(pod)
            if not await places.give(*place):
                return CheckResult()
        except Gone:
            return CheckResult()
        except (ApiError, Unreachable, ValueError) as fault:
            return CheckResult(error(400, str(fault)))
        return CheckResult(take_back=partial(self._take_back, places, place))

    async def _take_back(self, places: Places, place: tuple[str, str, str]) -> None:
        """Restore the place of a pod that stays after all. Raises ApiError, Unreachable, ValueError."""
        with suppress(Gone):
            await places.restore(*place)

    async def _named(self, namespace: str, name: str) -> WorkloadSpread | None:
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
    target, kind = spread.spec.target_ref, _kind(spread)
    owners = owners_of_pods(kind, custom)
    condition = controlled_by(owners, {kind: target.name} if by_name and kind in owners else None)
    return PodRule("WorkloadSpreads", condition, spread.metadata.namespace)


def _kind(spread: WorkloadSpread) -> GroupKind:
    return spread.spec.target_ref.identity[:2]


def _is_active(pod: Json) -> bool:
    ended = member(pod, "status").get("phase") in ("Succeeded", "Failed")
    return not ended and not member(pod, "metadata").get("deletionTimestamp")


def _selects(spread: WorkloadSpread, labels: dict[str, str]) -> bool:
    """Report whether the filter selects the pod. Raises ValueError if it cannot be parsed."""
    given = spread.spec.target_filter
    if given is None or given.selector is None or given.selector == LabelSelector():
        return True
    return Selector.compile(given.selector).matches(labels)


def _keeps_no_book(spread: WorkloadSpread) -> bool:
    subsets = spread.spec.subsets
    return _kind(spread) in NUMBERED or (len(subsets) == 1 and subsets[0].max_replicas is None)


def _ordinal(pod: Json) -> int:
    begin, _, digits = name_of(pod).rpartition("-")
    return int(digits) if begin and digits.isdecimal() else -1
