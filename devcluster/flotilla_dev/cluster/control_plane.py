"""A control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok and our volume provisioner.

    plane = ControlPlane(Path("state"), toolset, clock)
    await plane.start()      # ready in a few seconds; running components are left alone
    await plane.add_nodes(10)
    … plane.kubeconfig …
    await plane.stop()

`start` also repairs: it starts the components that do not run. Started processes are recorded in the state folder, so
that later commands find them.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from flotilla_cli.local import HOST, ClusterError, Ports, Process
from flotilla_common.clock import Clock
from flotilla_dev.cluster import access, components, kwok
from flotilla_dev.cluster.access import admin, not_ready
from flotilla_dev.cluster.components import Places
from flotilla_dev.cluster.processes import Processes, end_of

ORDER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "volumes")
READY_WITHIN = 90.0  # seconds; it takes 4 on an idle machine, and many times that under a parallel build
POLL = 0.1


class PlaneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a control plane.

    `address`: where the apiserver listens. `durable`: etcd syncs to disk. `bound`: the processes end with this one
    (tests). `apiserver_flags`: appended to its own.
    """

    address: str = HOST
    durable: bool = True
    bound: bool = False
    apiserver_flags: tuple[str, ...] = ()
    kubelet: kwok.Kubelet = kwok.Kubelet()


class ControlPlane:
    """One control plane in one state folder."""

    def __init__(
        self,
        state_dir: Path,
        programs: Callable[[str], Path],
        clock: Clock,
        ports: Ports | None = None,
        options: PlaneOptions | None = None,
    ) -> None:
        self.ports = ports or components.choose_ports()
        self.places = Places(state_dir)
        self.options = options or PlaneOptions()
        self.processes = Processes(state_dir)
        self._programs = programs
        self._clock = clock
        self._kwok_boot = ""

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.places.kubeconfig("admin")

    @property
    def server(self) -> str:
        """The apiserver's address."""
        return f"https://{self.options.address}:{self.ports.apiserver}"

    async def start(self, say: Callable[[str], None] = lambda _: None) -> None:
        """Start the components that do not run, and return when the apiserver serves. `say` gets each step."""
        tokens = access.write_tokens(self.places.tokens)
        access.write_signing_key(self.places.signing_key)
        self.places.clients.make(self._clock)
        self.places.clients.issue(self.places.kubelet_client, "kube-apiserver", "system:masters", self._clock)
        self.places.servers.make(self._clock)
        self.places.servers.issue_server(self.places.server, self._names, self._clock)
        for component, token in tokens.items():
            self._write_kubeconfig(component, {"token": token})
        for component in ORDER:
            if component == "kwok" and not self.processes.alive(component):
                await self._start_kwok()
            self.ensure(component)
            if component == "kube-apiserver":
                say("waiting for the apiserver")
                await self._ready()

    def ensure(self, component: str) -> Process:
        """Return the component's process, started if it does not run."""
        current = self.processes.alive(component)
        if current is not None:
            return current
        env = kwok.ENVIRONMENT if component == "kwok" else {}
        return self.processes.spawn(component, self._command(component), bound=self.options.bound, env=env)

    async def add_nodes(self, count: int) -> None:
        """Create the missing fake nodes of `node-0` … `node-<count-1>`, and wait until pods can be scheduled there."""
        try:
            async with admin(self.kubeconfig, self._clock) as api:
                await kwok.add_nodes(api, count, self._clock)
        except ClusterError as error:
            raise ClusterError(f"{error}; see {self.processes.log('kwok')}") from error

    async def stop(self, grace: float = 10) -> None:
        """Stop every component, clients first, so that nothing logs errors about a missing apiserver."""
        await self.processes.stop(reversed(ORDER), self._clock, grace)

    def write_node_kubeconfig(self, node: str) -> Path:
        """Write the credentials of a node's kubelet. Return its kubeconfig."""
        pair = self.places.state_dir / f"{node}.pem"
        self.places.clients.issue(pair, f"system:node:{node}", "system:nodes", self._clock)
        return self._write_kubeconfig(node, {"client-certificate": str(pair), "client-key": str(pair)})

    def _write_kubeconfig(self, component: str, user: dict[str, str]) -> Path:
        path = self.places.kubeconfig(component)
        access.write_kubeconfig(path, self.server, self.places.servers.certificate, user)
        return path

    @property
    def _names(self) -> list[str]:
        """The names of the apiserver for clients on this machine and in pods."""
        inside = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", components.SERVICE_ADDRESS]
        return list(dict.fromkeys([self.options.address, HOST, "localhost", *inside]))

    def _command(self, component: str) -> list[str]:
        if component == "volumes":
            module = [sys.executable, "-m", "flotilla_dev.cluster.volumes"]
            return [*module, str(self.kubeconfig), str(self.places.volumes)]
        program, *arguments = self._arguments(component)
        return [str(self._programs(program)), *arguments]

    def _arguments(self, component: str) -> list[str]:
        match component:
            case "etcd":
                return components.etcd(self.places, self.ports, durable=self.options.durable)
            case "kube-apiserver":
                return components.apiserver(
                    self.places, self.ports, self.options.address, list(self.options.apiserver_flags)
                )
            case "kube-controller-manager":
                return components.controller_manager(self.places, self.options.address)
            case "kube-scheduler":
                return components.scheduler(self.places)
            case _:
                return kwok.command(self.places, self.options.kubelet, self._kwok_boot)

    async def _start_kwok(self) -> None:
        self._kwok_boot = self._clock.now().isoformat()
        self.ensure("kwok")
        try:
            async with admin(self.kubeconfig, self._clock) as api:
                await kwok.show_pods(api, self._clock, self._kwok_boot, partial(self.ensure, "kwok"))
        except ClusterError as error:
            raise ClusterError(f"{error}. {end_of(self.processes.log('kwok'))}") from error

    async def _ready(self) -> None:
        deadline = self._clock.monotonic() + READY_WITHIN
        problem = "it has not been asked yet"
        while self._clock.monotonic() < deadline:
            for component in ("etcd", "kube-apiserver"):
                if not self.processes.alive(component):
                    end = end_of(self.processes.log(component))
                    raise ClusterError(f"{component} ended right after its start. {end}")
            problem = await not_ready(self.kubeconfig, self._clock)
            if not problem:
                return
            await self._clock.sleep(POLL)
        end = end_of(self.processes.log("kube-apiserver"))
        raise ClusterError(f"The apiserver is not ready after {READY_WITHIN:.0f} s ({problem}). {end}")
