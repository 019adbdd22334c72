"""Starts, repairs, enters and stops the real nodes of one cluster.

    nodes = RealNodes(state_dir, programs, clock)
    network = await nodes.connect()                     # before the control plane: its apiserver listens there
    await nodes.start(plane, 3)                         # returns when all are ready
    … subprocess.run(nodes.inside("real-0", ["ctr", "-n", "k8s.io", "containers", "list"])) …
    await nodes.stop()

Starting also repairs: running processes are left alone.
"""

import asyncio
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from flotilla_cli.local import ClusterError, Process, write_private
from flotilla_cli.output import Say
from flotilla_common.api.resources import NODE
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_dev.cluster.access import admin, ensure
from flotilla_dev.cluster.control_plane import ControlPlane
from flotilla_dev.cluster.ports import free_ports, listens
from flotilla_dev.cluster.processes import Processes, end_of, send, until
from flotilla_dev.cluster.realnodes import daemons, isolation, network, registry
from flotilla_dev.cluster.realnodes.daemons import NodePlan
from flotilla_dev.cluster.realnodes.debian import PATH
from flotilla_dev.cluster.realnodes.init import READY
from flotilla_dev.cluster.realnodes.network import SWITCH, Network
from flotilla_dev.cluster.realnodes.registry import Registry

PREFIX = "real-"
PARTS = ("containerd", "kubelet", "kube-proxy")
READY_WITHIN = 60.0  # seconds; it takes about five
POLL = 0.2


def node_name(index: int) -> str:
    """Return the name of a node, and of the process that holds it."""
    return f"{PREFIX}{index}"


def part_name(node: str, part: str) -> str:
    """Return the name of the process of one of a node's daemons."""
    return f"{node}-{part}"


def recorded(processes: Processes) -> list[str]:
    """Return the processes of real nodes in the order in which to stop them: the holders end the rest.

    The switch is not among them, because the apiserver listens at its address.
    """
    names = [process.name for process in processes.all()]
    ours = [name for name in names if name.startswith(PREFIX)]
    holders = [name for name in ours if name.removeprefix(PREFIX).isdigit()]
    rest = [name for name in ours if name not in holders]
    return [*holders, *rest, *(name for name in (registry.NAME, network.DNS) if name in names)]


class RealNodes:
    """The real nodes of one state folder."""

    def __init__(self, state_dir: Path, programs: Callable[[str], Path], clock: Clock, *, bound: bool = False) -> None:
        self._state_dir = state_dir
        self._programs = programs
        self._clock = clock
        self._bound = bound
        self._processes = Processes(state_dir)

    @property
    def registries(self) -> Path:
        """The folder with a directory for each further registry; see `containerd.trust`."""
        return self._state_dir / "registries"

    @property
    def path(self) -> str:
        """PATH for programs in a node: containerd needs its shim there, people `ctr`."""
        return f"{self._programs('containerd-shim-runc-v2').parent}:{PATH}"

    @property
    def network(self) -> Network:
        """The cluster's addresses. Raises ClusterError before `connect`."""
        found = network.read(self._state_dir)
        if found is None:
            raise ClusterError("This cluster has no real nodes.")
        return found

    async def connect(self) -> Network:
        """Make the network, or repair it."""
        return await network.ensure_network(self._state_dir, self._processes, self._clock, bound=self._bound)

    async def registry(self) -> Registry:
        """Return the cluster's image registry, started if it does not run; always at the same port."""
        remembered = self._state_dir / "registry.json"
        if not remembered.exists():
            write_private(remembered, msgspec.json.encode(free_ports(1)[0]))
        port = msgspec.json.decode(remembered.read_bytes(), type=int)
        address = f"{self.network.host}:{port}"
        return await registry.ensure(
            self._state_dir, self._processes, self._programs, self._clock, address, bound=self._bound
        )

    async def start(self, plane: ControlPlane, count: int, say: Say = lambda _: None) -> None:
        """Start the missing ones of `real-0` … `real-<count-1>`, and wait until pods can be scheduled there."""
        await isolation.sweep_groups(self._clock)
        say("filling the registry")
        images = await self.registry()
        daemons.trust_registry(self.registries, "_default", images.url)
        names = [node_name(index) for index in range(count)]
        say("starting the name server")
        await network.start_dns(plane, self._programs, self._clock, str(self.network.host), bound=self._bound)
        say("making namespaces")
        for name in names:
            await self.hold(name)
        async with admin(plane.kubeconfig, self._clock) as api:
            for index in range(count):
                await ensure(api, NODE, daemons.object_for(self._plan(index)))
        for index, name in enumerate(names):
            say(f"starting {name}")
            network.attach(self.network, index, name, self._holder(name), self._holder(SWITCH))
            for part in PARTS:
                await self.ensure(name, part, plane)
        say("waiting for the kubelets")
        await self._ready(plane, names)

    async def hold(self, name: str) -> Process:
        """Return the process that holds a node's namespaces, started if it does not run, when it is ready."""
        ready = self._folder(name) / READY
        holder = self._processes.alive(name)
        if holder is None:
            ready.parent.mkdir(parents=True, exist_ok=True)
            ready.unlink(missing_ok=True)
            holder = self._processes.spawn(name, isolation.node_holder(self._folder(name)), bound=self._bound)
        problem = f"{name} could not be made"
        await until(partial(asyncio.to_thread, ready.exists), holder, self._clock, isolation.READY_WITHIN, problem)
        isolation.make_group(holder)
        return holder

    async def ensure(self, name: str, part: str, plane: ControlPlane) -> Process:
        """Return the process of one of a node's daemons (`PARTS`), started if it does not run."""
        record = part_name(name, part)
        current = self._processes.alive(record)
        if current is not None:
            send(current, signal.SIGCONT)  # nsenter stops whenever its command does, and goes on only by itself
            return current
        plan = self._plan(int(name.removeprefix(PREFIX)))
        socket = self.files(name) / daemons.SOCKET.lstrip("/")
        if part == "containerd":
            socket.unlink(missing_ok=True)
        argv = self.inside(name, self._command(part, plan, plane))
        process = self._processes.spawn(record, argv, bound=self._bound, env={"PATH": self.path})
        if part == "containerd":
            # A kubelet that starts before its containerd ends at once.
            listens, problem = partial(asyncio.to_thread, socket.exists), f"{record} did not start"
            await until(listens, process, self._clock, READY_WITHIN, problem)
        return process

    async def stop(self) -> None:
        """Stop all nodes with everything in them, the registry and the network, and remove their control groups.

        The apiserver cannot be reached afterwards.
        """
        await self._processes.stop([*recorded(self._processes), SWITCH], self._clock, grace=0)
        await isolation.sweep_groups(self._clock)

    def inside(self, name: str, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a command in a node, in its namespaces."""
        return isolation.inside(self._holder(name), command)

    def files(self, name: str) -> Path:
        """Return the root of the files as the node sees them, to read from outside."""
        return Path(f"/proc/{self._holder(name).pid}/root")

    async def _ready(self, plane: ControlPlane, names: list[str]) -> None:
        deadline = self._clock.monotonic() + READY_WITHIN
        async with admin(plane.kubeconfig, self._clock) as api:
            while waiting := await self._waiting(api, names):
                if self._clock.monotonic() > deadline:
                    said = "; ".join(f"{name}: {why}" for name, why in waiting.items())
                    end = end_of(self._processes.log(part_name(min(waiting), "kubelet")))
                    raise ClusterError(f"Not ready: {said}. {end}")
                for name in waiting:  # a kubelet ends when its containerd does not answer yet
                    await self.ensure(name, "kubelet", plane)
                await self._clock.sleep(POLL)

    async def _waiting(self, api: Api, names: list[str]) -> dict[str, str]:
        """Return the nodes to which no pods can be scheduled, and why."""
        nodes = [msgspec.json.decode(raw, type=Json) for raw in (await api.list(NODE)).items]
        states = {node["metadata"]["name"]: unready(node) for node in nodes}
        for index, name in enumerate(names):
            if not states[name] and not await listens(self.network.node(index), daemons.KUBELET_PORT):
                states[name] = "its kubelet does not answer"  # what its Node says is from before
        return {name: states[name] for name in names if states[name]}

    def _command(self, part: str, plan: NodePlan, plane: ControlPlane) -> list[str]:
        program = self._programs(part)
        match part:
            case "containerd":
                networks = plan.folder / "net.d"
                write_private(networks / "10-flotilla.conflist", msgspec.json.encode(daemons.pod_network(plan)))
                config = daemons.write_containerd(plan.folder, self.registries, networks)
                return [str(program), "--config", str(config), "--log-level", "info"]
            case "kubelet":
                kubeconfig = plane.write_node_kubeconfig(plan.name)
                return daemons.kubelet(plan, program, kubeconfig, plane.places.clients.certificate)
            case _:
                return daemons.proxy(plan, program, plane.places.kubeconfig("kube-proxy"))

    def _plan(self, index: int) -> NodePlan:
        name = node_name(index)
        group = f"/{isolation.group_name(self._holder(name))}"
        return NodePlan(index=index, folder=self._folder(name), network=self.network, group=group)

    def _folder(self, name: str) -> Path:
        return self._state_dir / "nodes" / name

    def _holder(self, name: str) -> Process:
        holder = self._processes.alive(name)
        if holder is None:
            raise ClusterError(f"{name} does not run.")
        return holder


async def node_problem(name: str, kubeconfig: Path, clock: Clock) -> str:
    """Return why pods cannot be scheduled to a node, from its Node; empty if they can."""
    try:
        async with admin(kubeconfig, clock) as api:
            node = msgspec.json.decode(await api.get(NODE, "", name), type=Json)
    except (ApiError, Unreachable) as error:
        return str(error)
    return unready(node)


def unready(node: Json) -> str:
    """Return why pods cannot be scheduled to this Node; empty if they can."""
    conditions: list[Json] = node.get("status", {}).get("conditions") or []
    ready = next((one for one in conditions if one["type"] == "Ready"), Json(message="its kubelet has not reported"))
    if ready.get("status") != "True":
        return str(ready["message"])
    taints: list[Json] = node["spec"].get("taints") or []
    return ", ".join(str(taint["key"]) for taint in taints)
