"""A container runtime in memory: the calls that the agent makes, on the images and containers of a machine.

Containers are those that the simulated kubelet reports, so that a stop is a restart, as everywhere. Each call is a
point at which something may go wrong (`Socket`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from flotilla_common.api.documents import mappings, member
from flotilla_common.control.plan import Json
from flotilla_nodeagent.cri.errors import CriError, NotFound
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.types import (
    CONTAINER_NAME_LABEL,
    POD_UID_LABEL,
    RESTARTS_ANNOTATION,
    Container,
    Executed,
    Image,
    Login,
    State,
)
from tests.simulation.nodes.machine import Machine

T = TypeVar("T")

SOCKET = "/run/simulated.sock"
SCHEME = "containerd://"

LOOK_SECONDS = 0.01
"""Between looks whether a container has ended."""


class SimulatedRuntime(Runtime):
    """The simulated counterpart of `flotilla_nodeagent.cri.runtime.Runtime`."""

    def __init__(self, machine: Machine) -> None:
        # The real one opens a socket here.
        self.path = SOCKET
        self.name = "containerd"
        self.version = "2.0"
        self._machine = machine

    def close(self) -> None:
        """There is no socket."""

    async def probe(self) -> None:
        await self._call("Version", self._nothing)

    async def check(self) -> None:
        await self.probe()

    async def holds_pods(self) -> bool:
        return True

    async def containers(self, pod_uid: str) -> list[Container]:
        async def serve() -> list[Container]:
            pods = [pod for pod in self._machine.pods() if pod["metadata"]["uid"] == pod_uid]
            return [one for pod in pods for one in _containers(pod)]

        return await self._call("ListContainers", serve)

    async def all_containers(self) -> list[Container]:
        async def serve() -> list[Container]:
            return [one for pod in self._machine.pods() for one in _containers(pod)]

        return await self._call("ListContainers", serve)

    async def container(self, container_id: str) -> Container | None:
        async def serve() -> Container | None:
            found = self._find(container_id)
            return None if found is None else found[1]

        return await self._call("ListContainers", serve)

    async def started_at(self, container_id: str) -> float:
        async def serve() -> float:
            found = self._find(container_id)
            if found is None:
                raise NotFound("no such container")
            return found[1].created_at / 1e9

        return await self._call("ContainerStatus", serve)

    async def environment(self, container_id: str) -> dict[str, str] | None:
        async def serve() -> dict[str, str]:
            return {}

        return await self._call("ContainerStatus", serve)

    async def stop(self, container_id: str, grace: int) -> None:
        async def serve() -> None:
            found = self._find(container_id)
            if found is not None:
                pod, container = found
                namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
                self._machine.stops.append((name, container.name))
                self._machine.cluster.crash_container(namespace, name, container.name)
            await self._end_of(container_id)

        await self._call("StopContainer", serve)

    async def execute(self, container_id: str, command: list[str], *, keep: int, seconds: int = 0) -> Executed:
        async def serve() -> Executed:
            found = self._find(container_id)
            if found is None or found[1].state is not State.RUNNING:
                raise CriError("the container does not run")
            code, text = self._machine.answers.get(" ".join(command), (0, ""))
            return Executed(code, text.encode()[:keep], text.encode()[:keep])

        return await self._call("ExecSync", serve)

    async def images(self) -> list[Image]:
        async def serve() -> list[Image]:
            return [Image(f"sha256:{name}", (f"docker.io/library/{name}", name)) for name in self._machine.images]

        return await self._call("ListImages", serve)

    async def pull(
        self, image: str, login: Login | None, *, labels: dict[str, str], annotations: dict[str, str]
    ) -> None:
        machine = self._machine

        async def serve() -> None:
            machine.pulls[image] += 1
            await asyncio.sleep(machine.pull_seconds)
            wanted = machine.passwords.get(image.rpartition(":")[0])
            if wanted is not None and (login is None or login.password != wanted):
                raise CriError("401 Unauthorized")
            if image in machine.broken:
                raise CriError("manifest unknown")
            machine.images[image] = machine.images.get(image, 0) + 1

        await self._call("PullImage", serve)

    async def _nothing(self) -> None:
        return None

    async def _call(self, method: str, serve: Callable[[], Awaitable[T]]) -> T:
        return await self._machine.socket.carry(self._machine.agent, method, serve)

    async def _end_of(self, container_id: str) -> None:
        """Wait until the container has ended, as a runtime does before it answers."""
        found = self._find(container_id)
        if found is not None and found[1].state is State.RUNNING:
            await asyncio.sleep(LOOK_SECONDS)
            await self._end_of(container_id)

    def _find(self, container_id: str) -> tuple[Json, Container] | None:
        found = ((pod, one) for pod in self._machine.pods() for one in _containers(pod) if one.id == container_id)
        return next(found, None)


def _containers(pod: Json) -> list[Container]:
    return [_container(pod, one) for one in mappings(member(pod, "status").get("containerStatuses"))]


def _container(pod: Json, status: Json) -> Container:
    running = member(member(status, "state"), "running")
    started = str(running.get("startedAt", ""))
    return Container(
        id=str(status.get("containerID", "")).removeprefix(SCHEME),
        state=State.RUNNING if running else State.EXITED,
        created_at=int(datetime.fromisoformat(started).timestamp() * 1e9) if started else 0,
        sandbox=pod["metadata"]["uid"],
        labels={CONTAINER_NAME_LABEL: str(status["name"]), POD_UID_LABEL: pod["metadata"]["uid"]},
        annotations={RESTARTS_ANNOTATION: str(status.get("restartCount", 0))},
    )
