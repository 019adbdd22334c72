"""Checks every process of the local cluster: whether it runs, and whether it is healthy."""

from pathlib import Path

from flotilla_cli.local import HOST, LocalCluster, is_alive, read_cluster
from flotilla_common.clock import Clock
from flotilla_dev.cluster import ports
from flotilla_dev.cluster.access import not_ready
from flotilla_dev.cluster.control_plane import ORDER
from flotilla_dev.cluster.nats import NAME as NATS
from flotilla_dev.cluster.processes import Processes
from flotilla_dev.cluster.realnodes import network
from flotilla_dev.cluster.realnodes.network import SWITCH
from flotilla_dev.cluster.realnodes.nodes import PARTS, PREFIX, node_name, node_problem, part_name
from flotilla_dev.cluster.realnodes.registry import NAME as REGISTRY
from flotilla_dev.cluster.services import AGENT, AGENT_PORT
from flotilla_insight.doctor.facts import Health

ON_NODES = (*PARTS, AGENT)


async def check(state_dir: Path, clock: Clock) -> list[Health]:
    """Return the health of every process that the cluster should have; empty if there is no cluster."""
    cluster = read_cluster(state_dir)
    if cluster is None:
        return []
    processes = Processes(state_dir)
    nodes = [node_name(index) for index in range(cluster.real_nodes)]
    parts = PARTS if cluster.bare else ON_NODES
    daemons = [one for name in nodes for one in [name, *(part_name(name, part) for part in parts)]]
    on_nodes = [SWITCH, REGISTRY, network.DNS, *daemons]
    names = [*ORDER, *([] if cluster.bare else [NATS, *cluster.services]), *(on_nodes if nodes else [])]
    return [await _line(name, cluster, processes, clock, state_dir) for name in names]


async def _line(name: str, cluster: LocalCluster, processes: Processes, clock: Clock, state_dir: Path) -> Health:
    process = processes.get(name)
    if process is None or not is_alive(process):
        return Health(name, 0, False, False, "does not run", process.log if process else "")
    problem = await _problem(name, cluster, clock, state_dir)
    return Health(name, process.pid, True, not problem, problem or "ok", process.log)


async def _problem(name: str, cluster: LocalCluster, clock: Clock, state_dir: Path) -> str:
    """Return what is wrong with a running process, if it can be asked."""
    if name == "kube-apiserver":
        return await not_ready(Path(cluster.kubeconfig), clock)
    if name == NATS:
        healthy = await ports.serves(f"http://{HOST}:{cluster.nats_monitor}/healthz")
        return "" if healthy else "/healthz does not answer 200"
    if name in cluster.services:
        return await ports.not_ready(HOST, cluster.services[name])
    if name.endswith(f"-{AGENT}"):
        found, index = network.read(state_dir), name.removeprefix(PREFIX).removesuffix(f"-{AGENT}")
        return await ports.not_ready(found.node(int(index)) if found else "", AGENT_PORT)
    if name.endswith("-kubelet"):
        return await node_problem(name.removesuffix("-kubelet"), Path(cluster.kubeconfig), clock)
    return ""
