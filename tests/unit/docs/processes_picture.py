"""Draws all processes and what each writes and reads on the bus, from what the services declare."""

import tomllib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import msgspec

from flotilla_common.bus import subjects
from flotilla_common.bus.permissions import READER_PERMISSIONS, Permissions, node_permissions
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.installed import published
from flotilla_common.service import Service
from tests.unit.docs.svg import DIM, READS, WRITES, Canvas

ROOT = Path(__file__).parents[3]
MUTATING = {"create", "update", "patch", "delete", "deletecollection"}
OWN = {"leases", "events", "tokenreviews"}
"""Every process may write these; they are no objects of users."""
COLUMN, LEFT, TOP, LANE = 118, 210, 118, 44


class Process(msgspec.Struct, frozen=True):
    """A process, or a user of the bus."""

    name: str
    permissions: Permissions
    kinds: tuple[str, ...] = ()
    mirrors: bool = False  # reads the streams of resources
    calls: str = ""  # "reads", "reads and writes" at the apiserver
    called: bool = False  # by the apiserver


class Lane(msgspec.Struct, frozen=True):
    """A group of subjects, and the stream that keeps them."""

    subject: str
    kept: str
    stream: bool = True


def services() -> list[Service]:
    """Return all services, by what their packages declare."""
    found: list[Service] = []
    for path in sorted((ROOT / "services").glob("*/pyproject.toml")):
        points = tomllib.loads(path.read_text(encoding="utf-8"))["project"].get("entry-points", {})
        for place in points.get("flotilla.services", {}).values():
            module, _, name = place.partition(":")
            service = getattr(import_module(module), name)
            found.append(service if isinstance(service, Service) else service())
    return sorted(found, key=lambda one: (one.name != "watcher", one.name == "webhook", one.name))


def processes() -> list[Process]:
    """Return all processes that have a user of the bus."""
    found = [_process(service) for service in services()]
    agent = Process("node agent", node_permissions("node-1"))
    return [*found, agent, Process("user reader", READER_PERMISSIONS)]


def _process(service: Service) -> Process:
    kinds = [part.primary.resource.kind for part in service.components if isinstance(part, ControllerSpec)]
    verbs = {verb for access in service.access if access.resource.plural not in OWN for verb in access.verbs}
    permissions = service.permissions or Permissions((), ())
    return Process(
        name=service.name,
        permissions=permissions,
        kinds=tuple(dict.fromkeys(kinds)),
        mirrors=any(text.startswith("$JS.API.CONSUMER.CREATE") for text in permissions.publish),
        calls="reads and writes" if verbs & MUTATING else "reads",
        called=service.called,
    )


def lanes() -> list[Lane]:
    """Return the groups of subjects, by the streams that are declared and the permissions of all users."""
    count = len(published())
    rows = [
        Lane("kube.v1", f"{count} streams kube_*: last value"),
        Lane("node.v1", "streams node_*: last value"),
        *(
            Lane(stream.subjects[0].removesuffix(".>"), f"stream {stream.name}: {_kept(stream.last_value)}")
            for stream in subjects.RECORDS
        ),
    ]
    known = {row.subject for row in rows}
    users = [process.permissions for process in processes()]
    plain = {text for user in users for text in (*user.publish, *user.subscribe) if ".v1" in text}
    rest = sorted({".".join(text.split(".")[:2]) for text in plain if not text.startswith(("$", "_"))} - known)
    return [*rows, *(Lane(subject, "not kept", stream=False) for subject in rest)]


def _kept(last_value: bool) -> str:
    return "last value" if last_value else "a day"


def writes(process: Process, lane: Lane) -> bool:
    """Report whether the process publishes there."""
    return _matches(process.permissions.publish, lane)


def reads(process: Process, lane: Lane) -> bool:
    """Report whether the process subscribes there, or reads the stream."""
    follows = process.mirrors and process.name != "watcher" and lane.subject == "kube.v1"
    return follows or _matches(process.permissions.subscribe, lane)


def _matches(allowed: Iterable[str], lane: Lane) -> bool:
    return any(text.startswith(f"{lane.subject}.") for text in allowed)


def picture() -> str:
    """Return the picture."""
    columns, rows = processes(), lanes()
    width, bottom = LEFT + COLUMN * len(columns) + 10, TOP + LANE * len(rows)
    kinds = max(len(process.kinds) for process in columns)
    canvas = Canvas(width, bottom + 96 + 15 * kinds, "All processes, and what they write and read on the bus")
    canvas.box(LEFT - 10, 14, COLUMN * len(columns), 34, fill="#dbeafe")
    canvas.text(LEFT, 36, "kube-apiserver", size=14, bold=True)
    for number, lane in enumerate(rows):
        y = TOP + LANE * number
        canvas.line(LEFT - 10, y, width - 20, y, width=6 if lane.stream else 2, color="#cbd5e1", dashed=not lane.stream)
        canvas.text(10, y, lane.subject, bold=True)
        canvas.text(10, y + 14, lane.kept, size=10, color=DIM)
    for number, process in enumerate(columns):
        _column(canvas, LEFT + COLUMN * number + COLUMN // 2 - 10, bottom, process, rows)
    _legend(canvas, bottom + 86 + 15 * kinds)
    return canvas.svg()


def _column(canvas: Canvas, x: int, bottom: int, process: Process, rows: list[Lane]) -> None:
    canvas.line(x, 84, x, bottom, color="#94a3b8")
    if process.calls:
        canvas.arrow(x - 6, 84, x - 6, 50, color=WRITES if "writes" in process.calls else READS)
        canvas.text(x + 4, 78, process.calls.rpartition(" ")[2], size=10, color=DIM)
    if process.called:
        canvas.arrow(x - 20, 50, x - 20, 84)
        canvas.text(x + 4, 64, "is called", size=10, color=DIM)
    for number, lane in enumerate(rows):
        y = TOP + LANE * number
        if writes(process, lane):
            canvas.dot(x - 7, y, color=WRITES, filled=True)
        if reads(process, lane):
            canvas.dot(x + 7, y, color=READS, filled=False)
    canvas.box(x - COLUMN // 2 + 4, bottom, COLUMN - 8, 26, fill="#dcfce7")
    canvas.text(x, bottom + 17, process.name, anchor="middle", bold=True)
    for number, kind in enumerate(process.kinds):
        canvas.text(x, bottom + 44 + 15 * number, short(kind), size=9, color=DIM, anchor="middle")


def short(kind: str) -> str:
    """Shorten a kind so that it fits into a column."""
    return kind if len(kind) <= 20 else f"{kind[:19]}\N{HORIZONTAL ELLIPSIS}"


def _legend(canvas: Canvas, y: int) -> None:
    canvas.dot(20, y, color=WRITES, filled=True)
    canvas.text(32, y + 4, "publishes", size=11)
    canvas.dot(120, y, color=READS, filled=False)
    canvas.text(132, y + 4, "subscribes, or reads the stream", size=11)
    canvas.text(
        380,
        y + 4,
        "The server republishes why.v1 as decisions.v1. The user flotilla (operators) may do everything.",
        size=11,
    )
