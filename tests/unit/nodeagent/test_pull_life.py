"""Image pulls from the NodeImage's spec to its status (nodeagent.md §10)."""

import re
from pathlib import Path

import msgspec
import pytest

from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage, NodeImageSpec, TagStatus
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.settings import Settings
from flotilla_nodeagent.cri.errors import CriError, NotFound
from flotilla_nodeagent.cri.types import Image
from tests.support.node_hub import NODE
from tests.support.node_scene import Scene, play
from tests.support.pull_scene import begun, entry, ready, tag, want

NGINX = Image("sha256:abcd", ("docker.io/library/nginx:1.25",))


def test_a_report_without_an_answer_may_be_written_all_the_same(tmp_path: Path) -> None:
    """The report accepted before does not count any more when the spec is empty again."""

    async def story(scene: Scene) -> None:
        scene.hub.put(NODE_IMAGE, NodeImage(metadata=ObjectMeta(name=NODE, uid="u1")))
        await ready(scene)
        await scene.until(lambda: scene.hub.image().status.desired == 0)
        scene.hub.lose_answers = 1
        want(scene, tag())
        await scene.until(lambda: scene.hub.image().status.desired == 1)
        scene.hub.put(NODE_IMAGE, msgspec.structs.replace(scene.hub.image(), spec=NodeImageSpec()))
        await scene.until(lambda: scene.hub.image().status.desired == 0, within=30)

    play(tmp_path, story)


def test_a_pull_and_its_status(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await ready(scene)
        want(scene, tag())
        await scene.until(lambda: entry(scene).phase == "Pulling", within=1)
        assert scene.hub.image().status.pulling == 1
        await scene.until(lambda: entry(scene).phase == "Succeeded")
        done = entry(scene)
        assert (done.progress, done.message, done.image_id) == (100, "", "nginx@sha256:0000")
        assert done.start_time is not None
        assert done.completion_time is not None
        status = scene.hub.image().status
        assert (status.desired, status.succeeded, status.pulling) == (1, 1, 0)
        await scene.until(lambda: bool(scene.hub.events))
        told = scene.hub.events[0]
        assert (told.type, told.reason, told.component) == ("Normal", "PullImageSucceed", "kruise-daemon-imagepuller")
        assert re.fullmatch(r"Image nginx:1\.25, ecalpsedTime \d+\.\d{3}s", told.message)
        assert scene.machine.pull_annotations == {"apps.kruise.io/pulling-image-by": "kruise-daemon"}

    play(tmp_path, story)


def test_an_agent_without_work_says_so_once(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.hub.put(NODE_IMAGE, NodeImage(metadata=ObjectMeta(name=NODE, uid="u1")))
        await ready(scene)
        await scene.until(lambda: scene.hub.image().status.desired == 0)
        await scene.at(60)
        scene.kill()
        scene.start()
        await scene.at(120)
        assert len(scene.hub.said("nodeimages")) == 1

    play(tmp_path, story)


@pytest.mark.parametrize(("policy", "pulls"), [("IfNotPresent", 0), ("Always", 1), ("", 1)])
def test_a_present_image(tmp_path: Path, policy: str, pulls: int) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.images.append(NGINX)
        await ready(scene)
        want(scene, tag(policy=policy))
        await scene.until(lambda: entry(scene).phase == "Succeeded")
        assert entry(scene).image_id == "nginx@sha256:abcd"
        assert len(begun(scene)) == pulls

    play(tmp_path, story)


REFUSALS = {
    "401": CriError("failed to authorize: 401 Unauthorized"),
    "404": NotFound("docker.io/library/nginx:1.25: not found"),
    "500": CriError("unexpected status 500 Internal Server Error"),
    "half a layer": CriError("failed to copy: unexpected EOF"),
    "disk full": CriError("write /var/lib/…: no space left on device"),
}


@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_registry_that_fails_is_tried_again_and_then_reported(tmp_path: Path, error: CriError) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_fails = [error] * 3
        await ready(scene)
        want(scene, tag(backoff_limit=2))
        await scene.until(lambda: entry(scene).phase == "Failed")
        first, second, third = begun(scene)
        assert (round(second - first), round(third - second)) == (1, 2)
        assert entry(scene).message == f'Failed to pull image reference "nginx:1.25": {error}'
        assert scene.hub.image().status.failed == 1
        await scene.until(lambda: bool(scene.hub.events))
        told = scene.hub.events[0]
        assert (told.type, told.reason) == ("Warning", "PullImageFailed")
        assert told.message == f"Image nginx:1.25 {entry(scene).message}"

    play(tmp_path, story)


def test_a_registry_that_recovers(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_fails = [REFUSALS["500"], REFUSALS["half a layer"]]
        await ready(scene)
        want(scene, tag())
        await scene.until(lambda: entry(scene).phase == "Succeeded")
        assert entry(scene).message == ""
        assert len(begun(scene)) == 3

    play(tmp_path, story)


def test_no_retries(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_fails = [REFUSALS["404"]] * 9
        await ready(scene)
        want(scene, tag(backoff_limit=0))
        await scene.until(lambda: entry(scene).phase == "Failed")
        assert len(begun(scene)) == 1

    play(tmp_path, story)


def test_a_registry_that_hangs_runs_into_the_timeout(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_takes = 60
        await ready(scene)
        want(scene, tag(backoff_limit=0, timeout_seconds=5))
        start = scene.loop.time()
        done = await scene.until(lambda: entry(scene).phase == "Failed")
        assert 5.5 < done - start < 8
        assert entry(scene).message == "pulling image nginx:1.25 is canceled"

    play(tmp_path, story)


def test_the_deadline_of_the_whole_task(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_takes = 60
        await ready(scene)
        want(scene, tag(timeout_seconds=5, active_deadline_seconds=8))
        done = await scene.until(lambda: entry(scene).phase == "Failed")
        assert entry(scene).message == "pulling exceeds the activeDeadlineSeconds"
        first, second = begun(scene)
        assert round(second - first) == 6
        assert done - first < 13

    play(tmp_path, story)


def test_a_new_round_replaces_the_one_that_runs(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_takes = 20
        await ready(scene)
        want(scene, tag(version=0))
        await scene.until(lambda: entry(scene).phase == "Pulling")
        want(scene, tag(version=1))
        await scene.until(lambda: entry(scene).version == 1)
        await scene.until(lambda: entry(scene).phase == "Succeeded")
        assert len(begun(scene)) == 2
        assert all(
            (one.version, one.phase) != (0, "Succeeded")
            for report in scene.hub.said("nodeimages")
            for image in report.status.image_statuses.values()
            for one in image.tags
        )

    play(tmp_path, story)


def test_a_tag_that_leaves_the_spec(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_takes = 20
        await ready(scene)
        want(scene, tag("a"), tag("b"))
        await scene.until(lambda: entry(scene, "b").phase == "Pulling")
        want(scene, tag("a"))
        await scene.until(lambda: scene.hub.image().entry("nginx", "b") is None)
        await scene.until(lambda: entry(scene, "a").phase == "Succeeded")
        assert [image for _, image, _, what in scene.machine.pulls if what == "done"] == ["nginx:a"]

    play(tmp_path, story)


def test_what_the_manager_gave_up_is_not_pulled(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        want(scene, tag())
        image = scene.hub.image()
        failed = TagStatus(tag="1.25", phase="Failed", completion_time=scene.clock.now(), message="no answer")
        status = msgspec.convert(
            {"imageStatuses": {"nginx": {"tags": [msgspec.to_builtins(failed)]}}}, type(image.status)
        )
        scene.hub.put(NODE_IMAGE, msgspec.structs.replace(image, status=status))
        await ready(scene)
        await scene.at(10)
        assert begun(scene) == []
        want(scene, tag(version=1))
        await scene.until(lambda: entry(scene).version == 1 and entry(scene).phase == "Succeeded")

    play(tmp_path, story)


def test_killed_at_any_moment_of_a_pull(tmp_path: Path) -> None:
    for moment in (0.01, 0.03, 0.05, 0.5, 1.0, 1.02, 1.04, 1.06, 2.0):

        async def story(scene: Scene, moment: float = moment) -> None:
            await ready(scene)
            want(scene, tag())
            start = scene.loop.time()
            await scene.at(start + moment)
            scene.kill()
            await scene.at(start + moment + 2)
            reported = entry(scene).phase == "Succeeded"  # a report that had left arrived
            before = len(begun(scene))
            scene.start()
            await scene.until(lambda: entry(scene).phase == "Succeeded")
            await scene.at(scene.loop.time() + 5)
            assert len(begun(scene)) == before + (0 if reported else 1)

        play(tmp_path / str(moment), story)


def test_the_bus_is_away_during_a_pull(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await ready(scene)
        want(scene, tag())
        await scene.until(lambda: entry(scene).phase == "Pulling")
        scene.hub.up = False
        await scene.at(63)
        scene.hub.up = True
        await scene.until(lambda: entry(scene).phase == "Succeeded")
        assert len(begun(scene)) == 1

    play(tmp_path, story)


def test_the_runtime_restarts_during_a_pull_and_that_is_no_attempt(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_takes = 5
        await ready(scene)
        want(scene, tag(backoff_limit=0))
        await scene.until(lambda: entry(scene).phase == "Pulling")
        scene.machine.up = False
        await scene.at(8)
        scene.machine.up = True
        await scene.until(lambda: entry(scene).phase == "Succeeded")

    play(tmp_path, story)


def test_so_many_at_a_time(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        scene.machine.pull_takes = 4
        await ready(scene)
        want(scene, *(tag(f"v{number}") for number in range(5)))
        await scene.until(lambda: scene.hub.image().status.pulling == 2)
        assert scene.hub.image().status.waiting == 3
        await scene.until(lambda: scene.hub.image().status.succeeded == 5)
        assert len(scene.hub.said("nodeimages")) < 12, "status writes are limited"

    play(tmp_path, story, Settings(max_workers_for_pull_image=2))
