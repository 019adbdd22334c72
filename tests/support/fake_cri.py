"""The socket of a container runtime with a few containers and images behind it: the wire format of cri.md."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.protocol import H2Protocol
from grpclib.server import Server, Stream

from flotilla_nodeagent.cri.types import CONTAINER_NAME_LABEL, POD_UID_LABEL
from flotilla_nodeagent.cri.wire import cri_pb2 as wire
from flotilla_nodeagent.cri.wire.cri_grpc import ImageServiceBase, RuntimeServiceBase
from tests.support.cluster import eventually


class FakeCri:
    """The runtime's state, and the requests to it."""

    def __init__(self) -> None:
        self.containers: dict[str, wire.Container] = {}
        self.images: list[wire.Image] = []
        self.environment: list[str] | None = ["A=1", "B=two\nlines", "C="]
        self.output = b"out"  # of every command
        self.ip = "10.0.0.7"  # of every pod
        self.exits: dict[str, int] = {}  # exit codes of commands, by container
        self.fails: dict[str, GRPCError] = {}  # by method
        self.hangs: set[str] = set()
        self.asked: list[tuple[str, object]] = []

    def add(self, name: str, pod: str, *, running: bool = True) -> str:
        """Add a container of a pod; return its id."""
        one = wire.Container(
            id=f"{pod}{name}{len(self.containers)}".ljust(64, "0"),
            pod_sandbox_id=f"sandbox-{pod}",
            metadata=wire.ContainerMetadata(name=name),
            state=wire.CONTAINER_RUNNING if running else wire.CONTAINER_EXITED,
            created_at=len(self.containers) + 1,
            labels={CONTAINER_NAME_LABEL: name, POD_UID_LABEL: pod},
            annotations={"io.kubernetes.container.hash": "8e45cbd0", "io.kubernetes.container.restartCount": "2"},
        )
        self.containers[one.id] = one
        return one.id

    async def until_asked(self, method: str) -> None:
        """Wait for a call of the method."""
        await eventually(lambda: any(one == method for one, _ in self.asked))

    async def called(self, method: str, stream: Stream) -> object:
        """Return the request, unless the method has to fail or to hang."""
        request = await stream.recv_message()
        self.asked.append((method, request))
        if method in self.hangs:
            await asyncio.Event().wait()  # until the client gives up, or the runtime ends
        if method in self.fails:
            raise self.fails[method]
        return request


class Runtimes(RuntimeServiceBase):
    def __init__(self, cri: FakeCri) -> None:
        self._cri = cri

    async def Version(self, stream: Stream) -> None:  # noqa: N802
        await self._cri.called("Version", stream)
        await stream.send_message(wire.VersionResponse(runtime_name="containerd", runtime_version="2.4.2"))

    async def ListContainers(self, stream: Stream) -> None:  # noqa: N802
        request = await self._cri.called("ListContainers", stream)
        wanted = request.filter
        found = [
            one
            for one in self._cri.containers.values()
            if wanted.id in ("", one.id) and all(one.labels.get(k) == v for k, v in wanted.label_selector.items())
        ]
        await stream.send_message(wire.ListContainersResponse(containers=found))

    async def ContainerStatus(self, stream: Stream) -> None:  # noqa: N802
        request = await self._cri.called("ContainerStatus", stream)
        one = self._cri.containers.get(request.container_id)
        if one is None:
            raise GRPCError(Status.NOT_FOUND, "no such container")
        info = {}
        if request.verbose and self._cri.environment is not None:
            env = ",".join('"' + entry.replace("\n", "\\n") + '"' for entry in self._cri.environment)
            info = {"info": '{"pid":7,"runtimeSpec":{"process":{"env":[' + env + "]}}}"}
        status = wire.ContainerStatus(id=one.id, state=one.state, started_at=1_700_000_000_500_000_000)
        await stream.send_message(wire.ContainerStatusResponse(status=status, info=info))

    async def StopContainer(self, stream: Stream) -> None:  # noqa: N802
        request = await self._cri.called("StopContainer", stream)
        if request.container_id not in self._cri.containers:
            raise GRPCError(Status.NOT_FOUND, "no such container")
        await stream.send_message(wire.StopContainerResponse())

    async def ExecSync(self, stream: Stream) -> None:  # noqa: N802
        request = await self._cri.called("ExecSync", stream)
        code = 3 if request.cmd[0] == "false" else self._cri.exits.get(request.container_id, 0)
        await stream.send_message(wire.ExecSyncResponse(stdout=self._cri.output, stderr=b"err", exit_code=code))

    async def PodSandboxStatus(self, stream: Stream) -> None:  # noqa: N802
        await self._cri.called("PodSandboxStatus", stream)
        network = wire.PodSandboxNetworkStatus(ip=self._cri.ip)
        await stream.send_message(wire.PodSandboxStatusResponse(status=wire.PodSandboxStatus(network=network)))


class Images(ImageServiceBase):
    def __init__(self, cri: FakeCri) -> None:
        self._cri = cri

    async def ListImages(self, stream: Stream) -> None:  # noqa: N802
        await self._cri.called("ListImages", stream)
        await stream.send_message(wire.ListImagesResponse(images=self._cri.images))

    async def PullImage(self, stream: Stream) -> None:  # noqa: N802
        request = await self._cri.called("PullImage", stream)
        await stream.send_message(wire.PullImageResponse(image_ref=request.image.image))

    async def ImageFsInfo(self, stream: Stream) -> None:  # noqa: N802
        await self._cri.called("ImageFsInfo", stream)
        await stream.send_message(wire.ImageFsInfoResponse())


class Mortal(Server):
    """A server whose connections can break off without a close, as when its process dies."""

    def _protocol_factory(self) -> H2Protocol:
        protocol = super()._protocol_factory()
        self.__dict__.setdefault("protocols", []).append(protocol)
        return protocol

    def abort(self) -> None:
        for protocol in self.__dict__.get("protocols", []):
            if transport := getattr(protocol.connection, "_transport", None):  # grpclib drops that of a closed one
                transport.abort()


@asynccontextmanager
async def served(cri: FakeCri, path: Path) -> AsyncGenerator[None]:
    """Serve the socket for the time of the block."""
    server = Mortal([Runtimes(cri), Images(cri)])
    await server.start(path=str(path))
    try:
        yield
    finally:
        server.abort()
        server.close()
        await server.wait_closed()
        remove(path)


def remove(path: Path) -> None:
    """Remove the socket, as a runtime does that ends."""
    path.unlink(missing_ok=True)
