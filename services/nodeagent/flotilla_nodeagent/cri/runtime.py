"""One container runtime: the calls that the agent makes, as methods on plain values.

The channel connects when first used and again after the runtime was restarted. No call is retried here: whether a retry
is safe depends on the caller.
"""

import contextlib

import msgspec

from flotilla_nodeagent.cri.errors import CriError, NotFound, translated
from flotilla_nodeagent.cri.output import CallChannel
from flotilla_nodeagent.cri.types import POD_UID_LABEL, Container, Executed, Image, Login, State
from flotilla_nodeagent.cri.wire import cri_pb2 as wire
from flotilla_nodeagent.cri.wire.cri_grpc import ImageServiceStub, RuntimeServiceStub

CALL_SECONDS = 5.0
"""Timeout of a call that only reads, and the margin of longer ones beyond their own time (nodeagent.md §2)."""

PROBE_SECONDS = 10.0
"""Timeout of the first call on a socket: cri-dockerd lists all images of Docker in it."""


class _Process(msgspec.Struct):
    env: list[str] = []


class _RuntimeSpec(msgspec.Struct):
    process: _Process | None = None


class _Info(msgspec.Struct, rename="camel"):
    runtime_spec: _RuntimeSpec | None = None


_decode_info = msgspec.json.Decoder(_Info).decode


class Runtime:
    """A runtime behind a socket. All methods raise CriError."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = ""  # `containerd`, `cri-o`, `docker`: the prefix of the IDs in pod statuses
        self.version = ""
        self._channel = CallChannel(path=path)
        self._runtime = RuntimeServiceStub(self._channel)
        self._images = ImageServiceStub(self._channel)

    async def probe(self) -> None:
        """Check that it supports version 1, and read its name."""
        async with translated():
            await self._images.ImageFsInfo(wire.ImageFsInfoRequest(), timeout=PROBE_SECONDS)
        await self.check()

    async def check(self) -> None:
        """Check that it still answers, with the cheapest call."""
        async with translated():
            reply = await self._runtime.Version(wire.VersionRequest(version="v1"), timeout=CALL_SECONDS)
        self.name, self.version = reply.runtime_name, reply.runtime_version

    async def containers(self, pod_uid: str) -> list[Container]:
        """Return all containers of the pod, dead ones included."""
        chosen = wire.ContainerFilter(label_selector={POD_UID_LABEL: pod_uid})
        return await self._list(chosen)

    async def all_containers(self) -> list[Container]:
        """Return all containers of all pods, dead ones included."""
        return await self._list(wire.ContainerFilter())

    async def holds_pods(self) -> bool:
        """Report whether the kubelet has created containers here."""
        return any(POD_UID_LABEL in container.labels for container in await self.all_containers())

    async def container(self, container_id: str) -> Container | None:
        """Return the container with this ID, or None."""
        containers = await self._list(wire.ContainerFilter(id=container_id))
        return next((container for container in containers if container.id == container_id), None)

    async def started_at(self, container_id: str) -> float:
        """Return when the container was started, in seconds since the epoch; 0 if it never was."""
        async with translated():
            request = wire.ContainerStatusRequest(container_id=container_id)
            reply = await self._runtime.ContainerStatus(request, timeout=CALL_SECONDS)
        return max(reply.status.started_at, 0) / 1e9

    async def environment(self, container_id: str) -> dict[str, str] | None:
        """Return the environment that the container was started with, or None if the runtime does not report it.

        It holds secrets: the caller picks what it needs and logs nothing.
        """
        async with translated():
            request = wire.ContainerStatusRequest(container_id=container_id, verbose=True)
            reply = await self._runtime.ContainerStatus(request, timeout=CALL_SECONDS)
        try:
            spec = _decode_info(reply.info.get("info", "{}")).runtime_spec
        except msgspec.DecodeError as error:
            raise CriError(f"the runtime's verbose status cannot be read: {error}") from error
        if spec is None or spec.process is None:
            return None
        pairs = (entry.partition("=") for entry in spec.process.env)
        return {name: value for name, _, value in pairs}

    async def stop(self, container_id: str, grace: int) -> None:
        """Send the stop signal, and kill after `grace` seconds. A container that is gone counts as stopped."""
        request = wire.StopContainerRequest(container_id=container_id, timeout=grace)
        limit = grace + CALL_SECONDS  # beyond the grace, or containerd would not kill at its end (cri.md §14)
        with contextlib.suppress(NotFound):
            async with translated():
                await self._runtime.StopContainer(request, timeout=limit)

    async def execute(self, container_id: str, command: list[str], *, keep: int, seconds: int = 0) -> Executed:
        """Run a command in the container, for at most `seconds` (0: without limit).

        Only the first `keep` bytes of stdout and of stderr are returned; the rest is never in memory.
        """
        async with translated():
            request = wire.ExecSyncRequest(container_id=container_id, cmd=command, timeout=seconds)
            return await self._channel.execute(request, keep, seconds + CALL_SECONDS if seconds else None)

    async def sandbox_ip(self, sandbox_id: str) -> str:
        """Return the pod's IP, "" for a pod in the node's network."""
        return next(iter(await self.sandbox_ips(sandbox_id)), "")

    async def sandbox_ips(self, sandbox_id: str) -> tuple[str, ...]:
        """Return all IPs of the pod, its first one first; none for a pod in the node's network."""
        async with translated():
            request = wire.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id)
            reply = await self._runtime.PodSandboxStatus(request, timeout=CALL_SECONDS)
        network = reply.status.network
        return tuple(ip for ip in (network.ip, *(additional.ip for additional in network.additional_ips)) if ip)

    async def images(self) -> list[Image]:
        """Return all complete images."""
        async with translated():
            reply = await self._images.ListImages(wire.ListImagesRequest(), timeout=PROBE_SECONDS)
        return [Image(image.id, tuple(image.repo_tags), tuple(image.repo_digests)) for image in reply.images]

    async def pull(
        self, image: str, login: Login | None, *, labels: dict[str, str], annotations: dict[str, str]
    ) -> None:
        """Pull an image. Cancelling ends the runtime's work too (not on cri-dockerd)."""
        request = wire.PullImageRequest(
            image=wire.ImageSpec(image=image),
            auth=wire.AuthConfig(username=login.username, password=login.password) if login else None,
            sandbox_config=wire.PodSandboxConfig(labels=labels, annotations=annotations),
        )
        async with translated():
            await self._images.PullImage(request)

    def close(self) -> None:
        """Close the socket."""
        self._channel.close()

    async def _list(self, chosen: wire.ContainerFilter) -> list[Container]:
        async with translated():
            request = wire.ListContainersRequest(filter=chosen)
            reply = await self._runtime.ListContainers(request, timeout=CALL_SECONDS)
        return [_container(container) for container in reply.containers]


def _container(listed: wire.Container) -> Container:
    return Container(
        id=listed.id,
        state=State(listed.state) if listed.state in (0, 1, 2) else State.UNKNOWN,
        created_at=max(listed.created_at, 0),
        sandbox=listed.pod_sandbox_id,
        labels=dict(listed.labels),
        annotations=dict(listed.annotations),
    )
