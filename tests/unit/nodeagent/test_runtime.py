"""The client of the Container Runtime Interface against a socket that implements it (cri.md §5 to §7)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError

from flotilla_nodeagent.cri.errors import CriError, NotFound, TimedOut, Unavailable, Unsupported
from flotilla_nodeagent.cri.output import read_output
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.cri.types import Executed, Login, State, newest
from flotilla_nodeagent.cri.wire import cri_pb2 as wire
from tests.support.fake_clock import FakeClock
from tests.support.fake_cri import FakeCri, served


@pytest.fixture
def cri() -> FakeCri:
    return FakeCri()


@pytest.fixture
def path(short_path: Path) -> Path:
    return short_path / "cri.sock"


@pytest_asyncio.fixture
async def runtime(cri: FakeCri, path: Path) -> AsyncIterator[Runtime]:
    async with served(cri, path):
        client = Runtime(str(path))
        yield client
        client.close()


async def test_it_proves_version_1_and_learns_its_name(runtime: Runtime, cri: FakeCri) -> None:
    await runtime.probe()
    assert (runtime.name, runtime.version) == ("containerd", "2.4.2")
    assert [method for method, _ in cri.asked] == ["ImageFsInfo", "Version"]


async def test_containers_of_a_pod(runtime: Runtime, cri: FakeCri) -> None:
    cri.add("app", "p1", running=False)
    new = cri.add("app", "p1")
    cri.add("app", "p2")
    found = await runtime.containers("p1")
    assert len(found) == 2
    app = newest(found)["app"]
    assert (app.id, app.state, app.restarts, app.plain_hash) == (new, State.RUNNING, 2, 0x8E45CBD0)
    assert await runtime.containers("p9") == []


async def test_one_container(runtime: Runtime, cri: FakeCri) -> None:
    one = cri.add("app", "p1")
    found = await runtime.container(one)
    assert found is not None
    assert await runtime.container("missing") is None
    assert await runtime.started_at(one) == 1_700_000_000.5
    assert await runtime.sandbox_ip(found.sandbox) == "10.0.0.7"
    with pytest.raises(NotFound):
        await runtime.started_at("missing")


async def test_the_environment_comes_whole(runtime: Runtime, cri: FakeCri) -> None:
    one = cri.add("app", "p1")
    assert await runtime.environment(one) == {"A": "1", "B": "two\nlines", "C": ""}
    cri.environment = None
    assert await runtime.environment(one) is None


async def test_stopping_what_is_gone_has_been_done(runtime: Runtime, cri: FakeCri) -> None:
    await runtime.stop("missing", 5)
    method, request = cri.asked[-1]
    assert (method, request.timeout) == ("StopContainer", 5)


async def test_a_command_that_fails_is_an_outcome(runtime: Runtime, cri: FakeCri) -> None:
    one = cri.add("app", "p1")
    done = await runtime.execute(one, ["false"], keep=1000, seconds=3)
    assert (done.exit_code, done.stdout, done.stderr, done.cut) == (3, b"out", b"err", False)
    cri.output = b"x" * 1000
    assert await runtime.execute(one, ["true"], keep=1000) == Executed(0, b"x" * 1000, b"err")


async def test_of_much_output_the_beginning_is_kept(runtime: Runtime, cri: FakeCri) -> None:
    """It is more than a window of HTTP/2 (4 MiB), so that the client has to extend the window."""
    one, cri.output = cri.add("app", "p1"), b"begin" + b"x" * (15 << 20)
    done = await runtime.execute(one, ["false"], keep=7)
    assert done == Executed(3, b"beginxx", b"err", cut=True)
    assert (await runtime.execute(one, ["true"], keep=0)).exit_code == 0
    await runtime.probe()  # the connection is as before


async def test_a_failed_command_and_a_dead_runtime_are_errors(cri: FakeCri, path: Path) -> None:
    client = Runtime(str(path))
    async with served(cri, path):
        cri.fails["ExecSync"] = GRPCError(Status.NOT_FOUND, "no such container")
        with pytest.raises(NotFound, match="no such container"):
            await client.execute("missing", ["true"], keep=1000)
        cri.fails.clear()
        cri.hangs.add("ExecSync")
        cri.asked.clear()
        running = asyncio.ensure_future(client.execute("c", ["true"], keep=1000))
        await cri.until_asked("ExecSync")
    with pytest.raises((Unavailable, CriError)):
        await running
    client.close()


class Arriving:
    """A message that is generated while it is read, and records how much of it was in memory at once."""

    def __init__(self, beginning: bytes, filling: int, end: bytes = b"") -> None:
        self.size = len(beginning) + filling + len(end)
        self._parts = [(beginning, len(beginning)), (b"", filling), (end, len(end))]
        self.largest = 0

    async def read(self, count: int) -> bytes:
        self.largest = max(self.largest, count)
        found = b""
        while len(found) < count:
            part, left = self._parts[0]
            taken = min(left, count - len(found))
            found += part[:taken].ljust(taken, b"x")
            self._parts[0] = (part[taken:], left - taken)
            if taken == left:
                self._parts.pop(0)
        return found


async def test_what_is_cut_is_never_in_memory() -> None:
    length = b"\x80\x80\x80\x10"  # 32 MiB as a varint
    message = Arriving(b"\x0a" + length, 32 << 20, b"\x12\x03err\x18\x03")
    assert await read_output(message.read, message.size, keep=10) == Executed(3, b"x" * 10, b"err", cut=True)
    assert message.largest <= 64 << 10


@pytest.mark.parametrize(
    "message",
    [b"\x0a\x05ab", b"\x0a" + b"\x80" * 11, b"\x0b", b"\x0a"],
    ids=["longer than it is", "an endless number", "a group", "no length"],
)
async def test_what_is_no_answer(message: bytes) -> None:
    with pytest.raises(ProtocolError):
        await read_output(Arriving(message, 0).read, len(message), keep=10)


async def test_a_pull_with_and_without_a_login(runtime: Runtime, cri: FakeCri) -> None:
    await runtime.pull("nginx:1", None, labels={"a": "b"}, annotations={"c": "d"})
    await runtime.pull("nginx:1", Login("u", "p"), labels={}, annotations={})
    (_, anonymous), (_, known) = cri.asked
    assert not anonymous.HasField("auth")
    assert anonymous.HasField("sandbox_config")
    assert dict(anonymous.sandbox_config.annotations) == {"c": "d"}
    assert (known.auth.username, known.auth.password) == ("u", "p")
    assert "p" not in repr(Login("u", "p")).replace("Login", "")


ERRORS = {
    Status.NOT_FOUND: NotFound,
    Status.DEADLINE_EXCEEDED: TimedOut,
    Status.UNAVAILABLE: Unavailable,
    Status.UNIMPLEMENTED: Unsupported,
    Status.UNKNOWN: CriError,
    Status.RESOURCE_EXHAUSTED: CriError,
}


@pytest.mark.parametrize(("status", "error"), ERRORS.items(), ids=[status.name for status in ERRORS])
async def test_errors(runtime: Runtime, cri: FakeCri, status: Status, error: type[CriError]) -> None:
    cri.fails["PullImage"] = GRPCError(status, "the runtime's words")
    with pytest.raises(error, match="the runtime's words") as raised:
        await runtime.pull("nginx:1", None, labels={}, annotations={})
    assert type(raised.value) is error


async def test_a_call_that_takes_too_long(runtime: Runtime, cri: FakeCri, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flotilla_nodeagent.cri.runtime.CALL_SECONDS", 0.1)
    cri.hangs.add("ListContainers")
    with pytest.raises(TimedOut):
        await runtime.containers("p1")


async def test_giving_up_ends_the_pull(runtime: Runtime, cri: FakeCri) -> None:
    cri.hangs.add("PullImage")
    pulling = asyncio.ensure_future(runtime.pull("nginx:1", None, labels={}, annotations={}))
    await cri.until_asked("PullImage")
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling


async def test_no_socket(path: Path) -> None:
    client = Runtime(str(path))
    with pytest.raises(Unavailable):
        await client.probe()
    client.close()


async def test_a_runtime_that_dies_and_comes_back(cri: FakeCri, path: Path) -> None:
    client = Runtime(str(path))
    async with served(cri, path):
        await client.probe()
        cri.hangs.add("PullImage")
        pulling = asyncio.ensure_future(client.pull("nginx:1", None, labels={}, annotations={}))
        await cri.until_asked("PullImage")
    with pytest.raises((Unavailable, CriError)):
        await pulling
    with pytest.raises(Unavailable):
        await client.images()
    async with served(cri, path):
        cri.images.append(wire.Image(id="sha256:1", repo_tags=["docker.io/library/nginx:1"]))
        assert [image.tags for image in await client.images()] == [("docker.io/library/nginx:1",)]
        client.close()


class Said:
    """The state shown by /readyz."""

    def __init__(self) -> None:
        self.ok = True
        self.why = ""

    def say(self, ok: bool, why: str) -> None:
        self.ok, self.why = ok, why


async def test_a_node_without_a_runtime_says_so(tmp_path: Path) -> None:
    said = Said()
    found = Runtimes(FakeClock(), said.say, host_root=str(tmp_path))
    await found.check_all()
    assert not said.ok
    assert "no container runtime found; looked for /run/containerd/containerd.sock" in said.why
    with pytest.raises(Unavailable):
        found.primary()


@pytest.mark.parametrize("where", ["run/containerd", "run/k3s/containerd", "var/snap/microk8s/common/run"])
async def test_a_runtime_is_found_where_it_listens(cri: FakeCri, short_path: Path, where: str) -> None:
    said, folder = Said(), short_path / where
    folder.mkdir(parents=True)
    found = Runtimes(FakeClock(), said.say, host_root=str(short_path))
    await found.check_all()
    assert not said.ok
    async with served(cri, folder / "containerd.sock"):
        await found.check_all()
        assert said.ok
        assert found.primary().name == "containerd"
        assert found.named("cri-o") is None
        found.close()


async def test_the_one_with_pods_is_preferred(short_path: Path) -> None:
    unused, used = FakeCri(), FakeCri()
    used.add("app", "p1")
    for folder in ("run/containerd", "run/k3s/containerd"):
        (short_path / folder).mkdir(parents=True)
    first, second = short_path / "run/containerd/containerd.sock", short_path / "run/k3s/containerd/containerd.sock"
    async with served(unused, first), served(used, second):
        found = Runtimes(FakeClock(), Said().say, host_root=str(short_path))
        await found.check_all()
        assert found.primary().path == str(second)
        found.close()


async def test_a_socket_of_something_else_is_told(cri: FakeCri, path: Path) -> None:
    cri.fails["ImageFsInfo"] = GRPCError(Status.UNIMPLEMENTED, "unknown service runtime.v1.ImageService")
    said = Said()
    async with served(cri, path):
        found = Runtimes(FakeClock(), said.say, override=str(path))
        await found.check_all()
        assert not said.ok
        assert "unknown service runtime.v1.ImageService" in said.why
        found.close()
