"""The demo: a CloneSet's image changes in place, and its pods keep name, uid, node and IP.

The pods are read before and after, and `broken_promises` compares them: the demo fails if they were replaced. On a
terminal it is a live table, elsewhere a line per change, with a comparison at the end; everything fits into 80 columns.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.console import Console
from rich.live import Live
from rich.table import Table

from flotilla_cli.local import ClusterError
from flotilla_common.api.images import ImageName
from flotilla_common.api.resources import POD, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import Api

NAMESPACE, NAME, REPLICAS = "default", "sample", 5
BEFORE, AFTER = "nginx:alpine", "nginx:mainline"
CLONE_SET = Resource("apps.kruise.io", "v1alpha1", "clonesets", "CloneSet")  # the version of users' manifests
POLL = 0.1
TIMEOUT = 90.0  # seconds for each half; both take a few on an idle machine

Rows = dict[str, "Row"]
Show = Callable[[Rows], None]

TRY_NEXT = """\
  kubectl get clonesets,pods -o wide
  kubectl patch cloneset sample --type merge -p '{"spec": {"template": {"spec":
    {"containers": [{"name": "nginx", "image": "nginx:latest"}]}}}}'
  flotilla get cloneset sample -w    # live tree: revisions, pods, why they wait
  flotilla explain cloneset sample   # why it stands where it stands
  flotilla tail sample               # changes, decisions and writes, live
"""

TRY_CHART = """\
  flotilla image push{option}              # its image and NATS's, into the nodes' registry
  helm install flotilla helm/flotilla --wait
"""


class Row(msgspec.Struct, frozen=True):
    """The fields of one pod that the demo shows."""

    name: str
    uid: str
    node: str
    ip: str
    image: str
    image_id: str
    restarts: int
    ready: bool


def manifest(image: str) -> Json:
    """Return the CloneSet with this image."""
    labels = {"app": NAME}
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": REPLICAS,
            "updateStrategy": {"type": "InPlaceIfPossible"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": image}]},
            },
        },
    }


async def create(api: Api, clock: Clock, show: Show) -> Rows:
    """Apply the CloneSet and wait until all its pods are ready."""
    await _apply(api, BEFORE)
    return await _until(api, clock, BEFORE, show)


async def update(api: Api, clock: Clock, show: Show) -> Rows:
    """Apply the new image and wait until every pod runs it and is ready."""
    await _apply(api, AFTER)
    return await _until(api, clock, AFTER, show)


def broken_promises(before: Rows, after: Rows) -> list[str]:
    """Return the differences that an in-place update must not make; empty if there are none."""
    problems: list[str] = []
    if before.keys() != after.keys():
        problems.append(f"the pods are not the same: {sorted(before)} became {sorted(after)}")
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        problems += [
            f"{name}: its {field} changed from {getattr(old, field)} to {getattr(new, field)}"
            for field in ("uid", "node", "ip")
            if getattr(old, field) != getattr(new, field)
        ]
        if new.restarts != old.restarts + 1:
            problems.append(f"{name}: its container restarted {new.restarts - old.restarts} times instead of once")
        if new.image_id == old.image_id:
            problems.append(f"{name}: it still runs the old image")
    return problems


def row(pod: Json) -> Row:
    """Return the demo's view of one pod."""
    status: Json = pod.get("status", {})
    containers: list[Json] = status.get("containerStatuses") or [{}]
    conditions: list[dict[str, Any]] = status.get("conditions", [])
    return Row(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        node=pod["spec"].get("nodeName", ""),
        ip=status.get("podIP", ""),
        image=familiar(containers[0].get("image", "")),
        image_id=containers[0].get("imageID", ""),
        restarts=containers[0].get("restartCount", 0),
        ready=any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions),
    )


def familiar(image: str) -> str:
    """Return an image's name as manifests have it; kubelets report `docker.io/library/nginx:alpine`."""
    return str(ImageName.parse(image)) if image else ""


async def _apply(api: Api, image: str) -> None:
    body = msgspec.json.encode(manifest(image))
    params = {"fieldManager": "flotilla-demo", "force": "true"}
    await api.patch(CLONE_SET, NAMESPACE, NAME, body, "application/apply-patch+yaml", params=params)


async def _until(api: Api, clock: Clock, image: str, show: Show) -> Rows:
    deadline = clock.monotonic() + TIMEOUT
    while clock.monotonic() < deadline:
        page = await api.list(POD, NAMESPACE, label_selector=f"app={NAME}")
        found = [row(msgspec.json.decode(item, type=Json)) for item in page.items]
        rows = {one.name: one for one in sorted(found, key=lambda one: one.name)}
        show(rows)
        done = [one for one in found if one.ready and one.image == image]
        if len(done) == len(found) == REPLICAS:
            return rows
        await clock.sleep(POLL)
    raise ClusterError(f"After {TIMEOUT:.0f} s not all {REPLICAS} pods of CloneSet {NAME} are ready with {image}.")


@contextmanager
def shown(console: Console, title: str) -> Generator[Show]:
    """Show the pods of one half of the demo while they change."""
    console.print(f"\n[bold]{title}[/]")
    if console.is_terminal:
        with Live(console=console, refresh_per_second=10) as live:
            yield lambda rows: live.update(table(rows))
    else:
        yield _Lines(console).show


class _Lines:
    """Prints a pod's line if it changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: dict[str, Row] = {}

    def show(self, rows: Rows) -> None:
        for name, row in rows.items():
            if self._last.get(name) != row:
                self._console.print(_line(row), markup=False, soft_wrap=True)
        self._last = dict(rows)


def table(rows: Rows) -> Table:
    """Return the pods as kubectl would print them."""
    made = _table("POD", "READY", "IMAGE", "RESTARTS", "NODE", "IP")
    for row in rows.values():
        ready = "[green]yes[/]" if row.ready else "[yellow]no[/]"
        made.add_row(row.name, ready, row.image or "-", str(row.restarts), row.node or "-", row.ip or "-")
    return made


def comparison(before: Rows, after: Rows) -> Table:
    """Return before and after side by side; kept values are green."""
    made = _table("POD", "UID", "NODE", "IP", "IMAGE", "RESTARTS")
    for name, new in after.items():
        old = before.get(name, new)
        made.add_row(
            name,
            _kept(old.uid[:8], new.uid[:8]),
            _kept(old.node, new.node),
            _kept(old.ip, new.ip),
            f"{_tag(old.image)} → [cyan]{_tag(new.image)}[/]",
            f"{old.restarts} → [cyan]{new.restarts}[/]",
        )
    return made


def _table(*columns: str) -> Table:
    return Table(*columns, box=None, padding=(0, 2, 0, 0), pad_edge=False)


def _kept(old: str, new: str) -> str:
    return f"[green]{new}[/]" if old == new else f"[red]{old} → {new}[/]"


def _tag(image: str) -> str:
    return ImageName.parse(image).tag or image


def _line(row: Row) -> str:
    ready = "ready" if row.ready else "not ready"
    image = row.image or "no image yet"
    place = f"{row.node}  {row.ip}" if row.node else "no node yet"
    return f"  {row.name}  {ready:<9}  {image:<{len(AFTER)}}  restarts {row.restarts}  {place}".rstrip()
