"""Bus subjects and streams (DESIGN §3).

Kubernetes names contain dots, NATS tokens cannot: a dot becomes an underscore, which no Kubernetes name contains. The
namespace of a cluster-scoped object is an underscore, the core group is `core`.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import StreamSpec

NO_NAMESPACE = "_"


def token(text: str) -> str:
    """A Kubernetes name as one NATS token."""
    return text.replace(".", "_") if text else NO_NAMESPACE


def untoken(text: str) -> str:
    """The Kubernetes name that `token` made the token of."""
    return "" if text == NO_NAMESPACE else text.replace("_", ".")


def kube(resource: Resource, namespace: str, name: str) -> str:
    """Where an object of the resource is published."""
    return f"kube.v1.{resource.id}.{token(namespace)}.{token(name)}"


def kube_marker(resource: Resource) -> str:
    """Where the watcher's progress marker of the resource is published."""
    return f"kube.v1.{resource.id}"


def kube_filter(resource: Resource) -> str:
    """All objects of the resource, without the marker; the whole stream is followed with `>`."""
    return f"kube.v1.{resource.id}.>"


def act(service: str, resource: Resource, namespace: str, name: str) -> str:
    """Where a service publishes a write that it made."""
    return f"act.v1.{service}.{resource.plural}.{token(namespace)}.{token(name)}"


def why(resource: Resource, namespace: str, name: str) -> str:
    """Where the last plan's reasons of an object are published."""
    return f"why.v1.{resource.plural}.{token(namespace)}.{token(name)}"


def last_why(resource: Resource, namespace: str, name: str) -> str:
    """Return the subject that asks JetStream for the last of these about an object: who may publish there reads that,
    and no more."""
    return f"$JS.API.DIRECT.GET.{WHY_STREAM.name}.{why(resource, namespace, name)}"


def decisions(resource: Resource, namespace: str, name: str) -> str:
    """Where each of these is kept for a day."""
    return f"decisions.v1.{resource.plural}.{token(namespace)}.{token(name)}"


def heartbeat(service: str, replica: str) -> str:
    """Where a replica says that it lives."""
    return f"heartbeat.v1.{service}.{token(replica)}"


def places(replica: str) -> str:
    """Return where a replica of the webhook is asked for a place in a WorkloadSpread."""
    return f"places.v1.{token(replica)}"


def kube_stream(resource: Resource) -> StreamSpec:
    """The last-value stream of one resource."""
    name = "kube_" + resource.id.replace(".", "_")
    subjects = (kube_marker(resource), kube_filter(resource))
    return StreamSpec(name=name, subjects=subjects, last_value=True, rebuilt=True)


def node_object(node: str, resource: Resource, namespace: str, name: str) -> str:
    """Where the copy of an object that concerns a node is published."""
    return f"node.v1.{token(node)}.{resource.plural}.{token(namespace)}.{token(name)}"


def node_filter(node: str, resource: Resource) -> str:
    """All copies of the resource's objects for one node."""
    return f"node.v1.{token(node)}.{resource.plural}.>"


def node_marker(resource: Resource, node: str = "") -> str:
    """Where the marker of one node's copies of the resource is published; without a node, the writer's own."""
    return f"node.v1.{token(node)}.{resource.plural}"


def marked_node(subject: str) -> str | None:
    """The node whose marker is published on a subject of node.v1, empty for the writer's own; None if it is a copy."""
    _, _, node, *rest = subject.split(".")
    return untoken(node) if len(rest) == 1 else None


def node_stream(resource: Resource) -> StreamSpec:
    """The last-value stream with the copies of one resource for all nodes."""
    return StreamSpec(
        name=f"node_{resource.plural}",
        subjects=(f"node.v1.*.{resource.plural}", f"node.v1.*.{resource.plural}.>"),
        last_value=True,
        rebuilt=True,
    )


def report(node: str, kind: str, namespace: str = "", name: str = "") -> str:
    """Where the agent of a node reports on an object."""
    return f"report.v1.{token(node)}.{kind}.{token(namespace)}.{token(name)}"


def report_filter(kind: str) -> str:
    """All reports of one kind."""
    return f"report.v1.*.{kind}.>"


def reporter(subject: str) -> tuple[str, str, str]:
    """Node, namespace and name in the subject of a report."""
    _, _, node, _, namespace, name = subject.split(".", 5)
    return untoken(node), untoken(namespace), untoken(name)


def service_inbox(service: str) -> str:
    """Where a service takes answers: a prefix of its own, so that none can hear what another is told."""
    return f"_INBOX.{service}"


def node_inbox(node: str) -> str:
    """The beginning of all subjects on which the agent of a node takes answers."""
    return f"_INBOX_node.{token(node)}"


def inbox_node(inbox: str) -> str:
    """The node whose agent listens at the inbox; empty for inboxes of others."""
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
"""The last decision about each object. The server publishes each a second time, for the record: a stream that is
sourced from this one would miss those that are replaced before it has read them (docs/adr/0018)."""

RECORDS = (ACT_STREAM, DECISIONS_STREAM, WHY_STREAM)
"""What services see to, in this order: nothing is republished before it is kept."""


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """The watcher's progress in one resource: everything up to `rv` has been published under `epoch`; while a LIST is
    under way, under earlier ones."""

    epoch: str
    state: str  # LISTING or SYNCED
    rv: str = ""
    count: int = 0  # objects of the LIST


FIRST_LINE = "0"
"""Versions grow along a line; when etcd is restored from a backup, another line begins."""


def epoch(line: str, token: str) -> str:
    """The name of a LIST and of what follows it, up to the next LIST."""
    return f"{line}.{token}"


def line_of(epoch: str) -> str:
    """The line of versions that the epoch belongs to."""
    return epoch.rpartition(".")[0]


LISTING, SYNCED = "listing", "synced"
OP, RV, UID, EPOCH, TRACEPARENT = "op", "rv", "uid", "epoch", "traceparent"
"""Headers of an object's message."""

OVERSIZE, WITHHELD = "oversize", "withheld"
"""Headers that say `true` of a message whose body holds the object's identity only: it is larger than the bus takes, or
of a kind that may hold secrets. Whoever needs the object has to fetch it."""


def names_only(headers: Mapping[str, str]) -> bool:
    """The message says which object is meant, and nothing else of it."""
    return OVERSIZE in headers or WITHHELD in headers


ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
