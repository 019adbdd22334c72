"""`flotilla up`: from nothing to a running local set, in steps that can be repeated.

Every step looks at what is there and adds what is missing. So `up` after a reboot, a kill -9 of any process or of `up`
itself continues where things stand, and `up` on a running set changes nothing.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from flotilla_cli.cluster import local_set as state
from flotilla_cli.cluster import services
from flotilla_cli.cluster.components import Ports
from flotilla_cli.cluster.control_plane import ORDER, ControlPlane, Options
from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_cli.cluster.nats import NAME as NATS
from flotilla_cli.cluster.nats import start_nats
from flotilla_cli.cluster.ports import HOST, free_ports, is_free, require_free
from flotilla_cli.cluster.process import MARK, Process, Records, cleaned, marked, stop
from flotilla_cli.cluster.programs import CHART, CONTROL_PLANE, SET
from flotilla_cli.cluster.progress import Progress
from flotilla_cli.cluster.provision import provide
from flotilla_cli.cluster.realnodes import cgroups, debian
from flotilla_cli.cluster.realnodes.agents import Agents
from flotilla_cli.cluster.realnodes.namespaces import same
from flotilla_cli.cluster.realnodes.network import SWITCH
from flotilla_cli.cluster.realnodes.nodes import RealNodes, recorded
from flotilla_cli.services import usual
from flotilla_common.clock import Clock

FAKE_NODES = 10
GRACE = 10.0  # seconds that a process has to end by itself


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for. A port of 0: a free one. `nodes`: fake ones; None: ten, or none beside real ones.
    `bare`: a cluster without Flotilla, for its chart."""

    nodes: int | None = None
    real_nodes: int = 0
    bare: bool = False
    assets: Path | None = None
    apiserver_port: int = 0
    nats_port: int = 0
    webhook_port: int = 0


async def start(state_dir: Path, wishes: Wishes, clock: Clock, progress: Progress) -> LocalSet:
    """Bring the set up, or repair it; returns when all of it is ready."""
    records = Records(state_dir)
    wishes = settled(wishes, state.read(state_dir))
    program = await _programs(wishes, clock, progress)
    await _stop_strays(state_dir, records, clock)
    nodes = RealNodes(state_dir, program, clock)
    local_set = await _plan(state_dir, wishes, records, program, clock, nodes if wishes.real_nodes else None)
    services.check_settings(local_set, records, state_dir)
    state.write(state_dir, local_set)
    with progress.step("Start the control plane") as say:
        plane = ControlPlane(state_dir, program, clock, local_set.ports, Options(address=local_set.address))
        await plane.start(say)
        await plane.add_nodes(local_set.nodes)
    if local_set.real_nodes:
        with progress.step(f"Start {local_set.real_nodes} real nodes") as say:
            await nodes.start(plane, local_set.real_nodes, say)
    if local_set.bare:
        return local_set
    return await _flotilla(state_dir, local_set, program, nodes, clock, progress)


async def _flotilla(
    state_dir: Path,
    local_set: LocalSet,
    program: Callable[[str], Path],
    nodes: RealNodes,
    clock: Clock,
    progress: Progress,
) -> LocalSet:
    """NATS, the installation, the services and the node agents on a cluster that runs."""
    records = Records(state_dir)
    agents = Agents(state_dir, nodes, local_set.real_nodes, clock)
    with progress.step("Start NATS"):
        agents.enrol()
        server = await start_nats(
            state_dir,
            local_set.nats_port,
            program=program,
            monitor_port=local_set.nats_monitor,
            bound=False,
            clock=clock,
            host=local_set.address,
        )
        reach = {"nats": server.url, "nats_creds": server.credentials, "nats_ca": server.authority}
        local_set = msgspec.structs.replace(local_set, **reach)
        state.write(state_dir, local_set)
    with progress.step("Install Flotilla on the cluster"):
        await _install(local_set)
    with progress.step(f"Start the services: {', '.join(local_set.services)}") as say:
        for name in local_set.services:
            services.ensure(name, local_set, records, state_dir)
        await services.wait_ready(local_set, records, clock, say)
    if local_set.real_nodes:
        with progress.step("Start the node agents") as say:
            await agents.start(local_set.nats, say)
    return local_set


def settled(wishes: Wishes, old: LocalSet | None) -> Wishes:
    """The wishes with numbers of nodes. What a set has it keeps, and a bare one stays bare: the chart may be on it, and
    a second Flotilla must not come beside that. Raises ClusterError when a set with Flotilla shall be bare."""
    real = max(wishes.real_nodes, old.real_nodes if old else 0)
    usual = 0 if real else FAKE_NODES
    fake = usual if wishes.nodes is None else wishes.nodes
    bare = old.bare if old else wishes.bare
    if wishes.bare and not bare:
        raise ClusterError(
            "This set has Flotilla on it. `flotilla down` removes it; or name another folder with --state."
        )
    return msgspec.structs.replace(wishes, nodes=max(fake, old.nodes if old else 0), real_nodes=real, bare=bare)


async def _programs(wishes: Wishes, clock: Clock, progress: Progress) -> Callable[[str], Path]:
    if not wishes.real_nodes:
        with progress.step("Get etcd, the Kubernetes control plane, kwok and nats-server") as say:
            return await provide(CONTROL_PLANE, clock, wishes.assets, say)
    debian.require_root()
    with progress.step("Get the Kubernetes control plane, nats-server, containerd, kubelet and crane") as say:
        program = await provide(SET | CHART if wishes.bare else SET, clock, wishes.assets, say)
        await asyncio.to_thread(debian.install, say)
    return program


async def stop_all(state_dir: Path, clock: Clock, say: Callable[[str], None]) -> int:
    """Stop everything that runs from this folder, services first; returns how many processes there were."""
    records = Records(state_dir)
    on_nodes = recorded(records)
    known = [NATS, *reversed(ORDER), SWITCH]
    names = [process.name for process in records.all()]
    running = len(records.running())
    services_first = [name for name in names if name not in known and name not in on_nodes]
    for name in [*services_first, *on_nodes, *(name for name in known if name in names)]:
        say(name)
        # Nodes get no time for farewells: containers end with them, as in a power cut.
        await records.stop([name], clock, grace=0 if name in on_nodes else GRACE)
    strays = await _stop_strays(state_dir, records, clock)
    await cgroups.sweep(clock)
    return running + strays


async def _stop_strays(state_dir: Path, records: Records, clock: Clock) -> int:
    """Stop what runs from this folder without a record: its starter was killed before it could write one.

    What runs in a node needs none: it ends with the node's holder.
    """
    sessions = {process.pid for process in records.running()}
    ours = [process for process in marked(state_dir) if same("pid", process.pid)]
    strays = [process for process in ours if _session(process) not in sessions]
    for process in strays:
        await stop(process, clock)
    return len(strays)


def _session(process: Process) -> int:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return 0


async def _plan(
    state_dir: Path,
    wishes: Wishes,
    records: Records,
    program: Callable[[str], Path],
    clock: Clock,
    nodes: RealNodes | None,
) -> LocalSet:
    """The set as it stands written down, if it can go on like that; else with ports that are free now.

    With real nodes their network is there afterwards, because the apiserver listens in it.
    """
    old = state.read(state_dir)
    address = (await nodes.connect()).host if nodes else HOST
    if old and _can_continue(old, records) and not _differs(old, wishes, address):
        numbers = {"nodes": wishes.nodes or 0, "real_nodes": wishes.real_nodes}
        return msgspec.structs.replace(old, **numbers, bare=wishes.bare)
    if old:
        await stop_all(state_dir, clock, lambda _: None)
        address = (await nodes.connect()).host if nodes else HOST
    for port, purpose, option in (
        (wishes.apiserver_port, "the apiserver", "--port"),
        (wishes.nats_port, "NATS", "--nats-port"),
        (wishes.webhook_port, "the webhook", "--webhook-port"),
    ):
        if port:
            require_free(port, purpose, option)
    return _fresh(state_dir, wishes, program, address, demo_done=bool(old and old.demo_done))


def _fresh(
    state_dir: Path, wishes: Wishes, program: Callable[[str], Path], address: str, *, demo_done: bool
) -> LocalSet:
    names = usual()
    free = free_ports(6 + len(names))
    nats_port = wishes.nats_port or free[0]
    return LocalSet(
        kubeconfig=str(state_dir / "kubeconfig"),
        nats=f"nats://{HOST}:{nats_port}",
        ports=Ports(wishes.apiserver_port or free[1], free[2], free[3]),
        nats_port=nats_port,
        nats_monitor=free[4],
        webhook_port=wishes.webhook_port or free[5],
        services=dict(zip(names, free[6:], strict=True)),
        programs={name: str(program(name)) for name in (CONTROL_PLANE | CHART if wishes.bare else CONTROL_PLANE)},
        nodes=wishes.nodes or 0,
        real_nodes=wishes.real_nodes,
        bare=wishes.bare,
        address=address,
        demo_done=demo_done,
    )


def _can_continue(old: LocalSet, records: Records) -> bool:
    """Whether every port of the set is held by the set itself or free, and the same services are installed."""
    ports = {
        "etcd": [old.ports.etcd, old.ports.etcd_peer],
        "kube-apiserver": [old.ports.apiserver],
        NATS: [old.nats_port, old.nats_monitor],
        "webhook": [old.webhook_port],
    }
    for name, port in old.services.items():
        ports.setdefault(name, []).append(port)
    return list(old.services) == usual() and all(
        records.alive(name) or all(map(is_free, wanted)) for name, wanted in ports.items()
    )


def _differs(old: LocalSet, wishes: Wishes, address: str) -> bool:
    pairs = (
        (wishes.apiserver_port, old.ports.apiserver),
        (wishes.nats_port, old.nats_port),
        (wishes.webhook_port, old.webhook_port),
    )
    return address != old.address or any(wanted and wanted != current for wanted, current in pairs)


async def _install(local_set: LocalSet) -> None:
    command = [sys.executable, "-m", "flotilla_cli", "install", "--kubeconfig", local_set.kubeconfig]
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--webhook-url", local_set.webhook_url),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={key: value for key, value in cleaned().items() if key != MARK},
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise ClusterError(f"`flotilla install` failed:\n{output.decode(errors='replace')}")
