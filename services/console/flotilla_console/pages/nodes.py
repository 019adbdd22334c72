"""The nodes: pods on each, images that are pulled, and whether the agent is alive."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from flotilla_common.api.core import Node
from flotilla_common.api.documents import typed
from flotilla_common.api.kinds.nodeimage.types import (
    FAILED,
    NODE_IMAGE,
    PULLING,
    SUCCEEDED,
    WAITING,
    ImageTag,
    NodeImage,
    TagStatus,
    tasks,
)
from flotilla_common.api.resources import NODE
from flotilla_common.bus.heartbeat import NODE_AGENT
from flotilla_common.workload.causes import PodContext
from flotilla_common.workload.placement import node_of
from flotilla_console import paths
from flotilla_console.blocks.types import (
    AnyBlock,
    Badge,
    Bar,
    Column,
    Fact,
    Facts,
    Link,
    Mono,
    Notice,
    Part,
    Row,
    Spans,
    Table,
    Tone,
    spans,
)
from flotilla_console.model.beats import Beat
from flotilla_console.model.seen import seen, serves
from flotilla_console.model.sight import LIST, Sight
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.parts import LIMIT, age, commas, conditions_table, facts, offset_of, sorting, whole_table
from flotilla_console.pages.pods import node_link, pods_table

COLUMNS = (
    Column("name", "Node", sortable=True),
    Column("state", "State", sortable=True),
    Column("pods", "Pods", sortable=True),
    Column("pulls", "Pulls of images", sortable=True),
    Column("agent", "Agent", sortable=True),
    Column("age", "Age", sortable=True),
)

PHASES: Mapping[str, Tone] = {FAILED: "bad", PULLING: "busy", WAITING: "idle", SUCCEEDED: "ok"}

_TONES: Sequence[Tone] = ("bad", "busy", "idle", "ok")

MOST_PULLS = 200
MOST_OWNERS = 5

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")

_NOT_ALLOWED = "You may not list nodes."


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node with what its page shows of others; `agent` is None if no heartbeat came."""

    node: Node
    pods: int
    serving: int
    image: NodeImage | None
    agent: Beat | None

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.node.metadata.name

    @property
    def troubles(self) -> Sequence[str]:
        """Return what is wrong with the node."""
        wrong = [] if self.node.ready is not None else ["NotReady"]
        return [*wrong, *(one.type for one in self.node.status.conditions if _presses(one.type, one.status))]

    @property
    def pulls(self) -> Mapping[str, int]:
        """Return the number of pulls in each phase that is not over, and of failed ones."""
        status = None if self.image is None else self.image.status
        counts = {} if status is None else {FAILED: status.failed, PULLING: status.pulling, WAITING: status.waiting}
        return {phase: count for phase, count in counts.items() if count > 0}


def _presses(kind: str, status: str) -> bool:
    return kind in _PRESSURES and status == "True"


def build_all(request: PageRequest) -> Page:
    """Return the page of all nodes."""
    trail = (Link("Fleet", paths.FLEET),)
    if not request.sight.may(LIST, NODE, ""):
        return Page(title="Nodes", blocks=(Notice("idle", spans(_NOT_ALLOWED)),), trail=trail)
    rows = _rows(request.sight)
    column, descending = sorting(request.query, _ORDERS, "state")
    ordered = sorted(rows, key=_ORDERS[column], reverse=descending)
    offset = offset_of(request.query, len(rows))
    table = Table(
        id="nodes",
        caption="Nodes",
        columns=COLUMNS,
        rows=tuple(map(_row, ordered[offset : offset + LIMIT])),
        total=len(rows),
        offset=offset,
        limit=LIMIT,
        sort=column,
        descending=descending,
    )
    return Page(title="Nodes", blocks=(Facts(_totals(rows)), table), trail=trail)


def build_one(request: PageRequest) -> Page | None:
    """Return the page of a node; None if it does not exist or may not be seen."""
    sight, name = request.sight, request.params["name"]
    node = sight.node(name)
    if node is None:
        return None
    pods = seen(sight.pods_on(name), PodContext(now=datetime.fromtimestamp(request.now, UTC)))
    one = NodeRow(
        node=node,
        pods=len(pods),
        serving=sum(pod.serving for pod in pods),
        image=_image(sight, name),
        agent=_agents(sight).get(name),
    )
    ordered = sorted(pods, key=lambda pod: (not pod.troubled, pod.pod.metadata.key))
    offset = offset_of(request.query, len(ordered))
    return Page(
        title=f"Node {name}",
        blocks=(
            Notice(_tone(one), _state(one)),
            Facts(_facts(one)),
            *_pulls(one),
            pods_table("pods", "Pods that you may see", ordered, offset, LIMIT),
            conditions_table(node.status.conditions),
        ),
        trail=(Link("Fleet", paths.FLEET), Link("Nodes", paths.path("nodes"))),
    )


def _rows(sight: Sight) -> list[NodeRow]:
    agents = _agents(sight)
    images = {one.metadata.name for one in sight.stored(NODE_IMAGE)}
    total: dict[str, int] = {}
    serving: dict[str, int] = {}
    for pod in sight.pods():
        where = node_of(pod)
        total[where] = total.get(where, 0) + 1
        serving[where] = serving.get(where, 0) + serves(pod)
    return [
        NodeRow(
            node=node,
            pods=total.get(node.metadata.name, 0),
            serving=serving.get(node.metadata.name, 0),
            image=_image(sight, node.metadata.name) if node.metadata.name in images else None,
            agent=agents.get(node.metadata.name),
        )
        for node in sight.nodes()
    ]


def _agents(sight: Sight) -> dict[str, Beat]:
    return {one.heartbeat.replica: one for one in sight.beats() if one.heartbeat.service == NODE_AGENT}


def _image(sight: Sight, node: str) -> NodeImage | None:
    """Return the pulls of a node; None without any, or if they cannot be read."""
    found = sight.object(NODE_IMAGE, "", node)
    try:
        return None if found is None else typed(found, NodeImage)
    except (ValueError, RecursionError):
        return None


def _state(one: NodeRow) -> Spans:
    word = ", ".join(one.troubles) or "Ready"
    badges = [Badge(word, _tone(one))]
    if one.node.spec.unschedulable:
        badges.append(Badge("SchedulingDisabled", "warn"))
    return commas(badges)


def _tone(one: NodeRow) -> Tone:
    return "bad" if one.troubles else "ok"


def _agent(one: NodeRow) -> Badge:
    if one.agent is None:
        return Badge("no heartbeat", "idle")
    return Badge("alive", "ok") if one.agent.alive else Badge(f"silent for {one.agent.age:.0f} s", "bad")


def _pods_bar(one: NodeRow) -> Bar:
    parts = (Part("serving", one.serving, "ok"), Part("not serving", one.pods - one.serving, "busy"))
    return Bar(f"{one.serving} of {one.pods} pods serve", tuple(part for part in parts if part.count), one.pods)


def _row(one: NodeRow) -> Row:
    created = one.node.metadata.creation_timestamp
    return Row(
        key=one.name,
        cells=(
            node_link(one.name),
            _state(one),
            spans(_pods_bar(one)),
            commas(Badge(f"{count} {phase.lower()}", PHASES[phase]) for phase, count in one.pulls.items()),
            spans(_agent(one)),
            age(created.timestamp() if created is not None else 0.0),
        ),
        tone=_tone(one),
    )


def _rank(one: NodeRow) -> tuple[bool, bool, bool, str]:
    silent = one.agent is not None and not one.agent.alive
    return not one.troubles, not silent, FAILED not in one.pulls, one.name


def _created(one: NodeRow) -> float:
    created = one.node.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


Order = Callable[[NodeRow], tuple[Any, ...]]

_ORDERS: Mapping[str, Order] = {
    "name": lambda one: (one.name,),
    "state": _rank,
    "pods": lambda one: (one.pods, one.name),
    "pulls": lambda one: (-sum(one.pulls.values()), one.name),
    "agent": lambda one: (one.agent is not None, one.agent is not None and one.agent.alive, one.name),
    "age": lambda one: (-_created(one), one.name),
}


def _totals(rows: Sequence[NodeRow]) -> tuple[Fact, ...]:
    alive = sum(one.agent is not None and one.agent.alive for one in rows)
    pulls = Counter[str]()
    for one in rows:
        pulls.update(one.pulls)
    return facts(
        ("Nodes", f"{sum(not one.troubles for one in rows)} of {len(rows)} ready"),
        ("Agents", f"{alive} of {len(rows)} alive"),
        ("Pods that you may see", str(sum(one.pods for one in rows))),
        ("Pulls of images", ", ".join(f"{count} {phase.lower()}" for phase, count in pulls.items()) or "none"),
    )


def _facts(one: NodeRow) -> tuple[Fact, ...]:
    beat = one.agent.heartbeat if one.agent is not None else None
    waits = "; ".join(f"{part} {why}" for part, why in beat.waiting.items()) if beat is not None else ""
    taints = ", ".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in one.node.spec.taints)
    return facts(
        ("Agent", spans(_agent(one), f" {beat.version}" if beat is not None else "")),
        ("Agent waits for", waits),
        ("Pods", _pods_bar(one)),
        ("Taints", taints),
        ("Age", age(_created(one))),
    )


def _pulls(one: NodeRow) -> Iterator[AnyBlock]:
    """Yield the table of the images that the node pulls, or has pulled."""
    image = one.image
    if image is None:
        return
    pulled = [(name, tag, image.entry(name, tag.tag)) for name, tag in tasks(image.spec.images)]
    rows = [_pull(name, tag, entry) for name, tag, entry in pulled]
    rows.sort(key=lambda row: (_TONES.index(row.tone or "idle"), row.key))
    columns = (
        ("image", "Image"),
        ("phase", "Phase"),
        ("progress", "Progress"),
        ("began", "Began"),
        ("for", "For"),
        ("message", "Message"),
    )
    cut = f", {MOST_PULLS} of {len(rows)}" if len(rows) > MOST_PULLS else ""
    yield whole_table("pulls", f"Pulls of images{cut}", columns, tuple(rows[:MOST_PULLS]))


def _pull(name: str, tag: ImageTag, entry: TagStatus | None) -> Row:
    """Return a pull. A status of an older round than that of the tag is not shown."""
    status = entry if entry is not None and entry.version == tag.version else None
    phase = status.phase if status is not None and status.phase in PHASES else WAITING
    share = min(max(status.progress, 0), 100) if status is not None else 0
    parts = tuple(
        part for part in (Part("pulled", share, PHASES[phase]), Part("to come", 100 - share, "idle")) if part.count
    )
    began = status.start_time if status is not None else None
    return Row(
        key=f"{name}:{tag.tag}",
        cells=(
            spans(Mono(f"{name}:{tag.tag}")),
            spans(Badge(phase, PHASES[phase])),
            spans(Bar(f"{share} %", parts, 100)),
            age(began.timestamp() if began is not None else 0.0),
            spans(", ".join(f"{owner.kind} {owner.name}" for owner in tag.owner_references[:MOST_OWNERS])),
            spans(status.message if status is not None else ""),
        ),
        tone=PHASES[phase],
    )


NODES = PageSpec(name="nodes", path="/nodes", build=build_all, navigation="Nodes", parameters=("sort", "offset"))
NODE_PAGE = PageSpec(name="node", path="/nodes/{name}", build=build_one, parameters=("offset",))
