"""Step 2 of the pod webhook: places a pod of a workload with a WorkloadSpread in a subset (workloadspread.md §5).

The place of a pod is given back when it is deleted.
"""

import asyncio
from contextlib import suppress
from functools import partial

import msgspec

from flotilla_common.api.admission.review import Request, error
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.kinds.workloadspread.book import Versioned, by_ordinal, matched_of, uses_percent, version_of
from flotilla_common.api.kinds.workloadspread.targets import NUMBERED, replicas_of, replicas_path
from flotilla_common.api.kinds.workloadspread.types import Matched, WorkloadSpread
from flotilla_common.api.meta import OwnerReference
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, Entropy
from flotilla_common.kube.interface import Api
from flotilla_common.settings import Settings
from flotilla_webhook.owners import controller_in
from flotilla_webhook.pods.admission import UPDATE, AdmissionStep, Check, CheckResult, PodChange
from flotilla_webhook.spreading.peers import Grant, LoanRequest, Peers
from flotilla_webhook.spreading.places import Places, name_of
from flotilla_webhook.spreading.places_ahead import BOOKS_STATUS
from flotilla_webhook.spreading.selection import SpreadSelection, kind_of
from flotilla_webhook.spreading.subsets import apply_subset
from flotilla_webhook.status_writer import Gone, StatusWriter


class Spreads:
    """Provides the step, and the check of deletions and evictions."""

    def __init__(self, api: Api, bus: Bus, clock: Clock, entropy: Entropy, *, on: bool, settings: Settings) -> None:
        """Prepare the step; `on` is the state of the gate."""
        self.selection = SpreadSelection(api, clock, on=on, namespace=settings.namespace)
        self.cache = self.selection.cache
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._versioned = Versioned.of(settings.ws_enabled_versioned_status)
        self._places: dict[str, Places] = {}  # by uid
        self._peers = Peers(bus, clock, entropy)

    async def serve(self) -> None:
        """Serve other replicas' requests for places."""
        if self.selection.on:
            await self._peers.serve(self._lend)

    async def close(self) -> None:
        """Give back the places that were taken ahead, so that other replicas need not wait until they time out."""
        await self._peers.close()
        await asyncio.gather(*(places.close() for places in self._places.values()))

    def step(self) -> AdmissionStep:
        """Return the step; idle without the gate."""
        return AdmissionStep("WorkloadSpread", self.selection.rules, self.change, lambda: self.selection.known)

    def check(self) -> Check:
        """Return the check of deletions."""
        return Check("WorkloadSpread", self.selection.removal_rules, self.check_removal, lambda: self.selection.known)

    # Creation

    async def change(self, pod: Json, request: Request) -> None:
        """Inject the pod's subset. Raises ApiError, Unreachable, and ValueError if the subset is uncertain."""
        # After an error the pod's controller retries.
        if not self.selection.on or request.dry_run or not _is_active(pod):
            return
        owner = controller_in(pod)
        spread = await self.selection.spread_of(pod, owner, request.namespace) if owner is not None else None
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

    async def _place(self, spread: WorkloadSpread, pod: Json, owner: OwnerReference) -> Matched | None:
        """Return the place of the pod, or None if no subset takes it (§5.3)."""
        subsets, name = spread.spec.subsets, spread.metadata.name
        if len(subsets) == 1 and subsets[0].max_replicas is None:
            return Matched(name=name, subset=subsets[0].name)
        if kind_of(spread) in NUMBERED:
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
        """Return the target's replicas if a new book needs them, else None. Raises ValueError for another type."""
        if spread.status.versioned_subset_statuses.get(version) or not uses_percent(spread.spec.subsets):
            return None
        target, chosen_by = spread.spec.target_ref, spread.spec.target_filter
        paths = replicas_path(
            kind_of(spread), await self.selection.custom(), chosen_by.replicas_path_list if chosen_by else ()
        )
        resource = await self.selection.owners.resource(target.api_version, target.kind)
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
        """Lend another webhook replica a place for its pod, as `Places.lend` does."""
        places = self._places.get(question.uid)
        return Grant() if places is None else await places.lend(question.version, question.subset, question.pod)

    # Deletion

    async def check_removal(self, change: PodChange) -> CheckResult:
        """Give back the place of a pod that is about to be deleted or evicted (§5.5). Nothing is denied by policy."""
        if not self.selection.on or change.dry_run or change.operation == UPDATE:
            return CheckResult()
        pod = change.pod
        matched = matched_of(strings(member(pod, "metadata").get("annotations")))
        owner = controller_in(pod)
        if matched is None or not _is_active(pod) or owner is None:
            return CheckResult()
        try:
            spread = await self.selection.named(change.namespace, matched.name)
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


def _is_active(pod: Json) -> bool:
    ended = member(pod, "status").get("phase") in ("Succeeded", "Failed")
    return not ended and not member(pod, "metadata").get("deletionTimestamp")


def _keeps_no_book(spread: WorkloadSpread) -> bool:
    subsets = spread.spec.subsets
    return kind_of(spread) in NUMBERED or (len(subsets) == 1 and subsets[0].max_replicas is None)


def _ordinal(pod: Json) -> int:
    begin, _, digits = name_of(pod).rpartition("-")
    return int(digits) if begin and digits.isdecimal() else -1
