"""`runtime-containers-meta` and restarts for changed environments (nodeagent.md §5, §10)."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Container, ContainerStatus, Env, EnvSource, FieldRef, Pod, PodSpec, PodStatus
from flotilla_common.api.keys import IN_PLACE_READY, RUNTIME_CONTAINERS_META
from flotilla_common.api.meta import Condition, ObjectMeta
from flotilla_common.api.resources import POD
from flotilla_common.settings import Settings
from tests.support.node_scene import Scene, play

ENV = [Env(name="CONF", value_from=EnvSource(field_ref=FieldRef(field_path="metadata.labels['conf']")))]


def pod(scene: Scene, uid: str = "p", *, label: str = "v1", ready: str = "True", env: list[Env] = ENV) -> None:
    """Put the pod with its newest container."""
    held = scene.hub.objects.get(("pods", "ns", uid))
    newest = scene.machine.newest(uid, "app")
    status = ContainerStatus(name="app", container_id=f"containerd://{newest.id}", restart_count=newest.restarts)
    annotations = held.metadata.annotations if held else {}
    scene.hub.put(
        POD,
        Pod(
            metadata=ObjectMeta(name=uid, namespace="ns", uid=uid, labels={"conf": label}, annotations=annotations),
            spec=PodSpec(node_name="node-1", containers=[Container(name="app", image="i", env=env)]),
            status=PodStatus(conditions=[Condition(type=IN_PLACE_READY, status=ready)], container_statuses=[status]),
        ),
    )


def meta(scene: Scene, uid: str = "p") -> dict[str, Any]:
    """Return the annotation's entry of the container."""
    text = scene.hub.pod(uid).metadata.annotations.get(RUNTIME_CONTAINERS_META)
    return json.loads(text)["containers"][0] if text else {}


def kubelet(scene: Scene, label: str, ready: str) -> None:
    """Let the kubelet start the container again with the present environment, and report it."""

    def started(container: Any, uid: str) -> None:
        scene.machine.environments[container.id] = {"CONF": label}
        scene.loop.call_later(0.5, lambda: pod(scene, uid, label=label, ready=ready), context=scene.machine.outside)

    scene.machine.on_started = started


async def begin(scene: Scene) -> None:
    scene.start()
    await scene.at(3)
    scene.machine.start("p", "app", plain_hash=0x8E45CBD0, env={"CONF": "v1"})
    pod(scene)
    start = scene.loop.time()
    await scene.until(lambda: bool(meta(scene)))
    assert scene.loop.time() - start < 2


def test_what_a_container_was_started_with(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begin(scene)
        found = meta(scene)
        assert found["containerID"] == "containerd://p-app-0"
        assert (found["name"], found["restartCount"], found["hashes"]["plainHash"]) == ("app", 0, 0x8E45CBD0)
        await scene.at(30)
        assert len(scene.hub.said("pods")) == 1, "nothing has changed"

    play(tmp_path, story)


@pytest.mark.parametrize("ready", ["True", ""], ids=["ready", "no condition"])
def test_outside_an_update_a_label_restarts_nothing(tmp_path: Path, ready: str) -> None:
    async def story(scene: Scene) -> None:
        await begin(scene)
        pod(scene, label="v2", ready=ready)
        await scene.at(60)
        assert scene.machine.stops == []
        assert len(scene.hub.said("pods")) == 1

    play(tmp_path, story)


def test_an_update_restarts_the_container_once(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begin(scene)
        before = meta(scene)["hashes"]["extractedEnvFromMetadataHash"]
        kubelet(scene, "v2", "False")
        start = scene.loop.time()
        pod(scene, label="v2", ready="False")
        await scene.until(lambda: meta(scene)["containerID"] == "containerd://p-app-1")
        ((stopped, container, _),) = scene.machine.stops
        assert container == "p-app-0"
        told = scene.hub.events[0]
        assert (told.type, told.reason, told.component) == ("Normal", "Killing", "kruise-daemon-containermeta")
        assert told.message == "Stopping containerID containerd://app by container meta restarter"
        assert 3 < stopped - start < 6
        assert meta(scene)["hashes"]["extractedEnvFromMetadataHash"] != before
        await scene.at(scene.loop.time() + 60)
        assert len(scene.machine.stops) == 1

    play(tmp_path, story)


def test_an_update_that_is_taken_back_at_once_restarts_nothing(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begin(scene)
        pod(scene, label="v2", ready="False")
        await scene.at(scene.loop.time() + 2)
        pod(scene, label="v1", ready="False")
        await scene.at(scene.loop.time() + 30)
        assert scene.machine.stops == []

    play(tmp_path, story)


def test_image_and_label_together_restart_once(tmp_path: Path) -> None:
    """The kubelet restarts for the image; the new container has the new environment already (example 21)."""

    async def story(scene: Scene) -> None:
        await begin(scene)
        kubelet(scene, "v2", "False")
        pod(scene, label="v2", ready="False")
        scene.machine.exit("p-app-0")
        await scene.until(lambda: meta(scene)["containerID"] == "containerd://p-app-1")
        await scene.at(scene.loop.time() + 30)
        assert scene.machine.stops == []

    play(tmp_path, story)


def test_a_container_that_never_gets_it_is_stopped_less_and_less_often(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begin(scene)
        kubelet(scene, "v2", "False")
        scene.machine.on_started = with_old_environment(scene)
        pod(scene, label="v2", ready="False")
        await scene.at(scene.loop.time() + 600)
        times = [at for at, _, _ in scene.machine.stops]
        gaps = [round(later - earlier) for earlier, later in pairwise(times)]
        assert gaps == sorted(gaps)
        assert len(times) < 10

    play(tmp_path, story)


def with_old_environment(scene: Scene) -> Any:
    def started(container: Any, uid: str) -> None:
        scene.machine.environments[container.id] = {"CONF": "stale"}
        scene.loop.call_later(0.5, lambda: pod(scene, uid, label="v2", ready="False"), context=scene.machine.outside)

    return started


def test_values_with_line_breaks_are_read_whole(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.start()
        await scene.at(3)
        scene.machine.start("p", "app", env={"CONF": "a\nb"})
        pod(scene, label="a\nb", ready="False")
        await scene.at(60)
        assert scene.machine.stops == []

    play(tmp_path, story)


def test_where_the_runtime_does_not_tell_env_is_run(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.tells_environment = False
        await begin(scene)
        assert meta(scene)["hashes"]["extractedEnvFromMetadataHash"]

    play(tmp_path, story)


def test_without_env_in_the_image_the_hash_stays_open(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.tells_environment = False
        scene.start()
        await scene.at(3)
        scene.machine.start("noenv", "app")
        pod(scene, "noenv", ready="False")
        await scene.until(lambda: bool(meta(scene, "noenv")))
        assert "extractedEnvFromMetadataHash" not in meta(scene, "noenv")["hashes"]
        await scene.at(60)
        assert scene.machine.stops == []

    play(tmp_path, story)


def test_the_gate_leaves_environments_alone(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await begin(scene)
        assert "extractedEnvFromMetadataHash" not in meta(scene)["hashes"]
        pod(scene, label="v2", ready="False")
        await scene.at(60)
        assert scene.machine.stops == []

    play(tmp_path, story, Settings(feature_gates="InPlaceUpdateEnvFromMetadata=false"))


def test_pods_that_were_there_before_are_reported_over_a_minute(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        uids = [f"p{number}" for number in range(20)]
        for uid in uids:
            scene.machine.start(uid, "app", env={"CONF": "v1"})
            pod(scene, uid)
        scene.start()
        await scene.until(lambda: all(meta(scene, uid) for uid in uids))
        times = [at for at, kind, _, _ in scene.hub.reports if kind == "pods"]
        assert len(times) == 20
        assert max(times) - min(times) > 20

    play(tmp_path, story)


def test_killed_at_any_moment_of_a_restart(tmp_path: Path) -> None:
    for moment in (0.5, 1.1, 2.0, 4.0, 4.1, 4.2, 5.0, 5.3, 6.0):

        async def story(scene: Scene, moment: float = moment) -> None:
            await begin(scene)
            kubelet(scene, "v2", "False")
            start = scene.loop.time()
            pod(scene, label="v2", ready="False")
            await scene.at(start + moment)
            scene.kill()
            await scene.at(start + moment + 2)
            scene.start()
            await scene.until(lambda: meta(scene)["containerID"] == "containerd://p-app-1")
            await scene.at(scene.loop.time() + 60)
            assert set(scene.stopped()) == {"p-app-0"}
            assert "stale" not in str(msgspec.to_builtins(scene.hub.pod("p")))

        play(tmp_path / str(moment), story)
