"""Names of subjects and streams on the bus (architecture.md §3).

Kubernetes names contain dots, NATS tokens cannot: a dot becomes an underscore, which no Kubernetes name contains. The
namespace of a cluster-scoped object is an underscore, the core group is `core`.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus.affiliation import Affiliation, Interest
from flotilla_common.bus.interface import StreamSpec
from flotilla_common.bus.pod_shards import plural_of, plural_on_bus, unsharded

NO_NAMESPACE = "_"


def token(text: str) -> str:
    """Return a Kubernetes name as one NATS token."""
    return text.replace(".", "_") if text else NO_NAMESPACE


def untoken(text: str) -> str:
    """Return the Kubernetes name of a token; the inverse of `token`."""
    return "" if text == NO_NAMESPACE else text.replace("_", ".")


def kube(resource: Resource, namespace: str, name: str) -> str:
    """Return the subject on which an object of the resource is published; that of a pod continues (see `pod`)."""
    return f"kube.v1.{resource.id}.{token(namespace)}.{token(name)}"


def pod(namespace: str, name: str, affiliation: Affiliation, shard: Resource = POD) -> str:
    """Return the subject on which a pod is published: `kube.v1.core.pods.<namespace>.<name>.<owner>.<bucket>.<trait>`.

    When the last three change, the pod moves to another subject, and the former one gets a MOVED message.
    """
    return f"{kube(shard, namespace, name)}.{'.'.join(affiliation)}"


def affiliated(resource: Resource) -> bool:
    """Report whether the subjects of the resource's objects say whose they are; those of pods do."""
    return unsharded(resource) == POD


def kube_object(resource: Resource, namespace: str, name: str) -> str:
    """Return the filter for the messages of one object of the resource."""
    return kube(resource, namespace, name) + (".*.*.*" if affiliated(resource) else "")


def object_key(subject: str) -> tuple[str, str]:
    """Return namespace and name in the subject of an object. Raises ValueError for another subject."""
    _, _, _, _, namespace, name, *_ = subject.split(".")
    return untoken(namespace), untoken(name)


def affiliation(subject: str) -> Affiliation | None:
    """Return the affiliation in the subject of a pod; None for another subject."""
    tokens = subject.split(".")[6:]
    return Affiliation(*tokens) if len(tokens) == len(Affiliation._fields) else None


def object_part(subject: str) -> str:
    """Return the part of an object's subject that names the object: that of a pod without whose it is, and shard."""
    root, version, group, plural, *name = subject.split(".")[:6]
    return ".".join((root, version, group, plural_of(plural), *name))


def interest_filter(interest: Interest, shard: Resource = POD) -> str:
    """Return the filter for the pods that an interest covers."""
    namespace = interest.namespace if interest.namespace == "*" else token(interest.namespace)
    return f"kube.v1.{shard.id}.{namespace}.*.{interest.owner}.{interest.bucket}.{interest.trait}"


def kube_marker(resource: Resource) -> str:
    """Return the subject of the watcher's progress marker of the resource."""
    return f"kube.v1.{resource.id}"


def kube_filter(resource: Resource) -> str:
    """Return the filter for all objects of the resource, without the marker (`>` matches the whole stream)."""
    return f"kube.v1.{resource.id}.>"


def kube_namespace(resource: Resource, namespace: str) -> str:
    """Return the filter for the resource's objects in a namespace."""
    return f"kube.v1.{resource.id}.{token(namespace)}.>"


def act(service: str, resource: Resource, namespace: str, name: str) -> str:
    """Return the subject on which a service publishes its writes to an object."""
    return f"act.v1.{service}.{resource.plural}.{token(namespace)}.{token(name)}"


def ended_session(service: str, digest: str) -> str:
    """Return the subject on which a service publishes that a user has ended a session; the digest is of its id."""
    return f"act.v1.{service}.sessions.{NO_NAMESPACE}.{digest}"


def why(resource: Resource, namespace: str, name: str) -> str:
    """Return the subject on which the last plan's reasons for an object are published."""
    return f"why.v1.{resource.plural}.{token(namespace)}.{token(name)}"


def last_why(resource: Resource, namespace: str, name: str) -> str:
    """Return the subject of the JetStream request for the last reasons of an object.

    A user with the right to publish on it can read those reasons only.
    """
    return f"$JS.API.DIRECT.GET.{WHY_STREAM.name}.{why(resource, namespace, name)}"


def decisions(resource: Resource, namespace: str, name: str) -> str:
    """Return the subject under which all reasons for an object are kept for a day."""
    return f"decisions.v1.{resource.plural}.{token(namespace)}.{token(name)}"


def heartbeat(service: str, replica: str) -> str:
    """Return the subject of a replica's heartbeats."""
    return f"heartbeat.v1.{service}.{token(replica)}"


def places(replica: str) -> str:
    """Return the subject on which a replica of the webhook is asked for a place in a WorkloadSpread."""
    return f"places.v1.{token(replica)}"


def kube_stream(resource: Resource) -> StreamSpec:
    """Return the last-value stream of one resource."""
    name = "kube_" + resource.id.replace(".", "_")
    subjects = (kube_marker(resource), kube_filter(resource))
    return StreamSpec(name=name, subjects=subjects, last_value=True, rebuilt=True)


def node_object(node: str, resource: Resource, namespace: str, name: str) -> str:
    """Return the subject of a node's copy of an object."""
    return f"node.v1.{token(node)}.{plural_on_bus(resource)}.{token(namespace)}.{token(name)}"


def node_filter(node: str, resource: Resource) -> str:
    """Return the filter for a node's copies of the resource's objects."""
    return f"node.v1.{token(node)}.{plural_on_bus(resource)}.>"


def node_marker(resource: Resource, node: str = "") -> str:
    """Return the subject of the marker of one node's copies of the resource; without a node, of the writer's marker."""
    return f"node.v1.{token(node)}.{plural_on_bus(resource)}"


def marked_node(subject: str) -> str | None:
    """Return the node of a marker's subject, empty for the writer's; None for the subject of a copy."""
    _, _, node, *rest = subject.split(".")
    return untoken(node) if len(rest) == 1 else None


def node_stream(resource: Resource) -> StreamSpec:
    """Return the last-value stream with the copies of one resource for all nodes."""
    plural = plural_on_bus(resource)
    return StreamSpec(
        name=f"node_{plural}",
        subjects=(f"node.v1.*.{plural}", f"node.v1.*.{plural}.>"),
        last_value=True,
        rebuilt=True,
    )


def report(node: str, kind: str, namespace: str = "", name: str = "") -> str:
    """Return the subject on which the agent of a node reports on an object."""
    return f"report.v1.{token(node)}.{kind}.{token(namespace)}.{token(name)}"


def report_filter(kind: str) -> str:
    """Return the filter for all reports of one kind."""
    return f"report.v1.*.{kind}.>"


def reporter(subject: str) -> tuple[str, str, str]:
    """Return node, namespace and name in the subject of a report."""
    _, _, node, _, namespace, name = subject.split(".", 5)
    return untoken(node), untoken(namespace), untoken(name)


def service_inbox(service: str) -> str:
    """Return the prefix of a service's inboxes: each service has its own, so that others cannot read its replies."""
    return f"_INBOX.{service}"


def node_inbox(node: str) -> str:
    """Return the prefix of the inboxes of a node's agent."""
    return f"_INBOX_node.{token(node)}"


def inbox_node(inbox: str) -> str:
    """Return the node whose agent owns the inbox; empty for other inboxes."""
    prefix, _, rest = inbox.partition(".")
    return untoken(rest.partition(".")[0]) if prefix == "_INBOX_node" else ""


ACT_STREAM = StreamSpec(
    name="act", subjects=("act.v1.>",), last_value=False, max_age_seconds=24 * 3600, max_bytes=256 << 20
)
"""A day of writes or 256 MiB: about 400,000 writes of 600 bytes, enough to look back over a large rollout."""

DECISIONS_STREAM = StreamSpec(
    name="decisions", subjects=("decisions.v1.>",), last_value=False, max_age_seconds=24 * 3600, max_bytes=128 << 20
)
"""A day of decisions or 128 MiB: about 100,000 of them."""

WHY_STREAM = StreamSpec(
    name="why", subjects=("why.v1.>",), last_value=True, republish=("why.v1.>", DECISIONS_STREAM.subjects[0])
)
"""The last decision about each object.

The server republishes each decision for the record: a stream sourced from this one would miss decisions that are
replaced before it has read them (docs/adr/0018).
"""

RECORDS = (ACT_STREAM, DECISIONS_STREAM, WHY_STREAM)
"""Streams that services create, in this order: DECISIONS_STREAM exists before WHY_STREAM republishes to it."""


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """The watcher's progress in one resource.

    Everything up to `rv` has been published under `epoch`; during a LIST, under earlier epochs.
    """

    epoch: str
    state: str  # LISTING, SYNCED or PART
    rv: str = ""
    count: int = 0  # number of objects in the LIST
    layout: int = 0  # of the subjects; see LAYOUT
    shards: int | msgspec.UnsetType = msgspec.UNSET  # number of shards of the pods; unset: this stream has all

    @property
    def complete(self) -> bool:
        """Report whether everything up to `rv` is in the stream."""
        return self.state in (SYNCED, PART)

    def of_shards(self, count: int) -> "Marker":
        """Return the marker for a stream with one of `count` shards; unchanged for one with all objects."""
        if count == 1:
            return self
        return msgspec.structs.replace(self, shards=count, state=PART if self.state == SYNCED else self.state)

    @property
    def shard_count(self) -> int:
        """Return the number of streams that the objects are in."""
        return 1 if self.shards is msgspec.UNSET else self.shards


LAYOUT = 1
"""The layout of subjects that this release publishes: those of pods say whose they are (docs/adr/0035).

Followers of some pods cannot use a stream of an older layout: its subjects would match none of their filters.
"""


FIRST_LINE = "0"
"""The first line of versions; a new line begins when etcd is restored from a backup."""


def epoch(line: str, token: str) -> str:
    """Return the epoch of a LIST and of all changes until the next LIST."""
    return f"{line}.{token}"


def line_of(epoch: str) -> str:
    """Return the line of versions that the epoch belongs to."""
    return epoch.rpartition(".")[0]


LISTING, SYNCED = "listing", "synced"
PART = "part"
"""The state of a marker instead of SYNCED if the stream has one shard of several.

A reader that knows no shards, such as a service of an earlier release, never takes the part for the whole.
"""

OP, RV, UID, EPOCH, TRACEPARENT = "op", "rv", "uid", "epoch", "traceparent"
"""Headers of an object's message."""

OVERSIZE, WITHHELD = "oversize", "withheld"
"""Headers that are `true` when the body holds only the object's identity, so that the object must be fetched.

The object is larger than the bus permits, or of a kind that may hold secrets.
"""


AGAIN = "again"
"""The header of a message that its stream had before: it moves from the beginning of the stream to the end."""


def names_only(headers: Mapping[str, str]) -> bool:
    """Report whether the message holds only the object's identity."""
    return OVERSIZE in headers or WITHHELD in headers


ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
MOVED, TO = "MOVED", "to"
"""The operation on the former subject of a pod that is published on another one, and the header with that subject."""
