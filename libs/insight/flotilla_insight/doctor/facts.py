"""The facts about an installation after one look.

A fact may be missing: for lack of a right, of the bus, of an answer in time. Reading a missing one raises NotKnown with
the reason, and that check counts as not made.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.bus.heartbeat import Heartbeat
from flotilla_common.bus.subjects import Marker

T = TypeVar("T")


class NotKnown(Exception):
    """A fact is missing; the text has the reason."""


class Fact(msgspec.Struct, Generic[T], frozen=True):
    """A fact, or the reason why it is missing."""

    found: T | None = None
    why: str = ""

    def get(self) -> T:
        """Return the fact. Raises NotKnown."""
        if self.found is None:
            raise NotKnown(self.why)
        return self.found


class Server(msgspec.Struct, frozen=True):
    """The apiserver. `ahead`: seconds by which its clock is ahead of this machine's."""

    version: str
    ahead: float


class Probe(msgspec.Struct, frozen=True):
    """The apiserver's response to a dry run that goes through the webhook. `code` 0: no answer in time."""

    name: str
    code: int
    message: str = ""
    body: Json = {}


class Backend(msgspec.Struct, frozen=True):
    """A Service that a webhook configuration names. `ready`: its number of ready endpoints."""

    exists: bool
    ready: int = 0


class Certificate(msgspec.Struct, frozen=True):
    """A certificate as served. `problem`: why the known authorities do not trust it."""

    begin: datetime
    end: datetime
    problem: str = ""


class Rights(msgspec.Struct, frozen=True):
    """Roles and bindings, cluster-wide and of Flotilla's namespaces."""

    roles: Sequence[Json]
    bindings: Sequence[Json]


class Leases(msgspec.Struct, frozen=True):
    """Flotilla's leases in all namespaces, at the beginning of the look and some seconds later."""

    first: Sequence[Json]
    last: Sequence[Json]


class Banner(msgspec.Struct, frozen=True):
    """The INFO of a NATS server, which it sends before any login."""

    url: str
    version: str = ""
    users_needed: bool = True
    jetstream: bool = True
    certificate: Certificate | None = None
    trouble: str = ""  # why it could not be read


class Account(msgspec.Struct, frozen=True):
    """JetStream's storage and its limit, in bytes; -1: no limit."""

    storage: int = 0
    storage_limit: int = -1


class Consumer(msgspec.Struct, frozen=True):
    """A consumer of a stream. `pending`: messages that it has not been sent yet."""

    inbox: str
    pending: int


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """A stream as the server has it. Times are the server's own."""

    config: Json
    now: datetime
    offline: Sequence[str] = ()  # replicas of the stream that are offline
    marker: Marker | None = None
    marked: datetime | None = None  # when the marker was published
    consumers: Sequence[Consumer] = ()
    nodes: frozenset[str] = frozenset()  # of a stream with copies: the nodes that have some
    subjects: int = 0
    gaps: int = 0  # sequences between its first and its last message whose messages were replaced


class ReplicaHeartbeat(msgspec.Struct, frozen=True):
    """The last heartbeat of a replica.

    `ahead`: seconds by which its clock is ahead of this machine's; None: not in the heartbeat.
    """

    beat: Heartbeat
    ahead: float | None

    @property
    def who(self) -> str:
        """Return service and replica."""
        return f"{self.beat.service} {self.beat.replica}"


class Sample(msgspec.Struct, frozen=True):
    """Objects of a resource, compared some seconds later with the bus.

    It has the names of objects that are missing on the bus, older there, or there although deleted. `version`: the
    apiserver's, after the comparison. `denied`: the objects may not be listed.
    """

    compared: int
    missing: Sequence[str] = ()
    stale: Sequence[str] = ()
    ghosts: Sequence[str] = ()
    version: str = ""
    denied: bool = False


class Health(msgspec.Struct, frozen=True):
    """The state of one process of a local cluster, as `flotilla status` prints it."""

    name: str
    pid: int
    running: bool
    healthy: bool
    detail: str
    log: str


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One look. Documents are as the apiserver has them."""

    now: datetime  # by this machine's clock
    namespace: str  # of the installation
    server: Fact[Server]
    definitions: Fact[Mapping[str, Json]]  # CRDs of the groups of OpenKruise, by name
    hooks: Fact[Sequence[Json]]  # all webhook configurations
    backends: Fact[Mapping[tuple[str, str], Backend]]  # by namespace and name
    home: Fact[Json]  # the installation's namespace
    probes: Fact[Sequence[Probe]]
    rights: Fact[Rights]
    policies: Fact[frozenset[str]]  # names of admission policies
    leases: Fact[Leases]
    leader: Fact[Json]  # OpenKruise's lease; empty: it does not exist
    nodes: Fact[Sequence[Json]]
    node_leases: Fact[Sequence[Json]]
    workloads: Fact[Sequence[Json]]  # Deployments, DaemonSets, StatefulSets of Flotilla and OpenKruise
    pods: Fact[Sequence[Json]]  # of Flotilla's chart
    foreign: Fact[Mapping[str, int]]  # objects of kinds of OpenKruise that Flotilla does not serve, by CRD
    webhook_certificate: Fact[Certificate]
    banners: Fact[Sequence[Banner]]
    account: Fact[Account]
    streams: Fact[Mapping[str, Stream | None]]  # by name; None: it does not exist
    heartbeats: Fact[Sequence[ReplicaHeartbeat]]
    samples: Fact[Mapping[str, Sample]]  # by resource
    processes: Sequence[Health] = ()  # of the local set, if it is one
    local: Sequence[str] = ()  # the services of the local set
    enrolled: frozenset[str] = frozenset()  # nodes that have credentials for the bus
