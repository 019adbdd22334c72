"""Leases, shards and fencing: who may write (DESIGN §5).

Keys are hashed to N shards, and each shard is one Lease. With one shard a service is a leader with hot standbys; with
more, replicas share the work: every replica shows a member Lease, and takes no more than its fair share of shards.

Two rules keep two replicas from writing for one key. A holder writes only until a *monotonic* deadline that counts from
the moment its last successful renewal was *sent*; and a challenger takes a Lease over only after it has seen it
unchanged for the whole lease duration on its own monotonic clock. So neither skewed wall clocks nor a paused process
break the fence: a replica that wakes up from a pause finds its deadline passed and writes nothing.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import msgspec
import structlog

from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import LEASE
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable

SERVICE_LABEL = "flotilla.kruise.io/service"
ROLE_LABEL = "flotilla.kruise.io/role"

RENEW_SHARE = 0.3
"""A lease is renewed when this share of its duration has passed: at least two tries before the fence falls."""

FENCE_SHARE = 2 / 3
"""A holder stops writing after this share of the duration; the rest is for requests that are still on their way."""


REQUEST_SHARE = 0.25
"""An answer about leases is waited for during this share of the duration. A first renewal that vanishes then leaves
time for a second one, which follows at once, before the fence falls: 0.3 + 0.25 are less than 2/3."""

RENEWALS_AT_ONCE = 8
"""How many leases are renewed side by side; there are a few per replica."""

RELEASE_SECONDS = 5.0
RELEASE_TRIES = 3
"""How long and how often a replica that ends tries to release its leases; it takes milliseconds."""


class LeaseTerms(msgspec.Struct, frozen=True):
    """Seconds. The defaults are those of `--leader-election-*` (install.md §4)."""

    duration: float = 15.0
    retry: float = 2.0

    @property
    def request(self) -> float:
        """How long one request may take; the client itself would wait much longer than a lease lasts."""
        return self.duration * REQUEST_SHARE


class LeaseSpec(Model):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


def shard_of(namespace: str, name: str, shards: int) -> int:
    """The shard of an object: stable across releases and replicas."""
    return zlib.crc32(f"{namespace}/{name}".encode()) % shards


def micro_time(now: datetime) -> str:
    """A Kubernetes MicroTime."""
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaseHold:
    """One Lease as seen and, at times, held by this replica."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        namespace: str,
        name: str,
        identity: str,
        terms: LeaseTerms,
        labels: dict[str, str],
    ) -> None:
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self.name = name
        self._identity = identity
        self._terms = terms
        self._labels = labels
        self._seen_version = ""
        self._seen_at = 0.0
        self._lease: Lease | None = None
        self._renewed_at = 0.0
        self._deadline = 0.0
        self.unanswered = False
        """The last write has vanished: it may have happened or not."""
        self.tenure = 0
        """Counts the times that validity began. What was known in an earlier one is out of date, even if nobody else
        held the lease in between: nothing was planned meanwhile."""

    @property
    def valid(self) -> bool:
        """This replica surely holds the lease now, with time left for a request."""
        return self._clock.monotonic() < self._deadline

    @property
    def stale(self) -> bool:
        """The lease has not changed for its whole duration, or nobody holds it: it may be taken."""
        if self._lease is None or not self._lease.spec.holder_identity:
            return True
        return self._clock.monotonic() - self._seen_at >= self._terms.duration

    @property
    def holder(self) -> str:
        """Who holds the lease as far as we know."""
        return (self._lease.spec.holder_identity or "") if self._lease else ""

    def observe(self, lease: Lease | None) -> None:
        """Take in the lease as it was just read."""
        self.unanswered = False
        version = lease.metadata.resource_version if lease else ""
        if lease is None or version != self._seen_version:
            self._seen_version = version
            self._seen_at = self._clock.monotonic()
        self._lease = lease
        if lease is not None and lease.spec.holder_identity != self._identity:
            self._deadline = 0.0

    async def acquire_or_renew(self) -> bool:
        """Take the lease if it is free or ours, renew it when it is time. True while it is validly held."""
        now = self._clock.monotonic()
        ours = self._lease is not None and self._lease.spec.holder_identity == self._identity
        if ours and self.valid and now - self._renewed_at < self._terms.duration * RENEW_SHARE:
            return True
        if not ours and not self.stale:
            return False
        return await self._write(self._identity, started=now)

    async def release(self) -> bool:
        """Give the lease up at once, so that a standby need not wait for it to expire. False when it may be ours still.
        If somebody else took it meanwhile, the write conflicts."""
        self._deadline = 0.0
        if self.holder == self._identity:
            await self._write("", started=self._clock.monotonic())
            self._deadline = 0.0
        return self.holder != self._identity

    async def _write(self, holder: str, started: float) -> bool:
        now = micro_time(self._clock.now())
        old = self._lease.spec if self._lease else LeaseSpec()
        changed = old.holder_identity != holder
        body = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {
                "name": self.name,
                "namespace": self._namespace,
                "labels": self._labels,
                **({"resourceVersion": self._lease.metadata.resource_version} if self._lease else {}),
            },
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(int(self._terms.duration), 1),
                "acquireTime": now if changed or not old.acquire_time else old.acquire_time,
                "renewTime": now,
                "leaseTransitions": (old.lease_transitions or 0) + (1 if changed else 0),
            },
        }
        data = msgspec.json.encode(body)
        try:
            async with asyncio.timeout(self._terms.request):
                if self._lease is None:
                    reply = await self._api.create(LEASE, self._namespace, data)
                else:
                    reply = await self._api.replace(LEASE, self._namespace, self.name, data)
        except ApiError as error:
            if error.code in (404, 409):  # somebody else was faster; the next tick sees who
                self._deadline = 0.0
                return False
            return self.valid
        except TimeoutError:
            self.unanswered = True
            return self.valid
        except Unreachable:
            return self.valid  # unknown outcome: the old deadline stands, the next tick reads again
        self.observe(msgspec.json.decode(reply, type=Lease))
        if holder == self._identity:
            if not self.valid:
                self.tenure += 1
            self._renewed_at = started
            self._deadline = started + self._terms.duration * FENCE_SHARE
        return self.valid


OnGain = Callable[[frozenset[int]], Awaitable[None]]
OnServing = Callable[[frozenset[int]], None]


class Shards:
    """The shards of one service: takes, renews and sheds leases, and answers whether a key may be written."""

    def __init__(
        self,
        *,
        api: Api,
        clock: Clock,
        service: str,
        namespace: str,
        identity: str,
        count: int = 1,
        names: Sequence[str] = (),
        terms: LeaseTerms | None = None,
    ) -> None:
        """`names` names the shards one by one instead of counting them; leases are `flotilla-<service>-<name>`."""
        self._api = api
        self._clock = clock
        self._service = service
        self._namespace = namespace
        self._terms = terms or LeaseTerms()
        self._on_gain: OnGain | None = None
        self._on_serving: OnServing | None = None
        self._taking: asyncio.Task[None] | None = None
        self._log = structlog.get_logger(service=service)
        names = names or [str(index) for index in range(count)]
        self.count = len(names)
        self._leases = [self._hold(f"flotilla-{service}-{name}", identity, "shard") for name in names]
        self._member = self._hold(f"flotilla-{service}-member-{identity}", identity, "member")
        self._peers: dict[str, LeaseHold] = {}
        self._identity = identity
        self._serving: dict[int, int] = {}  # shards that were taken over, and in which tenure
        self._retired = False

    def _hold(self, name: str, identity: str, role: str) -> LeaseHold:
        labels = {SERVICE_LABEL: self._service, ROLE_LABEL: role}
        return LeaseHold(self._api, self._clock, self._namespace, name, identity, self._terms, labels)

    def on_change(self, gain: OnGain, serving: OnServing) -> None:
        """Await `gain` with newly held shards (the take-over LIST), then call `serving`: their keys may be planned."""
        self._on_gain = gain
        self._on_serving = serving

    @property
    def serving(self) -> frozenset[int]:
        """Shards that are held and taken over."""
        return frozenset(index for index in self._serving if self.serves(index))

    def owns(self, namespace: str, name: str) -> bool:
        """The fence: this replica serves the object's shard, and its lease is valid at this very moment."""
        return self.serves(shard_of(namespace, name, self.count))

    def fence(self, namespace: str, name: str) -> Callable[[], bool]:
        """`owns` for one pass over the object: false for good once the tenure is over in which the pass began, because
        its plan is then out of date, even if the lease came back."""
        index = shard_of(namespace, name, self.count)
        lease, tenure = self._leases[index], self._leases[index].tenure
        return lambda: lease.tenure == tenure and self.serves(index)

    def serves(self, index: int) -> bool:
        """The shard is held and taken over, at this very moment."""
        lease = self._leases[index]
        return lease.valid and self._serving.get(index) == lease.tenure

    def retire(self) -> None:
        """Serve nothing any more. The leases stay ours until `run` is cancelled, so that nobody else begins while the
        answers to our last writes are on their way."""
        self._retired = True
        self._serving.clear()

    async def run(self) -> None:
        """Keep the leases for as long as the service lives; release them when cancelled."""
        under_way: asyncio.Task[bool] | None = None
        try:
            while True:
                under_way = asyncio.create_task(self.tick())
                answered = await asyncio.shield(under_way)
                await self._clock.sleep(self._terms.retry if answered else 0)
        finally:
            self.retire()
            if self._taking is not None:
                self._taking.cancel()
            await self._hand_over([under_way] if under_way else [])

    async def _hand_over(self, under_way: Sequence[asyncio.Task[bool]]) -> None:
        """Release everything at once. A renewal that was cut off would happen before the release, which then conflicts,
        or after it: so the last round is waited for. An apiserver that does not answer must not keep us from ending:
        then the leases expire."""
        error = "they are still ours"
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await asyncio.gather(*under_way, return_exceptions=True)
                for _ in range(RELEASE_TRIES):
                    if await self._release_all():
                        return
        except TimeoutError:
            error = f"no answer in {RELEASE_SECONDS:g} s"
        except (ApiError, Unreachable) as failure:
            error = str(failure)
        self._log.warning("leases not released, they will expire", error=error)

    async def _release_all(self) -> bool:
        """Release what the apiserver calls ours, which is more than we know after an answer that did not come."""
        await self._observe()
        return all(await asyncio.gather(*(lease.release() for lease in [*self._leases, self._member])))

    async def tick(self) -> bool:
        """One round: look at all leases, renew ours, take or shed shards, take over what was gained. False when a
        request was not answered, which leaves no time for a pause."""
        try:
            await self._observe()
        except (ApiError, Unreachable) as error:
            self._log.warning("leases cannot be read", error=str(error))
            return True
        except TimeoutError:
            self._log.warning("leases cannot be read", error=f"no answer in {self._terms.request:g} s")
            return False
        share = self._fair_share()
        held = [index for index, lease in enumerate(self._leases) if lease.holder == self._identity]
        for index in held[share:]:
            self._serving.pop(index, None)
            await self._leases[index].release()
        await self._renew([self._leases[index] for index in held[:share]])
        kept = len(held[:share])
        for index, lease in enumerate(self._leases):
            if kept < share and lease.stale and index not in held:
                kept += 1 if await lease.acquire_or_renew() else 0
        self._take_over()
        return not any(lease.unanswered for lease in (*self._leases, self._member))

    async def _renew(self, ours: Sequence[LeaseHold]) -> None:
        """What is ours, and our own membership. Side by side: one after the other, the answers that do not come would
        add up to more than a lease lasts."""
        places = asyncio.Semaphore(RENEWALS_AT_ONCE)

        async def renew(lease: LeaseHold) -> None:
            async with places:
                await lease.acquire_or_renew()

        members = [self._member] if self.count > 1 else []
        await asyncio.gather(*(renew(lease) for lease in (*members, *ours)))

    def _take_over(self) -> None:
        """Start taking over what was gained, or lost for a while. It runs beside the renewals: a long LIST must not
        cost us the lease."""
        for index in [index for index in self._serving if not self.serves(index)]:
            del self._serving[index]
        valid = {index: lease.tenure for index, lease in enumerate(self._leases) if lease.valid}
        gained = {index: tenure for index, tenure in valid.items() if index not in self._serving}
        if gained and not self._retired and (self._taking is None or self._taking.done()):
            self._taking = asyncio.create_task(self._gain(gained))

    async def _gain(self, tenures: dict[int, int]) -> None:
        gained = frozenset(tenures)
        try:
            if self._on_gain is not None:
                await self._on_gain(gained)
        except (ApiError, Unreachable) as error:
            self._log.warning("take-over failed, trying again", shards=sorted(gained), error=str(error))
            return
        if self._retired:
            return
        self._serving |= tenures  # one that lapsed meanwhile is in a later tenure, or in none
        self._log.info("shards gained", gained=sorted(gained), serving=sorted(self.serving))
        if self._on_serving is not None:
            self._on_serving(gained)

    async def _observe(self) -> None:
        selector = f"{SERVICE_LABEL}={self._service}"
        async with asyncio.timeout(self._terms.request):
            page = await self._api.list(LEASE, self._namespace, label_selector=selector, resource_version="")
        seen = {lease.metadata.name: lease for lease in (msgspec.json.decode(item, type=Lease) for item in page.items)}
        for lease in [*self._leases, self._member]:
            lease.observe(seen.get(lease.name))
        for name, lease in seen.items():
            if lease.metadata.labels.get(ROLE_LABEL) == "member" and name != self._member.name:
                self._peers.setdefault(name, self._hold(name, self._identity, "member")).observe(lease)
        for name in [name for name in self._peers if name not in seen]:
            del self._peers[name]

    def _fair_share(self) -> int:
        """How many shards this replica may hold, given the members that are alive."""
        alive = 1 + sum(1 for peer in self._peers.values() if peer.holder and not peer.stale)
        return -(-self.count // alive)
