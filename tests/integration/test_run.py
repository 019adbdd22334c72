"""`flotilla run` against a real control plane: one process or several, an embedded bus, ends of all kinds."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from flotilla_cli.local import bound_command, start_ticks
from flotilla_common.tracing.context import change
from flotilla_dev.cluster.ports import free_ports
from flotilla_insight.services import usual
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.collector import Collector, collector
from tests.support.fleet import SERVICES, install, page
from tests.testkit.manifests import manifest

MANIFEST = manifest("run")
SPLIT = ("--split", *SERVICES)
"""One process each for the services that a rollout of a CloneSet needs."""


def first_of(count: int) -> int:
    """Return the first of `count` consecutive free ports."""
    while True:
        ports = free_ports(count)
        if ports[-1] - ports[0] == count - 1:
            return ports[0]


class Run:
    """One `flotilla run` with these services or all of them, and flags; and its processes."""

    def __init__(self, cluster: Cluster, folder: Path, *words: str) -> None:
        services = [word for word in words if not word.startswith("-")] or usual()
        (self.webhook,) = free_ports(1)
        self.port = first_of(2 * len(services))
        self.ports = [self.port + 2 * index for index in range(len(services) if "--split" in words else 1)]
        self.log = folder / "run.log"
        command = [
            *(sys.executable, "-m", "flotilla_cli", "run"),
            f"--kubeconfig={cluster.kubeconfig}",
            f"--webhook-url=https://127.0.0.1:{self.webhook}",
            f"--webhook-port={self.webhook}",
            f"--webhook-cert-dir={folder / 'certificates'}",
            f"--health-port={self.port}",
            f"--metrics-port={self.port}",
            *words,
        ]
        with self.log.open("wb") as output:
            env = {**os.environ, "TMPDIR": str(folder), "OTEL_BSP_SCHEDULE_DELAY": "200"}  # milliseconds
            self.process = subprocess.Popen(bound_command(command), stdout=output, stderr=output, env=env)

    def ready(self) -> bool:
        return all(page(port, "readyz")[0] == 200 for port in self.ports)

    def children(self) -> dict[int, str]:
        """Return the command lines of all descendants, by pid."""
        found: dict[int, str] = {}
        parents = [self.process.pid]
        while parents:
            tasks = Path(f"/proc/{parents.pop()}/task")
            for task in tasks.iterdir() if tasks.exists() else ():
                for pid in map(int, (task / "children").read_text().split()):
                    found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                    parents.append(pid)
        return found

    def child(self, words: str) -> int:
        return next(pid for pid, command in self.children().items() if words in command)

    async def ends_with(self, number: int, code: int) -> None:
        """Signal the process; wait until it and all its descendants have ended."""
        everything = [*self.children(), self.process.pid]
        self.process.send_signal(number)
        await eventually(lambda: self.process.poll() is not None)
        assert self.process.returncode == code, self.log.read_text()[-3000:]
        await eventually(lambda: not any(start_ticks(pid) for pid in everything))


@contextmanager
def running(cluster: Cluster, folder: Path, *words: str) -> Iterator[Run]:
    run = Run(cluster, folder, *words)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()


async def works(cluster: Cluster, run: Run, name: str) -> None:
    install(cluster, f"https://127.0.0.1:{run.webhook}")
    try:
        await eventually(run.ready, 90)
    except TimeoutError:
        reports = [page(port, "readyz")[1] for port in run.ports]
        raise AssertionError("".join(reports) + run.log.read_text()[-3000:]) from None
    cluster.apply(MANIFEST.replace("NAME", name))
    await eventually(lambda: cluster.read("clone", name).get("status", {}).get("readyReplicas") == 2)


async def one_rollout_is_one_trace(cluster: Cluster, traces: Collector, name: str) -> None:
    """Check the trace from the change of the image over bus and passes to the last write, through four processes."""
    template = {"spec": {"containers": [{"name": "main", "image": "nginx:mainline"}]}}
    image = {
        "spec": {"template": template, "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}}}
    }
    cluster.kubectl("patch", "clone", name, "--type=merge", f"-p={json.dumps(image)}")
    await eventually(lambda: cluster.read("clone", name)["status"].get("updatedReadyReplicas") == 4)
    meta = cluster.read("clone", name)["metadata"]
    root = change(meta["uid"], meta["generation"])

    def complete() -> bool:
        names = Counter(span.name for span in traces.of(root.trace_id))
        return names["patch Pod"] >= 4 and names["patch Pod/status"] >= 8 and names["patch CloneSet/status"] > 0

    await eventually(complete)
    spans = {span.span_id: span for span in traces.of(root.trace_id)}
    assert [span.name for span in spans.values() if not span.parent_id] == ["change CloneSet"]
    await eventually(lambda: not _orphans(traces, root.trace_id))
    assert spans[root.span_id].service == "flotilla-watcher"
    steps = {"admit CloneSet", "publish CloneSet", "plan CloneSet", "create ControllerRevision"}
    assert steps <= {span.name for span in spans.values()}
    write = next(span for span in spans.values() if span.name == "patch Pod")
    assert write.attributes["flotilla.intent"] == "in-place update"
    assert spans[write.parent_id].name == "plan CloneSet"


def _orphans(traces: Collector, trace: str) -> list[str]:
    """Return the spans whose parent did not arrive."""
    spans = traces.of(trace)
    known = {span.span_id for span in spans}
    return [span.name for span in spans if span.parent_id and span.parent_id not in known]


def leftovers(folder: Path) -> list[Path]:
    """Return the files that an embedded bus left."""
    return list(folder.glob("flotilla-nats-*"))


def lease_holder(cluster: Cluster) -> str:
    return cluster.read("lease", "flotilla-cloneset-0", "-n", "kruise-system")["spec"]["holderIdentity"]


def released(cluster: Cluster, run: Run) -> bool:
    """Report whether no service of this run holds a lease; runs that were killed may have left theirs held."""
    replicas = set(re.findall(r'"replica": ?"(\w+)"', run.log.read_text()))
    leases = cluster.read("leases", "-n", "kruise-system", "-l", "flotilla.kruise.io/service")["items"]
    held = {lease["spec"].get("holderIdentity", "").partition("-")[0] for lease in leases}
    return bool(replicas and held) and replicas.isdisjoint(held)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with control_plane(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest.mark.asyncio(loop_scope="module")
async def test_all_services_in_one_process_with_an_embedded_bus(cluster: Cluster, tmp_path: Path):
    with running(cluster, tmp_path) as run:
        await works(cluster, run, "together")
        report = page(run.port, "readyz")[1]
        assert {"[+]watcher ok", "[+]cloneset ok", "[+]webhook ok"} <= set(report.splitlines())
        assert run.child("nats-server")
        await run.ends_with(signal.SIGTERM, 0)
        assert released(cluster, run)
        assert leftovers(tmp_path) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_one_process_killed_takes_the_bus_with_it(cluster: Cluster, tmp_path: Path):
    with running(cluster, tmp_path, "watcher") as run:
        await eventually(lambda: any("nats-server" in command for command in run.children().values()))
        await run.ends_with(signal.SIGKILL, -9)


@pytest.mark.timeout(300)
@pytest.mark.asyncio(loop_scope="module")
async def test_split_restarts_the_dead_and_ends_with_its_children(cluster: Cluster, tmp_path: Path):
    with collector() as traces, running(cluster, tmp_path, *SPLIT, f"--otlp-endpoint={traces.endpoint}") as run:
        await works(cluster, run, "apart")
        victim = run.child("run cloneset")
        os.kill(victim, signal.SIGKILL)
        await eventually(lambda: "service ended, starting it again" in run.log.read_text())
        await eventually(lambda: any("run cloneset" in command for command in run.children().values()))
        assert run.child("run cloneset") != victim
        holder = lease_holder(cluster)
        cluster.kubectl("scale", "clone", "apart", "--replicas=4")
        await eventually(lambda: cluster.read("clone", "apart")["status"].get("readyReplicas") == 4)
        assert lease_holder(cluster) == holder  # its successor is the same replica, so it did not have to wait
        await one_rollout_is_one_trace(cluster, traces, "apart")
        await run.ends_with(signal.SIGTERM, 0)
        assert released(cluster, run)
        assert re.search(r'"event": ?"stopped"', run.log.read_text())


@pytest.mark.asyncio(loop_scope="module")
async def test_split_killed_leaves_no_child_behind(cluster: Cluster, tmp_path: Path):
    with running(cluster, tmp_path, *SPLIT) as run:
        await eventually(lambda: sum("run" in command for command in run.children().values()) >= len(SERVICES))
        await eventually(run.ready, 90)
        await run.ends_with(signal.SIGKILL, -9)
