"""A container runtime and the kubelet above it, in simulated time, as the agent's client sees them."""

import asyncio
from collections.abc import Callable
from contextvars import Context

from flotilla_nodeagent.cri.errors import CriError, NotFound, TimedOut, Unavailable
from flotilla_nodeagent.cri.types import (
    CONTAINER_NAME_LABEL,
    HASH_ANNOTATION,
    POD_UID_LABEL,
    RESTARTS_ANNOTATION,
    Container,
    Executed,
    Image,
    Login,
    State,
)
from tests.simulation.loop import EPOCH

RESTART_SECONDS = 1.0


class Machine:
    """The state of the node, independent of its readers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.outside = Context()
        self.up = True
        self.containers: dict[str, Container] = {}
        self.pods: dict[str, str] = {}  # container id to pod uid
        self.started: dict[str, float] = {}
        self.environments: dict[str, dict[str, str]] = {}
        self.tells_environment = True
        self.stops: list[tuple[float, str, int]] = []  # time, container id, grace
        self.stop_takes = 0.1
        self.stop_fails: dict[str, Exception] = {}
        self.hooks: list[tuple[float, str, str]] = []  # time, container id, begun or done
        self.hook_takes = 0.0
        self.images: list[Image] = []
        self.pulls: list[tuple[float, str, Login | None, str]] = []  # time, image, login, begun or done
        self.pull_takes = 1.0
        self.pull_fails: list[Exception] = []  # one per attempt, in order
        self.passwords: dict[str, str] = {}  # repository to its password
        self.pull_annotations: dict[str, str] = {}
        self.restarts = True  # the kubelet starts exited containers again
        self.lists = 0  # of all containers
        self.ips: dict[str, tuple[str, ...]] = {}  # by pod
        self.answers: dict[str, Executed | Exception] = {}  # of commands ["probe", NAME]
        self.probe_takes: dict[str, float] = {}
        self.probes: list[tuple[float, str, str]] = []  # time, container id, name
        self.on_started: Callable[[Container, str], None] = lambda container, pod: None
        self._numbers: dict[tuple[str, str], int] = {}

    def start(
        self,
        pod: str,
        name: str,
        *,
        plain_hash: int = 7,
        env: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
    ) -> Container:
        """Start a new instance of a container."""
        number = self._numbers[pod, name] = self._numbers.get((pod, name), -1) + 1
        container = Container(
            id=f"{pod}-{name}-{number}",
            state=State.RUNNING,
            created_at=int(self.loop.time() * 1e9) + len(self.containers),
            sandbox=pod,
            labels={CONTAINER_NAME_LABEL: name, POD_UID_LABEL: pod} | (labels or {}),
            annotations={HASH_ANNOTATION: f"{plain_hash:x}", RESTARTS_ANNOTATION: str(number)},
        )
        self.containers[container.id] = container
        self.pods[container.id] = pod
        self.started[container.id] = EPOCH.timestamp() + self.loop.time()
        self.environments[container.id] = env or {}
        self.on_started(container, pod)
        return container

    def exit(self, container_id: str) -> None:
        """End the container's process; the kubelet restarts it a moment later."""
        container = self.containers[container_id]
        if container.state != State.RUNNING:
            return
        changed = {**{name: getattr(container, name) for name in container.__struct_fields__}, "state": State.EXITED}
        self.containers[container_id] = Container(**changed)
        if self.restarts:
            name = container.name
            self.loop.call_later(
                RESTART_SECONDS, lambda: self.start(self.pods[container_id], name), context=self.outside
            )

    def newest(self, pod: str, name: str) -> Container:
        return max(
            (one for one in self.containers.values() if one.name == name and self.pods[one.id] == pod),
            key=lambda one: one.created_at,
        )


class FakeRuntime:
    """The client's side of `flotilla_nodeagent.cri.runtime.Runtime`."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.name = "containerd"
        self.version = "2.0"
        self.path = "/fake.sock"

    def close(self) -> None:
        """Do nothing."""

    async def _reach(self) -> None:
        await asyncio.sleep(0.001)
        if not self.machine.up:
            raise Unavailable("connection refused")

    async def _lasting(self, seconds: float) -> None:
        """Let time pass for a call; the runtime may die meanwhile."""
        end = self.machine.loop.time() + seconds
        while (left := end - self.machine.loop.time()) > 1e-6:
            await asyncio.sleep(min(left, 0.1))
            if not self.machine.up:
                raise Unavailable("Connection lost")

    async def probe(self) -> None:
        await self._reach()

    async def check(self) -> None:
        await self.probe()

    async def holds_pods(self) -> bool:
        return True

    async def containers(self, pod_uid: str) -> list[Container]:
        await self._reach()
        return [one for one in self.machine.containers.values() if self.machine.pods[one.id] == pod_uid]

    async def all_containers(self) -> list[Container]:
        await self._reach()
        self.machine.lists += 1
        return list(self.machine.containers.values())

    async def container(self, container_id: str) -> Container | None:
        await self._reach()
        return self.machine.containers.get(container_id)

    async def started_at(self, container_id: str) -> float:
        await self._reach()
        if container_id not in self.machine.containers:
            raise NotFound("no such container")
        return self.machine.started[container_id]

    async def environment(self, container_id: str) -> dict[str, str] | None:
        await self._reach()
        return self.machine.environments[container_id] if self.machine.tells_environment else None

    async def sandbox_ip(self, sandbox_id: str) -> str:
        return "127.0.0.1"

    async def sandbox_ips(self, sandbox_id: str) -> tuple[str, ...]:
        return self.machine.ips.get(sandbox_id, ())

    async def stop(self, container_id: str, grace: int) -> None:
        await self._reach()
        machine = self.machine
        machine.stops.append((machine.loop.time(), container_id, grace))
        name = machine.containers[container_id].name
        if name in machine.stop_fails:
            raise machine.stop_fails[name]
        takes = min(machine.stop_takes, float(grace))
        machine.loop.call_later(takes, machine.exit, container_id, context=machine.outside)
        await self._lasting(takes + 0.01)

    async def execute(self, container_id: str, command: list[str], *, keep: int, seconds: int = 0) -> Executed:
        await self._reach()
        machine = self.machine
        if command == ["env"]:
            if container_id.partition("-")[0].startswith("noenv"):
                raise CriError("exec failed")
            lines = "\n".join(f"{name}={value}" for name, value in machine.environments[container_id].items())
            return Executed(0, lines.encode()[:keep], cut=len(lines.encode()) > keep)
        if command[0] == "probe":
            return await self._probed(container_id, command[1], seconds)
        machine.hooks.append((machine.loop.time(), container_id, "begun"))
        await self._lasting(machine.hook_takes)
        machine.hooks.append((machine.loop.time(), container_id, "done"))
        return Executed(0 if command != ["false"] else 1, b"", b"it failed")

    async def _probed(self, container_id: str, name: str, seconds: int) -> Executed:
        """Return the result of a probe's command."""
        machine = self.machine
        machine.probes.append((machine.loop.time(), container_id, name))
        if machine.containers[container_id].state != State.RUNNING:
            raise CriError("container is in CONTAINER_EXITED state")
        takes, given = machine.probe_takes.get(name, 0.0), machine.answers.get(name, Executed(0))
        await self._lasting(min(takes, float(seconds)))
        if takes > seconds:
            raise TimedOut(f"timeout {seconds}s exceeded: context deadline exceeded")
        if machine.containers[container_id].state != State.RUNNING:
            return Executed(137, b"", b"")
        if isinstance(given, Exception):
            raise given
        return given

    async def images(self) -> list[Image]:
        await self._reach()
        return list(self.machine.images)

    async def pull(
        self, image: str, login: Login | None, *, labels: dict[str, str], annotations: dict[str, str]
    ) -> None:
        await self._reach()
        machine = self.machine
        machine.pulls.append((machine.loop.time(), image, login, "begun"))
        machine.pull_annotations = annotations
        repository = image.rpartition(":")[0]
        wanted = machine.passwords.get(repository)
        if wanted is not None and (login is None or login.password != wanted):
            raise CriError("401 Unauthorized")
        if machine.pull_fails and (error := machine.pull_fails.pop(0)) is not None:
            raise error
        await self._lasting(machine.pull_takes)
        machine.images.append(Image(f"sha256:{len(machine.images):04d}", (f"docker.io/library/{image}", image)))
        machine.pulls.append((machine.loop.time(), image, login, "done"))
