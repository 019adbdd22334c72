"""Assigns keys to replicas by shards (architecture.md §5).

Keys are hashed to N shards, and each shard is one Lease (`control/leases.py` keeps two replicas from holding it at
once). With one shard a service is a leader with hot standbys; with more, replicas share the work: every replica has a
member Lease, and takes no more than its fair share of shards.

Replicas with different numbers of shards would both write for some keys. So leases carry the number, and replicas of
one number take nothing while those of another hold any: in a rolling update they take over when the last old one has
ended. The first shard, which every number has, decides between replicas that start at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

import msgspec
import structlog

from flotilla_common.api.resources import LEASE
from flotilla_common.bus.affiliation import key_hash
from flotilla_common.clock import Clock
from flotilla_common.control.fence import Fence
from flotilla_common.control.leases import Lease, LeaseHold, LeaseTerms
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.mirror.table import VersionsWentBack, version_number, version_of

SERVICE_LABEL = "flotilla.kruise.io/service"
ROLE_LABEL = "flotilla.kruise.io/role"
NUMBER_LABEL = "flotilla.kruise.io/shards"
"""Number of shards that the lease's holder is configured with."""

RENEWALS_AT_ONCE = 8
"""Concurrent renewals; a replica has a few leases."""

JOIN_SECONDS = 3.0
"""Time in which a replica that is alone at its start takes none of several shards, because others may be starting, too.

It would read the objects of all shards, and Python keeps most of that memory when others take their share.
"""

RELEASE_SECONDS = 5.0
RELEASE_TRIES = 3
"""Timeout and attempts for a terminating replica to release its leases; it takes milliseconds."""


def shard_of(namespace: str, name: str, shards: int) -> int:
    """Return the shard of an object: stable across releases and replicas."""
    return key_hash(namespace, name) % shards


class _Share:
    """The number of shards that a replica may hold, of those that are shared apart and of the others."""

    def __init__(self, apart: Collection[int], most_apart: int, most: int) -> None:
        self._apart = apart
        self._room = {True: most_apart, False: most}

    def has_room(self, index: int) -> bool:
        """Report whether the replica may hold one more shard of this one's sort."""
        return self._room[index in self._apart] > 0

    def add(self, index: int) -> None:
        """Count a shard that the replica holds."""
        self._room[index in self._apart] -= 1

    def first(self, held: Iterable[int]) -> list[int]:
        """Count the first ones of these for which there is room, and return them."""
        kept: list[int] = []
        for index in held:
            if self.has_room(index):
                self.add(index)
                kept.append(index)
        return kept


OnGain = Callable[[frozenset[int]], Awaitable[None]]
OnServing = Callable[[frozenset[int]], None]


class Shards:
    """The shards of one service: takes, renews and releases leases, and reports whether a key may be written."""

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
        apart: Collection[int] = (),
    ) -> None:
        """Identify the shards by `names` instead of numbers, if given; leases are `flotilla-<service>-<name>`.

        A replica gives way while a shard is held whose name it does not know, so of any two lists of names in use one
        has to contain the other. Those in `apart` are shared evenly among themselves, and so are the others.
        """
        self._apart = frozenset(apart)
        self._api = api
        self._clock = clock
        self._service = service
        self._namespace = namespace
        self._terms = terms or LeaseTerms()
        self._on_gain: OnGain | None = None
        self._on_serving: OnServing | None = None
        self._on_held: OnServing | None = None
        self._held: frozenset[int] = frozenset()  # as `_on_held` was called last
        self._taking: asyncio.Task[None] | None = None
        self._log = structlog.get_logger(service=service)
        self._number = "" if names else str(count)  # shards with names do not depend on the number
        names = names or [str(index) for index in range(count)]
        self.count = len(names)
        self._leases = [self._hold(f"flotilla-{service}-{name}", identity, "shard") for name in names]
        self._member = self._hold(f"flotilla-{service}-member-{identity}", identity, "member")
        self._peers: dict[str, LeaseHold] = {}
        self._strangers: dict[str, LeaseHold] = {}  # leases of replicas that share differently
        self._identity = identity
        self._serving: dict[int, int] = {}  # resynced shards, and the tenure of that resync
        self._takes_alone_from = float("-inf")  # monotonic
        self._retired = False
        self._version = 0  # resourceVersion of the last LIST of leases
        self._went_back: VersionsWentBack | None = None  # raised by a resync

    def _hold(self, name: str, identity: str, role: str) -> LeaseHold:
        labels = {SERVICE_LABEL: self._service, ROLE_LABEL: role} | (
            {NUMBER_LABEL: self._number} if self._number else {}
        )
        return LeaseHold(self._api, self._clock, self._namespace, name, identity, self._terms, labels)

    def on_change(self, gain: OnGain, serving: OnServing, held: OnServing | None = None) -> None:
        """Await `gain` with newly held shards (the resync), then call `serving`: their keys may be planned.

        `held` is called first, with all shards whose leases are valid, and also after others lapsed.
        """
        self._on_gain = gain
        self._on_serving = serving
        self._on_held = held

    @property
    def serving(self) -> frozenset[int]:
        """The shards that are held and resynced."""
        return frozenset(index for index in self._serving if self.serves(index))

    def owns(self, namespace: str, name: str) -> bool:
        """Report whether this replica serves the object's shard, with a lease that is valid at this moment."""
        return self.serves(shard_of(namespace, name, self.count))

    def fence(self, namespace: str, name: str) -> Fence:
        """Return the fence of one pass over the object, which applies the rule of `owns` within the current tenure.

        After the tenure the plan is out of date, even if the lease comes back, so the fence stays closed.
        """
        index = shard_of(namespace, name, self.count)
        lease, tenure = self._leases[index], self._leases[index].tenure
        return Fence(
            lambda: lease.tenure == tenure and self.serves(index),
            lambda: lease.seconds_left if lease.tenure == tenure else 0.0,
        )

    def serves(self, index: int) -> bool:
        """Report whether the shard is held and resynced at this moment."""
        lease = self._leases[index]
        return lease.valid and self._serving.get(index) == lease.tenure

    def retire(self) -> None:
        """Stop serving, but keep the leases until `run` is cancelled.

        So no other replica starts while responses to our last writes are outstanding.
        """
        self._retired = True
        self._serving.clear()

    def join(self) -> None:
        """Give others that start now JOIN_SECONDS to become members, if there are several shards to share."""
        if self._number and self.count > 1:
            self._takes_alone_from = self._clock.monotonic() + JOIN_SECONDS

    async def run(self) -> None:
        """Keep the leases until cancelled, then release them. Raises VersionsWentBack."""
        self.join()
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
        """Release all leases, after the last round: a cancelled renewal might still take effect.

        It would then conflict with the release, or undo it. If the apiserver does not respond, the leases expire.
        """
        error = "the release is not confirmed"
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
        """Release the leases that are ours on the apiserver: after a lost response these may be more than expected."""
        await self._observe()
        released = all(await asyncio.gather(*(lease.release() for lease in self._leases)))
        return released and await self._member.remove()

    async def tick(self) -> bool:
        """Run one round: read all leases, renew ours, take or release shards, resync gained ones.

        Returns False when a request timed out: then the next round must follow at once. Raises VersionsWentBack.
        """
        if self._went_back is not None:
            raise self._went_back
        try:
            await self._observe()
        except (ApiError, Unreachable) as error:
            self._log.warning("leases cannot be read", error=str(error))
            return True
        except TimeoutError:
            self._log.warning("leases cannot be read", error=f"no answer in {self._terms.request:g} s")
            return False
        gives_way = self._gives_way()
        share = _Share(self._apart, 0, 0) if gives_way else self._fair_share()
        held = [index for index, lease in enumerate(self._leases) if lease.holder == self._identity]
        kept = share.first(held)
        for index in [index for index in held if index not in kept]:
            self._serving.pop(index, None)
            await self._leases[index].release()
        is_member = self.count > 1 and (bool(self._number) or not gives_way)
        await self._renew([self._leases[index] for index in kept], as_member=is_member)
        if self._members_alive() > 1 or self._clock.monotonic() >= self._takes_alone_from:
            await self._take(share, held)
        self._resync()
        await self._delete_what_is_left()
        return not any(lease.unanswered for lease in (*self._leases, self._member, *self._peers.values()))

    async def _take(self, share: "_Share", held: Collection[int]) -> None:
        """Take shards that have no holder, up to the rest of the share."""
        for index, lease in enumerate(self._leases):
            free = lease.stale and index not in held and (index == 0 or self._number_leads())
            if free and share.has_room(index) and await lease.acquire_or_renew():
                share.add(index)

    async def _renew(self, ours: Sequence[LeaseHold], *, as_member: bool) -> None:
        """Renew our leases and our membership concurrently.

        In sequence, a few requests that time out would take longer than a lease lasts. A replica that gives way to
        other names is no member, so that others leave it no share; with numbers they know that by its label.
        """
        slots = asyncio.Semaphore(RENEWALS_AT_ONCE)

        async def renew(lease: LeaseHold) -> None:
            async with slots:
                await lease.acquire_or_renew()

        if not as_member and self._member.holder:
            await self._leave()
        members = [self._member] if as_member else []
        await asyncio.gather(*(renew(lease) for lease in (*members, *ours)))

    async def _leave(self) -> None:
        """Remove our membership; where that is refused, it expires."""
        try:
            await self._member.remove()
        except ApiError as error:
            self._log.warning("membership not removed, it will expire", error=str(error))

    async def _delete_what_is_left(self) -> None:
        """Delete abandoned leases: of killed members, and of shards beyond our number or with names we do not know.

        Every starting replica would wait for the latter's holder, which does not exist any more. Names without a holder
        are deleted as soon as none of them is held.
        """
        ours = {lease.name for lease in self._leases}
        beyond = {name: lease for name, lease in self._strangers.items() if name not in ours}
        left = [lease for lease in (self._peers | beyond).values() if lease.forgotten]
        if not self._number and not self._gives_way():
            left += [lease for lease in beyond.values() if not lease.holder and not lease.forgotten]
        for answer in await asyncio.gather(*(lease.remove() for lease in left), return_exceptions=True):
            if isinstance(answer, ApiError):
                self._log.warning("lease of a dead replica not deleted, trying again", error=str(answer))
            elif isinstance(answer, BaseException):
                raise answer

    def _resync(self) -> None:
        """Start the resync of shards that were gained, or lost for a while.

        It runs beside the renewals: a long LIST must not cost us the lease.
        """
        for index in [index for index in self._serving if not self.serves(index)]:
            del self._serving[index]
        valid = {index: lease.tenure for index, lease in enumerate(self._leases) if lease.valid}
        if self._on_held is not None and self._held != valid.keys():
            self._held = frozenset(valid)
            self._on_held(self._held)
        gained = {index: tenure for index, tenure in valid.items() if index not in self._serving}
        if gained and not self._retired and (self._taking is None or self._taking.done()):
            self._taking = asyncio.create_task(self._gain(gained))

    async def _gain(self, tenures: dict[int, int]) -> None:
        gained = frozenset(tenures)
        try:
            if self._on_gain is not None:
                await self._on_gain(gained)
        except (ApiError, Unreachable) as error:
            self._log.warning("resync failed, trying again", shards=sorted(gained), error=str(error))
            return
        except VersionsWentBack as error:
            self._went_back = error
            return
        except Exception:  # noqa: BLE001 - without a resync nothing is served: the next round tries again
            self._log.exception("resync failed, trying again", shards=sorted(gained))
            return
        if self._retired:
            return
        self._serving |= tenures  # a shard whose lease lapsed meanwhile is in a later tenure, or in none
        self._log.info("shards gained", gained=sorted(gained), serving=sorted(self.serving))
        if self._on_serving is not None:
            self._on_serving(gained)

    async def _observe(self) -> None:
        selector = f"{SERVICE_LABEL}={self._service}"
        async with asyncio.timeout(self._terms.request):
            page = await self._api.list(LEASE, self._namespace, label_selector=selector, resource_version="")
        seen = {lease.metadata.name: lease for lease in (msgspec.json.decode(item, type=Lease) for item in page.items)}
        known = {lease.name: lease.version for lease in [*self._leases, self._member]}
        for lease in [*self._leases, self._member]:
            lease.observe(seen.get(lease.name))
        for name, lease in seen.items():
            if lease.metadata.labels.get(ROLE_LABEL) == "member" and name != self._member.name:
                self._peers.setdefault(name, self._hold(name, self._identity, "member")).observe(lease)
        for name in [name for name in self._peers if name not in seen]:
            del self._peers[name]
        others = {name: lease for name, lease in seen.items() if self._is_strange(lease)}
        for name, lease in others.items():
            self._strangers.setdefault(name, self._hold(name, self._identity, "shard")).observe(lease)
        self._strangers = {name: hold for name, hold in self._strangers.items() if name in others}
        self._expect_no_older(page.resource_version, known, seen)

    def _expect_no_older(self, version: str, known: Mapping[str, int], seen: Mapping[str, Lease]) -> None:
        """Raise VersionsWentBack if a resourceVersion is lower than before.

        That happens only if etcd was restored from a backup. Then all cached versions are wrong, and the process has to
        restart. The LIST's version may already be as high as before; the version of a lease is older then.
        """
        before, now = {"leases": self._version}, {"leases": version_number(version)}
        before |= {name: at for name, at in known.items() if name in seen}
        now |= {name: version_of(lease) for name, lease in seen.items()}
        self._version = now["leases"]
        for name in before:
            if now[name] < before[name]:
                text = f"resourceVersion of {name} went back from {before[name]} to {now[name]}: etcd was restored"
                self._log.error(f"{text}, restarting")
                raise VersionsWentBack(f"{text}, restarting")

    def _fair_share(self) -> "_Share":
        """Return how many shards this replica may hold, given the live members."""
        members, apart = self._members_alive(), len(self._apart)
        return _Share(self._apart, -(-apart // members), -(-(self.count - apart) // members))

    def _members_alive(self) -> int:
        """Return the number of live members with our number of shards, this one included."""
        peers = [peer for name, peer in self._peers.items() if name not in self._strangers]
        return 1 + sum(1 for peer in peers if peer.holder and not peer.stale)

    def _is_strange(self, lease: Lease) -> bool:
        """Report whether the lease's holder has another number of shards, or other names.

        Older releases did not publish their number.
        """
        if not self._number:
            is_shard = lease.metadata.labels.get(ROLE_LABEL) == "shard"
            return is_shard and all(lease.metadata.name != ours.name for ours in self._leases)
        return lease.metadata.labels.get(NUMBER_LABEL, self._number) != self._number

    def _gives_way(self) -> bool:
        """Report whether replicas with another number of shards, or other names, are active, and ours does not lead."""
        working = any(not other.stale for name, other in self._strangers.items() if name not in self._peers)
        return working and not (self._number and self._number_leads())

    def _number_leads(self) -> bool:
        """Report whether the first shard's holder has our number of shards. Shards with names need no leader."""
        first = self._leases[0]
        return not self._number or (not first.stale and first.name not in self._strangers)
