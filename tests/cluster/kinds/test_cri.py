"""A real containerd answers as the fake one of the unit tests does (cri.md §7)."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from flotilla_common.clock import SystemClock
from flotilla_nodeagent.cri.errors import CriError, NotFound
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.types import Container, Executed, State, newest
from flotilla_nodeagent.pulling import find
from tests.support.nodes import RealCluster
from tests.testkit.manifests import manifest

NODE = "real-0"
POD = manifest("cri-pod")


@pytest_asyncio.fixture
async def runtime(cluster: RealCluster) -> AsyncIterator[Runtime]:
    client = Runtime(str(cluster.nodes.files(NODE) / "run/containerd/containerd.sock"))
    await client.probe()
    yield client
    client.close()


@pytest.fixture(scope="module")
def uid(cluster: RealCluster) -> Iterator[str]:
    cluster.create(POD)
    cluster.kubectl("wait", "pod/cri", "--for=condition=Ready", "--timeout=60s")
    yield cluster.read("pod", "cri")["metadata"]["uid"]
    cluster.kubectl("delete", "pod", "cri", "--now")


async def app(runtime: Runtime, uid: str) -> Container:
    return newest(await runtime.containers(uid))["app"]


async def test_its_name_and_the_containers_of_a_pod(runtime: Runtime, uid: str) -> None:
    assert runtime.name == "containerd"
    found = await app(runtime, uid)
    assert (found.state, found.restarts, found.grace) == (State.RUNNING, 0, 7)
    assert found.plain_hash > 0
    assert await runtime.containers("no-such-uid") == []
    assert await runtime.container("0" * 64) is None
    assert await runtime.holds_pods()
    assert await runtime.started_at(found.id) > 1_700_000_000
    assert (await runtime.sandbox_ip(found.sandbox)).startswith("10.")


async def test_the_environment_comes_whole(runtime: Runtime, uid: str) -> None:
    environment = await runtime.environment((await app(runtime, uid)).id)
    assert environment is not None
    assert environment["LINES_"] == "one\ntwo"


async def test_commands(runtime: Runtime, uid: str) -> None:
    one = (await app(runtime, uid)).id
    done = await runtime.execute(one, ["sh", "-c", "echo out; echo err >&2; exit 3"], keep=1000, seconds=5)
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    much = await runtime.execute(one, ["sh", "-c", "yes | head -c 12000000; exit 3"], keep=4, seconds=10)
    assert much == Executed(3, b"y\ny\n", cut=True)
    with pytest.raises(CriError):
        await runtime.execute(one, ["no-such-program"], keep=1000, seconds=5)
    with pytest.raises(NotFound):
        await runtime.execute("0" * 64, ["true"], keep=1000, seconds=5)


async def test_images(runtime: Runtime) -> None:
    assert find(await runtime.images(), "nginx", "alpine") is not None
    with pytest.raises(CriError):
        await runtime.pull("nginx:never-pushed", None, labels={}, annotations={})
    await runtime.pull("nginx:mainline", None, labels={}, annotations={"a": "b"})
    assert find(await runtime.images(), "nginx", "mainline") is not None


async def test_a_stopped_container_is_started_again_by_the_kubelet(runtime: Runtime, uid: str) -> None:
    before = await app(runtime, uid)
    await runtime.stop(before.id, 5)
    old = await runtime.container(before.id)
    assert old is None or old.state == State.EXITED
    await runtime.stop(before.id, 5)
    await runtime.stop("0" * 64, 5)

    async with asyncio.timeout(30):
        while (after := await app(runtime, uid)).id == before.id or after.state != State.RUNNING:
            await SystemClock().sleep(0.2)
    assert after.restarts == 1
