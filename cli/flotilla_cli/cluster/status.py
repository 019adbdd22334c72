"""`flotilla status`: every process of the local set, whether it runs, and whether it is healthy."""

from pathlib import Path

import msgspec

from flotilla_cli.cluster import local_set as state
from flotilla_cli.cluster import probes
from flotilla_cli.cluster.admin import not_ready
from flotilla_cli.cluster.control_plane import ORDER
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_cli.cluster.nats import NAME as NATS
from flotilla_cli.cluster.ports import HOST
from flotilla_cli.cluster.process import Records, is_alive
from flotilla_cli.cluster.realnodes import dns, network
from flotilla_cli.cluster.realnodes.agents import PART as AGENT
from flotilla_cli.cluster.realnodes.agents import PORT as AGENT_PORT
from flotilla_cli.cluster.realnodes.network import SWITCH
from flotilla_cli.cluster.realnodes.nodes import PARTS, PREFIX, node_name, node_problem, part_name
from flotilla_cli.cluster.realnodes.registry import NAME as REGISTRY
from flotilla_common.clock import Clock

ON_NODES = (*PARTS, AGENT)


class Health(msgspec.Struct, frozen=True):
    """One line of `flotilla status`."""

    name: str
    pid: int
    running: bool
    healthy: bool
    detail: str
    log: str


async def check(state_dir: Path, clock: Clock) -> list[Health]:
    """One line per process that the set should have; empty when there is no set."""
    local_set = state.read(state_dir)
    if local_set is None:
        return []
    records = Records(state_dir)
    nodes = [node_name(index) for index in range(local_set.real_nodes)]
    parts = PARTS if local_set.bare else ON_NODES
    daemons = [one for name in nodes for one in [name, *(part_name(name, part) for part in parts)]]
    on_nodes = [SWITCH, REGISTRY, dns.NAME, *daemons]
    names = [*ORDER, *([] if local_set.bare else [NATS, *local_set.services]), *(on_nodes if nodes else [])]
    return [await _line(name, local_set, records, clock, state_dir) for name in names]


async def _line(name: str, local_set: LocalSet, records: Records, clock: Clock, state_dir: Path) -> Health:
    process = records.get(name)
    if process is None or not is_alive(process):
        return Health(name, 0, False, False, "does not run", process.log if process else "")
    problem = await _problem(name, local_set, clock, state_dir)
    return Health(name, process.pid, True, not problem, problem or "ok", process.log)


async def _problem(name: str, local_set: LocalSet, clock: Clock, state_dir: Path) -> str:
    """What is wrong with a running process, as far as it can be asked."""
    if name == "kube-apiserver":
        return await not_ready(Path(local_set.kubeconfig), clock)
    if name == NATS:
        healthy = await probes.serves(f"http://{HOST}:{local_set.nats_monitor}/healthz")
        return "" if healthy else "/healthz does not answer 200"
    if name in local_set.services:
        return await probes.not_ready(HOST, local_set.services[name])
    if name.endswith(f"-{AGENT}"):
        found, index = network.read(state_dir), name.removeprefix(PREFIX).removesuffix(f"-{AGENT}")
        return await probes.not_ready(found.node(int(index)) if found else "", AGENT_PORT)
    if name.endswith("-kubelet"):
        return await node_problem(name.removesuffix("-kubelet"), Path(local_set.kubeconfig), clock)
    return ""
