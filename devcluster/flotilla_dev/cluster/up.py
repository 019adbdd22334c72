"""Starts and stops a local cluster, in steps that can be repeated.

Every step checks what exists and adds what is missing. So `up` after a reboot, or a kill -9 of any process or of `up`
itself, continues from there, and `up` on a running cluster changes nothing.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from flotilla_cli.local import HOST, ClusterError, LocalCluster, Ports, Process, read_cluster
from flotilla_cli.output import Progress
from flotilla_common.clock import Clock
from flotilla_dev.cluster import services, state
from flotilla_dev.cluster.control_plane import ORDER, ControlPlane, PlaneOptions
from flotilla_dev.cluster.nats import NAME as NATS
from flotilla_dev.cluster.nats import start_nats
from flotilla_dev.cluster.ports import free_ports, is_free, require_free
from flotilla_dev.cluster.processes import MARK, Processes, cleaned, marked, stop
from flotilla_dev.cluster.programs import CHART, CONTROL_PLANE, SET
from flotilla_dev.cluster.provision import provide
from flotilla_dev.cluster.realnodes import debian, isolation
from flotilla_dev.cluster.realnodes.isolation import in_our_namespace
from flotilla_dev.cluster.realnodes.network import SWITCH
from flotilla_dev.cluster.realnodes.nodes import RealNodes, recorded
from flotilla_dev.cluster.services import Agents

FAKE_NODES = 10
GRACE = 10.0  # seconds that a process has to end by itself


class UpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `flotilla up`.

    A port of 0 means a free one. `nodes`: fake ones; None: ten, or none beside real ones. `bare`: a cluster without
    Flotilla, for its chart.
    """

    nodes: int | None = None
    real_nodes: int = 0
    bare: bool = False
    assets: Path | None = None
    apiserver_port: int = 0
    nats_port: int = 0
    webhook_port: int = 0


async def start(state_dir: Path, options: UpOptions, clock: Clock, progress: Progress) -> LocalCluster:
    """Start the cluster, or repair it. Return when all of it is ready."""
    processes = Processes(state_dir)
    options = settled(options, read_cluster(state_dir))
    program = await _programs(options, clock, progress)
    await _stop_strays(state_dir, processes, clock)
    nodes = RealNodes(state_dir, program, clock)
    cluster = await _plan(state_dir, options, processes, program, clock, nodes if options.real_nodes else None)
    services.check_settings(cluster, processes, state_dir)
    state.write(state_dir, cluster)
    with progress.step("Start the control plane") as say:
        plane = ControlPlane(state_dir, program, clock, cluster.ports, PlaneOptions(address=cluster.address))
        await plane.start(say)
        await plane.add_nodes(cluster.nodes)
    if cluster.real_nodes:
        with progress.step(f"Start {cluster.real_nodes} real nodes") as say:
            await nodes.start(plane, cluster.real_nodes, say)
    if cluster.bare:
        return cluster
    return await _flotilla(state_dir, cluster, program, nodes, clock, progress)


async def _flotilla(
    state_dir: Path,
    cluster: LocalCluster,
    program: Callable[[str], Path],
    nodes: RealNodes,
    clock: Clock,
    progress: Progress,
) -> LocalCluster:
    """Start NATS, the installation, the services and the node agents on a running cluster."""
    processes = Processes(state_dir)
    agents = Agents(state_dir, nodes, cluster.real_nodes, clock)
    with progress.step("Start NATS"):
        agents.enrol()
        server = await start_nats(
            state_dir,
            cluster.nats_port,
            program=program,
            monitor_port=cluster.nats_monitor,
            bound=False,
            clock=clock,
            host=cluster.address,
        )
        reach = {"nats": server.url, "nats_creds": server.credentials, "nats_ca": server.authority}
        cluster = msgspec.structs.replace(cluster, **reach)
        state.write(state_dir, cluster)
    with progress.step("Install Flotilla on the cluster"):
        await _install(cluster)
    with progress.step(f"Start the services: {', '.join(cluster.services)}") as say:
        for name in cluster.services:
            services.ensure(name, cluster, processes, state_dir)
        await services.wait_ready(cluster, processes, clock, say)
    if cluster.real_nodes:
        with progress.step("Start the node agents") as say:
            await agents.start(cluster.nats, say)
    return cluster


def settled(options: UpOptions, old: LocalCluster | None) -> UpOptions:
    """Return the options with numbers of nodes; an existing cluster keeps its nodes, and a bare one stays bare.

    The chart may be installed on a bare one, and a second Flotilla must not run beside it. Raises ClusterError if a
    cluster with Flotilla is asked to be bare.
    """
    real = max(options.real_nodes, old.real_nodes if old else 0)
    usual = 0 if real else FAKE_NODES
    fake = usual if options.nodes is None else options.nodes
    bare = old.bare if old else options.bare
    if options.bare and not bare:
        raise ClusterError(
            "This cluster has Flotilla on it. `flotilla down` removes it; or name another folder with --state."
        )
    return msgspec.structs.replace(options, nodes=max(fake, old.nodes if old else 0), real_nodes=real, bare=bare)


async def _programs(options: UpOptions, clock: Clock, progress: Progress) -> Callable[[str], Path]:
    if not options.real_nodes:
        with progress.step("Get etcd, the Kubernetes control plane, kwok and nats-server") as say:
            return await provide(CONTROL_PLANE, clock, options.assets, say)
    debian.require_root()
    with progress.step("Get the Kubernetes control plane, nats-server, containerd, kubelet and crane") as say:
        program = await provide(SET | CHART if options.bare else SET, clock, options.assets, say)
        await asyncio.to_thread(debian.install, say)
    return program


async def stop_all(state_dir: Path, clock: Clock, say: Callable[[str], None]) -> int:
    """Stop every process of this folder, services first. Return their number."""
    processes = Processes(state_dir)
    on_nodes = recorded(processes)
    known = [NATS, *reversed(ORDER), SWITCH]
    names = [process.name for process in processes.all()]
    running = len(processes.running())
    services_first = [name for name in names if name not in known and name not in on_nodes]
    for name in [*services_first, *on_nodes, *(name for name in known if name in names)]:
        say(name)
        # Nodes get no time for farewells: containers end with them, as in a power cut.
        await processes.stop([name], clock, grace=0 if name in on_nodes else GRACE)
    strays = await _stop_strays(state_dir, processes, clock)
    await isolation.sweep_groups(clock)
    return running + strays


async def _stop_strays(state_dir: Path, processes: Processes, clock: Clock) -> int:
    """Stop the processes of this folder without a record, whose starter was killed before it wrote one.

    Processes in a node need no record: they end with the node's holder.
    """
    sessions = {process.pid for process in processes.running()}
    ours = [process for process in marked(state_dir) if in_our_namespace("pid", process.pid)]
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
    options: UpOptions,
    processes: Processes,
    program: Callable[[str], Path],
    clock: Clock,
    nodes: RealNodes | None,
) -> LocalCluster:
    """Return the recorded cluster if it can continue; else one with ports that are free now.

    With real nodes their network exists afterwards, because the apiserver listens in it.
    """
    old = read_cluster(state_dir)
    address = (await nodes.connect()).host if nodes else HOST
    if old and _can_continue(old, processes) and not _differs(old, options, address):
        numbers = {"nodes": options.nodes or 0, "real_nodes": options.real_nodes}
        return msgspec.structs.replace(old, **numbers, bare=options.bare)
    if old:
        await stop_all(state_dir, clock, lambda _: None)
        address = (await nodes.connect()).host if nodes else HOST
    for port, purpose, option in (
        (options.apiserver_port, "the apiserver", "--port"),
        (options.nats_port, "NATS", "--nats-port"),
        (options.webhook_port, "the webhook", "--webhook-port"),
    ):
        if port:
            require_free(port, purpose, option)
    return _fresh(state_dir, options, program, address, demo_done=bool(old and old.demo_done))


def _fresh(
    state_dir: Path, options: UpOptions, program: Callable[[str], Path], address: str, *, demo_done: bool
) -> LocalCluster:
    names = services.names()
    free = free_ports(7 + len(names))
    nats_port = options.nats_port or free[0]
    return LocalCluster(
        kubeconfig=str(state_dir / "kubeconfig"),
        nats=f"nats://{HOST}:{nats_port}",
        ports=Ports(options.apiserver_port or free[1], free[2], free[3]),
        nats_port=nats_port,
        nats_monitor=free[4],
        webhook_port=options.webhook_port or free[5],
        console_port=free[6],
        services=dict(zip(names, free[7:], strict=True)),
        programs={name: str(program(name)) for name in (CONTROL_PLANE | CHART if options.bare else CONTROL_PLANE)},
        nodes=options.nodes or 0,
        real_nodes=options.real_nodes,
        bare=options.bare,
        address=address,
        demo_done=demo_done,
    )


def _can_continue(old: LocalCluster, processes: Processes) -> bool:
    """Report whether the cluster's ports are its own or free, and the same services are installed."""
    ports = {
        "etcd": [old.ports.etcd, old.ports.etcd_peer],
        "kube-apiserver": [old.ports.apiserver],
        NATS: [old.nats_port, old.nats_monitor],
        "webhook": [old.webhook_port],
        services.CONSOLE: [old.console_port],
    }
    for name, port in old.services.items():
        ports.setdefault(name, []).append(port)
    return list(old.services) == services.names() and all(
        processes.alive(name) or all(map(is_free, wanted)) for name, wanted in ports.items()
    )


def _differs(old: LocalCluster, options: UpOptions, address: str) -> bool:
    pairs = (
        (options.apiserver_port, old.ports.apiserver),
        (options.nats_port, old.nats_port),
        (options.webhook_port, old.webhook_port),
    )
    return address != old.address or any(wanted and wanted != current for wanted, current in pairs)


async def _install(cluster: LocalCluster) -> None:
    command = [sys.executable, "-m", "flotilla_cli", "install", "--kubeconfig", cluster.kubeconfig]
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--webhook-url", cluster.webhook_url),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={key: value for key, value in cleaned().items() if key != MARK},
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise ClusterError(f"`flotilla install` failed:\n{output.decode(errors='replace')}")
