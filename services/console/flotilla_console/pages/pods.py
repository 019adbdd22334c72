"""Tables of pods, with their state and with the reason why one does not serve."""

from collections.abc import Sequence

from flotilla_common.api.core import Pod
from flotilla_common.workload.placement import node_of
from flotilla_common.workload.predicates import max_restarts
from flotilla_console import paths
from flotilla_console.blocks.types import Badge, Column, Link, Row, Spans, Table, spans
from flotilla_console.model.seen import Seen
from flotilla_console.pages.parts import age

COLUMNS = (
    Column("name", "Pod"),
    Column("state", "State"),
    Column("ready", "Ready"),
    Column("restarts", "Restarts", numeric=True),
    Column("lifecycle", "Lifecycle"),
    Column("node", "Node"),
    Column("age", "Age"),
    Column("why", "Waits for"),
)


def pods_table(identity: str, caption: str, pods: Sequence[Seen], offset: int, limit: int) -> Table:
    """Return a window of a table of pods."""
    rows = tuple(map(_row, pods[offset : offset + limit]))
    return Table(identity, caption, COLUMNS, rows, total=len(pods), offset=offset, limit=limit)


def pod_link(pod: Pod) -> Link:
    """Return a link to the page of a pod."""
    return Link(pod.metadata.name, paths.pod(pod.metadata.namespace, pod.metadata.name))


def node_link(name: str) -> Spans:
    """Return a link to the page of a node; empty without a name."""
    return spans(Link(name, paths.node(name))) if name else ()


def _row(one: Seen) -> Row:
    pod = one.pod
    statuses, created = pod.status.container_statuses, pod.metadata.creation_timestamp
    ready = f"{sum(status.ready for status in statuses)}/{len(pod.spec.containers)}"
    return Row(
        key=f"{pod.metadata.namespace}/{pod.metadata.name}",
        cells=(
            spans(pod_link(pod)),
            spans(Badge(one.state, one.tone)),
            spans(ready),
            spans(str(max_restarts(statuses))),
            spans(pod.state),
            node_link(node_of(pod)),
            age(created.timestamp() if created is not None else 0.0),
            spans(one.waits_for),
        ),
        tone=one.tone,
    )
