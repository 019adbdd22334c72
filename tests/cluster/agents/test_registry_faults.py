"""Registries that fail or require a login, and a full disk: a real containerd's errors, and users' messages."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import shake_256
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from flotilla_common.bus.credentials import Trust, read_credentials
from tests.cluster.conftest import Staffed
from tests.support.cluster import eventually
from tests.support.pull_jobs import about_image, counts, ended, pull, tag_entry
from tests.support.registry_front import Front, Trouble, half_a_layer, hang, refuse
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

pytestmark = pytest.mark.usefixtures("staffed")
REGISTRY = "sick.example"
NODE = "real-0"
STORE = "/var/lib/containerd/io.containerd.content.v1.content"
COPIES = "kruise-daemon-config"


async def image(staffed: Staffed, front: Front, name: str, size: int = 100_000) -> str:
    """Push an image with content of its own to the registry that fails. Returns its name."""
    front.serve(REGISTRY)
    reference = f"{REGISTRY}/{name}"
    content = {"/content": shake_256(name.encode()).digest(size)}
    await staffed.cluster.registry.push(f"{reference}:v1", ["/bin/sh"], content)
    return reference


@pytest.mark.parametrize(
    ("name", "trouble", "says"),
    [
        pytest.param("denied", refuse(401), "no basic auth credentials", id="401"),
        pytest.param("missing", refuse(404), "not found", id="404"),
        pytest.param("broken", refuse(500), "500 Internal Server Error", id="500"),
        pytest.param("half", half_a_layer(), "unexpected EOF", id="half a layer"),
        pytest.param("mute", hang(), "is canceled", id="hangs"),
    ],
)
async def test_a_registry_in_trouble(
    space: Workspace, staffed: Staffed, front: Front, name: str, trouble: Trouble, says: str
) -> None:
    """Two attempts, then the failure is reported; when the registry is repaired, the next job succeeds."""
    what = await image(staffed, front, name)
    front.spoil(name, trouble)
    seconds = 5 if name == "mute" else 60
    pull(space, f"{what}:v1", nodes=(NODE,), pullPolicy={"backoffLimit": 1, "timeoutSeconds": seconds})
    status = ended(space)
    assert counts(status) == {"desired": 1, "active": 0, "succeeded": 0, "failed": 1}
    assert (status["failedNodes"], status["message"]) == ([NODE], "job has completed")
    entry = tag_entry(staffed.cluster, NODE, what)
    assert (entry["phase"], entry.get("version", 0)) == ("Failed", 0)
    assert says in entry["message"]
    first, second = front.attempts(name, NODE, lasts=seconds if name == "mute" else 0)
    assert second - first > (5.5 if name == "mute" else 1)
    space.until(lambda: bool(about_image(staffed.cluster, "ImagePullJob", "PullImageFailed", what)))
    front.heal(name)
    pull(space, f"{what}:v1", "again", nodes=(NODE,))
    assert counts(ended(space, "again")) == {"desired": 1, "active": 0, "succeeded": 1, "failed": 0}


async def test_a_registry_that_gets_well_in_time(space: Workspace, staffed: Staffed, front: Front) -> None:
    """Earlier attempts are not reported: the pauses between them are 1, 2, 4, … seconds."""
    what = await image(staffed, front, "moody")
    front.spoil("moody", refuse(500))
    pull(space, f"{what}:v1", nodes=(NODE,))
    space.until(lambda: len(front.attempts("moody", NODE)) == 3, 60)
    front.heal("moody")
    assert counts(ended(space)) == {"desired": 1, "active": 0, "succeeded": 1, "failed": 0}
    first, second, third, *_ = front.attempts("moody", NODE)
    assert second - first > 1
    assert third - second > 2
    assert "message" not in tag_entry(staffed.cluster, NODE, what)


async def test_a_full_disk(space: Workspace, staffed: Staffed, front: Front) -> None:
    """One node has no room for the image. The others are unaffected, and it pulls as soon as there is room."""
    what = await image(staffed, front, "large", 3_000_000)
    in_node = ("real-2", "sh", "-ec")
    staffed.cluster.run_in(
        *in_node,
        f"""mkdir /run/store; mount -t tmpfs -o size=1g store /run/store; cp -a {STORE}/. /run/store
        mount -o remount,size=$(($(du -sk /run/store | cut -f1) + 1000))k /run/store
        mount --bind /run/store {STORE}""",
    )
    pull(space, f"{what}:v1", pullPolicy={"backoffLimit": 0})
    status = ended(space)
    assert counts(status) == {"desired": 3, "active": 0, "succeeded": 2, "failed": 1}
    assert status["failedNodes"] == ["real-2"]
    assert "no space left on device" in tag_entry(staffed.cluster, "real-2", what)["message"]
    staffed.cluster.run_in(*in_node, "mount -o remount,size=1g /run/store")
    pull(space, f"{what}:v1", "again", nodes=("real-2",))
    assert counts(ended(space, "again")) == {"desired": 1, "active": 0, "succeeded": 1, "failed": 0}


def make_secret(space: Workspace, name: str, auths: Json) -> str:
    """Create a pull secret; return its data as the apiserver shows it."""
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": json.dumps({"auths": auths})},
    }
    space.create(document)
    return space.read("secret", name)["data"][".dockerconfigjson"]


@asynccontextmanager
async def overheard(staffed: Staffed) -> AsyncGenerator[list[bytes]]:
    """Yield all messages on the bus during the block."""
    said: list[bytes] = []

    async def hear(message: Msg) -> None:
        said.append(b"\n".join((message.subject.encode(), str(message.headers).encode(), message.data)))

    server = staffed.fleet.nats
    seed = read_credentials(server.credentials, "flotilla").seed
    client = await nats.connect(server.url, nkeys_seed_str=seed, tls=Trust(server.authority))
    try:
        await client.subscribe(">", cb=hear)
        await client.flush()
        yield said
    finally:
        await client.close()


async def test_a_private_registry(space: Workspace, staffed: Staffed, front: Front) -> None:
    """The second of two secrets is right; it reaches the nodes and the registry, and is never read on the bus."""
    what = "team.private.example/vault/app"
    await staffed.cluster.registry.push(f"{what}:v1", ["/bin/sh"], {"/vault": b"private"})
    front.serve("team.private.example")
    front.passwords["vault/app"] = ("robot", "pass-Phrase-4711")
    login = base64.b64encode(b"robot:pass-Phrase-4711").decode()
    wrong = make_secret(space, "wrong", {"team.private.example": {"username": "robot", "password": "other-Phrase"}})
    right = make_secret(space, "right", {"*.private.example": {"auth": login}})
    async with overheard(staffed) as said:
        pull(space, f"{what}:v1", pullSecrets=["wrong", "right"])
        status = await asyncio.to_thread(ended, space)
    assert counts(status) == {"desired": 3, "active": 0, "succeeded": 3, "failed": 0}
    served = {
        one.node for one in front.asked if (one.repository, one.user, one.denied) == ("vault/app", "robot", False)
    }
    assert served == set(staffed.cluster.names)
    everything = b"\n".join(said)
    assert all(f"report.v1.{node}.secrets.".encode() in everything for node in staffed.cluster.names)
    for clear in (right, wrong, login, "pass-Phrase-4711", "other-Phrase"):
        assert clear.encode() not in everything
    await eventually(lambda: staffed.cluster.read("secrets", "-n", COPIES)["items"] == [])


async def test_a_wrong_password(space: Workspace, staffed: Staffed, front: Front) -> None:
    what = await image(staffed, front, "vault/other")
    front.passwords["vault/other"] = ("robot", "right")
    make_secret(space, "wrong", {f"{REGISTRY}/vault": {"username": "robot", "password": "wrong"}})
    pull(space, f"{what}:v1", pullSecrets=["wrong", "absent"], pullPolicy={"backoffLimit": 0})
    assert counts(ended(space)) == {"desired": 3, "active": 0, "succeeded": 0, "failed": 3}
    message = tag_entry(staffed.cluster, NODE, what)["message"]
    assert "401 Unauthorized" in message
    assert "wrong" not in message
    make_secret(space, "absent", {REGISTRY: {"username": "robot", "password": "right"}})
    pull(space, f"{what}:v1", "again", pullSecrets=["wrong", "absent"])
    assert counts(ended(space, "again")) == {"desired": 3, "active": 0, "succeeded": 3, "failed": 0}


PLUGIN = """#!/bin/sh -e
grep -q '"image":"'"$IMAGE"'"'
exec cat <<END
{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse",
 "cacheKeyType": "Registry", "cacheDuration": "1m", "auth": {"sick.example": {"username": "robot", "password": "$1"}}}
END
"""


def with_plugin(root: Path, what: str) -> list[str]:
    """Install a credential plugin among a node's files; return the agent's flags for it."""
    folder = root / "run" / "plugins"
    folder.mkdir(mode=0o755, exist_ok=True)
    (folder / "lookup").write_text(PLUGIN)
    (folder / "lookup").chmod(0o755)
    provider = {
        "name": "lookup",
        "matchImages": ["*.example"],
        "defaultCacheDuration": "1m",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "args": ["pass-Phrase"],
        "env": [{"name": "IMAGE", "value": what}],
    }
    config = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": [provider]}
    (folder / "config.yaml").write_text(json.dumps(config))
    return ["--plugin-config-file=/run/plugins/config.yaml", "--plugin-bin-dir=/run/plugins"]


async def test_logins_of_the_nodes_themselves(space: Workspace, staffed: Staffed, front: Front) -> None:
    """There are no pull secrets: one node has a docker config, one a plugin, and one neither."""
    what = await image(staffed, front, "vault/own")
    front.passwords["vault/own"] = ("robot", "pass-Phrase")
    file = staffed.cluster.nodes.files("real-0") / "var/lib/kubelet/config.json"
    file.write_text(json.dumps({"auths": {REGISTRY: {"username": "robot", "password": "pass-Phrase"}}}))
    await staffed.agents.kill("real-1")
    await staffed.agents.start("real-1", flags=with_plugin(staffed.cluster.nodes.files("real-1"), what))
    pull(space, f"{what}:v1", pullPolicy={"backoffLimit": 0})
    status = ended(space)
    assert counts(status) == {"desired": 3, "active": 0, "succeeded": 2, "failed": 1}
    assert status["failedNodes"] == ["real-2"]
    file.unlink()
    await staffed.agents.kill("real-1")
    await staffed.agents.start("real-1")
