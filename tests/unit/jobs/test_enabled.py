"""The parts of the service that run, by the served kinds and by gates (install.md §3, §6)."""

import pytest

from flotilla_common.control.spec import Component
from flotilla_common.settings import Settings
from flotilla_jobs.app import PARTS

NODE_IMAGES, PULLS, LISTS, RECREATES, BROADCASTS, CRONS, EPHEMERALS, SECRETS, REPORTS = PARTS
IMAGES = {part.name for part in (NODE_IMAGES, SECRETS, REPORTS)}
JOBS = {part.name for part in (PULLS, LISTS)}
OTHERS = {part.name for part in (BROADCASTS, CRONS, EPHEMERALS)}  # they need no agents
AHEAD = "PreDownloadImageForInPlaceUpdate=true"
ALL = {part.name for part in PARTS}


def running(kinds: str = "", gates: str = "") -> set[str]:
    settings = Settings(custom_resource_enable=kinds, feature_gates=gates)
    return {part.name for part in PARTS if not part.why_off(settings, settings.gates())}


@pytest.mark.parametrize(
    ("kinds", "gates", "on"),
    [
        pytest.param("", "", ALL, id="by default"),
        pytest.param("", "KruiseDaemon=false", OTHERS, id="without agents"),
        pytest.param("AdvancedCronJob", "DaemonWatchingPod=false", {CRONS.name}, id="one of those that need none"),
        pytest.param("ContainerRecreateRequest", "", {RECREATES.name, REPORTS.name}, id="restarts only"),
        pytest.param("NodeImage", "", IMAGES | JOBS, id="NodeImages only"),
        pytest.param("ImagePullJob", "", IMAGES | JOBS, id="jobs only"),
        pytest.param("ImageListPullJob", "", IMAGES | JOBS, id="lists only"),
        pytest.param("", "ImagePullJobGate=false", ALL - JOBS, id="nodes, but no jobs"),
        pytest.param("CloneSet", "", {REPORTS.name}, id="another kind: agents still tell of pods"),
        pytest.param("CloneSet", "DaemonWatchingPod=false", set(), id="another kind, and they do not"),
        pytest.param("NodeImage", "DaemonWatchingPod=false", IMAGES | JOBS, id="they tell of images"),
        pytest.param("CloneSet", AHEAD, IMAGES | JOBS, id="pulled ahead for CloneSets"),
        pytest.param("SidecarSet", AHEAD, {REPORTS.name}, id="there is nobody to pull ahead for"),
    ],
)
def test_what_runs(kinds: str, gates: str, on: set[str]) -> None:
    assert running(kinds, gates) == on


@pytest.mark.parametrize(
    ("part", "kinds", "gates", "why"),
    [
        (RECREATES, "", "KruiseDaemon=false", "off: gate KruiseDaemon"),
        (RECREATES, "CloneSet", "", "off: ContainerRecreateRequest is not in CUSTOM_RESOURCE_ENABLE"),
        (NODE_IMAGES, "CloneSet", "", "off: NodeImage, ImagePullJob, ImageListPullJob not in CUSTOM_RESOURCE_ENABLE"),
        (PULLS, "", "ImagePullJobGate=false", "off: gate ImagePullJobGate"),
        (LISTS, "", "ImagePullJobGate=false", "off: gate ImagePullJobGate"),
        (SECRETS, "", "KruiseDaemon=false", "off: gate KruiseDaemon"),
        (
            REPORTS,
            "CloneSet",
            "DaemonWatchingPod=false",
            "off: gate DaemonWatchingPod, and no kind that needs agents is in CUSTOM_RESOURCE_ENABLE",
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_why_it_does_not_run(part: Component, kinds: str, gates: str, why: str) -> None:
    settings = Settings(custom_resource_enable=kinds, feature_gates=gates)
    assert part.why_off(settings, settings.gates()) == why
