"""The logins with which images are pulled (nodeagent.md §3.5)."""

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_common.node.reports import PullSecret
from flotilla_nodeagent.cri.types import Login
from tests.support.node_scene import Scene, play
from tests.support.pull_scene import entry, ready, tag, want


def secret(name: str, **auths: str) -> PullSecret:
    entries = {host: {"username": "u", "password": password} for host, password in auths.items()}
    return docker_secret(name, {"auths": entries})


def docker_secret(name: str, document: Any) -> PullSecret:
    text = base64.b64encode(json.dumps(document).encode()).decode()
    return PullSecret(
        namespace="config", name=name, type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": text}
    )


@pytest.mark.parametrize(
    ("given", "phase", "logins"),
    [
        pytest.param([], "Failed", [None], id="none: anonymous"),
        pytest.param(["right"], "Succeeded", ["right"], id="the right one"),
        pytest.param(["wrong"], "Failed", ["wrong"], id="the wrong one: no anonymous try"),
        pytest.param(["wrong", "right"], "Succeeded", ["wrong", "right"], id="one after the other"),
    ],
)
def test_credentials(tmp_path: Path, given: list[str], phase: str, logins: list[str | None]) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.passwords["reg.example/a/b"] = "right"
        for index, password in enumerate(given):
            scene.hub.secrets.append(secret(f"s{index}", **{"reg.example": password}))
        await ready(scene)
        names = tuple(f"s{index}" for index in range(len(given)))
        want(scene, tag(backoff_limit=0), image="reg.example/a/b", secrets=names)
        await scene.until(lambda: entry(scene, image="reg.example/a/b").phase == phase)
        tried = [login.password if login else None for _, _, login, what in scene.machine.pulls if what == "begun"]
        assert tried == logins

    play(tmp_path, story)


class NodeWide:
    """A source of logins that hold for the whole node."""

    def __init__(self, *passwords: str) -> None:
        self.passwords = passwords
        self.asked: list[str] = []

    async def logins(self, repository: str) -> list[Login]:
        self.asked.append(repository)
        return [Login("u", password) for password in self.passwords]


@pytest.mark.parametrize(
    ("secrets", "plugins", "files", "phase", "tried"),
    [
        pytest.param(["right"], ["x"], ["y"], "Succeeded", ["right"], id="secrets first"),
        pytest.param([], ["right"], ["y"], "Succeeded", ["right"], id="then plugins"),
        pytest.param([], ["a", "b"], ["right"], "Succeeded", ["a", "b", "right"], id="then files"),
        pytest.param(["a"], ["a", "b"], ["b"], "Failed", ["a", "b"], id="each once, and no anonymous try"),
        pytest.param([], [], [], "Failed", [None], id="none: anonymous"),
    ],
)
def test_credentials_of_the_node(
    tmp_path: Path, secrets: list[str], plugins: list[str], files: list[str], phase: str, tried: list[str | None]
) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.passwords["reg.example/a/b"] = "right"
        scene.hub.secrets += [secret("s0", **{"reg.example": password}) for password in secrets]
        scene.node_logins = sources = [NodeWide(*plugins), NodeWide(*files)]
        await ready(scene)
        want(scene, tag(backoff_limit=0), image="reg.example/a/b", secrets=("s0",) if secrets else ())
        await scene.until(lambda: entry(scene, image="reg.example/a/b").phase == phase)
        assert [
            login.password if login else None for _, _, login, what in scene.machine.pulls if what == "begun"
        ] == tried
        assert sources[0].asked == ([] if secrets == ["right"] else ["reg.example/a/b"]), "only when secrets do not do"

    play(tmp_path, story)


def test_a_secret_that_cannot_be_read_fails_the_pull(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        broken = msgspec.structs.replace(secret("s"), data={".dockerconfigjson": "bm90IGpzb24="})
        scene.hub.secrets.append(broken)
        await ready(scene)
        want(scene, tag(backoff_limit=0), secrets=("s",))
        await scene.until(lambda: entry(scene).phase == "Failed")
        assert "config/s cannot be read" in entry(scene).message

    play(tmp_path, story)
