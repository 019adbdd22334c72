"""One Lease: its holder, how long it is surely held, and when it may be taken over (architecture.md §5).

Two rules keep two replicas from writing for one key. A holder writes only until a *monotonic* deadline that counts from
the moment its last successful renewal was *sent*; and a challenger takes over a Lease only after it has seen it
unchanged for the whole lease duration on its own monotonic clock. So neither skewed wall clocks nor a paused process
break the fence: a replica that wakes up from a pause finds its deadline passed and writes nothing.
"""

import asyncio
from datetime import datetime

import msgspec

from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import LEASE
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.mirror.table import version_of

RENEW_SHARE = 0.3
"""Share of a lease's duration after which it is renewed: leaves two attempts at least before the deadline."""

FENCE_SHARE = 2 / 3
"""Share of the duration after which a holder stops writing, even during a request.

The rest of the duration is for requests that the apiserver has begun to process.
"""

REQUEST_SHARE = 0.25
"""Timeout of requests about leases, as a share of the duration.

If a first renewal is lost, a second follows at once and still ends before the deadline: 0.3 + 0.25 are less than 2/3.
"""

FORGET_AFTER = 4
"""Durations without a change after which a lease is deleted, because its replica was killed.

A replica that was only suspended creates a new member lease when it wakes up.
"""


class LeaseTerms(msgspec.Struct, frozen=True):
    """Durations in seconds. The defaults are those of `--leader-election-*` (install.md §4)."""

    duration: float = 15.0
    retry: float = 2.0

    @property
    def request(self) -> float:
        """The timeout of one request; the client's own is much longer than a lease."""
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


def micro_time(now: datetime) -> str:
    """Format a Kubernetes MicroTime."""
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
        """The last write got no response: it is unknown whether it took effect."""
        self.tenure = 0
        """Number of times that the lease became valid.

        State from an earlier tenure is out of date, even if no other replica held the lease in between: nothing was
        planned meanwhile.
        """

    @property
    def valid(self) -> bool:
        """Report whether this replica surely holds the lease now, with time left for a request."""
        return self._clock.monotonic() < self._deadline

    @property
    def seconds_left(self) -> float:
        """The seconds until the lease is no longer `valid` unless renewed; negative after that."""
        return self._deadline - self._clock.monotonic()

    @property
    def stale(self) -> bool:
        """Report whether the lease may be taken: it has no holder, or has not changed for its whole duration."""
        if self._lease is None or not self._lease.spec.holder_identity:
            return True
        return self._clock.monotonic() - self._seen_at >= self._terms.duration

    @property
    def forgotten(self) -> bool:
        """Report whether the lease exists and is unchanged for so long that its holder will not return."""
        unchanged = self._clock.monotonic() - self._seen_at
        return self._lease is not None and unchanged >= self._terms.duration * FORGET_AFTER

    @property
    def version(self) -> int:
        """The lease's resourceVersion when last read or written; 0 if there is none."""
        return version_of(self._lease) if self._lease else 0

    @property
    def holder(self) -> str:
        """The last known holder of the lease."""
        return (self._lease.spec.holder_identity or "") if self._lease else ""

    def observe(self, lease: Lease | None) -> None:
        """Update the state from the lease as just read."""
        self.unanswered = False
        version = lease.metadata.resource_version if lease else ""
        if lease is None or version != self._seen_version:
            self._seen_version = version
            self._seen_at = self._clock.monotonic()
        self._lease = lease
        if lease is not None and lease.spec.holder_identity != self._identity:
            self._deadline = 0.0

    async def acquire_or_renew(self) -> bool:
        """Take the lease if it is free or ours, and renew it when due; return whether it is validly held."""
        now = self._clock.monotonic()
        ours = self._lease is not None and self._lease.spec.holder_identity == self._identity
        if ours and self.valid and now - self._renewed_at < self._terms.duration * RENEW_SHARE:
            return True
        if not ours and not self.stale:
            return False
        return await self._write(self._identity, started=now)

    async def release(self) -> bool:
        """Release the lease, so that a standby need not wait for it to expire; return False when it may still be ours.

        If another replica took it meanwhile, the write conflicts.
        """
        self._deadline = 0.0
        if self.holder == self._identity:
            await self._write("", started=self._clock.monotonic())
            self._deadline = 0.0
        return self.holder != self._identity

    async def remove(self) -> bool:
        """Delete the lease as last seen; return False when it changed since, or when there was no response.

        Raises ApiError when the apiserver refuses.
        """
        self._deadline = 0.0
        if self._lease is None:
            return True
        version = self._lease.metadata.resource_version
        try:
            async with asyncio.timeout(self._terms.request):
                await self._api.delete(LEASE, self._namespace, self.name, resource_version=version)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
            return error.code == 404
        except TimeoutError:
            self.unanswered = True
            return False
        except Unreachable:
            return False  # unknown outcome: the next LIST shows it
        self.observe(None)
        return True

    async def _write(self, holder: str, started: float) -> bool:
        now = micro_time(self._clock.now())
        old = self._lease.spec if self._lease else LeaseSpec()
        changed = old.holder_identity != holder
        body = {
            **LEASE.type_meta,
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
            if error.code in (404, 409):  # another replica was faster; the next tick sees which
                self._deadline = 0.0
                return False
            return self.valid
        except TimeoutError:
            self.unanswered = True
            return self.valid
        except Unreachable:
            return self.valid  # unknown outcome: the old deadline remains, the next tick reads again
        self.observe(msgspec.json.decode(reply, type=Lease))
        if holder == self._identity:
            if not self.valid:
                self.tenure += 1
            self._renewed_at = started
            self._deadline = started + self._terms.duration * FENCE_SHARE
        return self.valid
