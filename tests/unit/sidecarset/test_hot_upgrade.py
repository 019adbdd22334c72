"""Upgrades without a break, step by step (sidecarset.md §7.10, §11.3)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.control.plan import Patch, Plan
from flotilla_sidecar.sidecarset.containers import Consistency, container_pair, next_to_work
from tests.testkit.documents import Json
from tests.testkit.plans import codes
from tests.unit.sidecarset.build import (
    HASH,
    STATE,
    WORKING,
    Builder,
    counts,
    hot_pod,
    hot_side,
    image,
    planned,
    pod_patches,
    sidecar,
    updated,
)
from tests.unit.sidecarset.build import pod as pod_of
from tests.unit.sidecarset.world import World

IDLE = "empty:1"
A, B, C = image("A"), image("B"), image("C")
HEALTHY, FIRST_ONLY, SECOND_ONLY, NONE = (True, True), (True, False), (False, True), (False, False)


def annotation(pod: Json, key: str) -> str:
    return pod["metadata"]["annotations"][key]


def versions(pod: Json) -> str:
    """Return version and versionalt, first container / second one."""
    prefixes = ("version.sidecarset.kruise.io/mesh-", "versionalt.sidecarset.kruise.io/mesh-")
    return " ".join("/".join(annotation(pod, f"{prefix}{number}") for number in (1, 2)) for prefix in prefixes)


def works(pod: Json) -> str:
    return msgspec.json.decode(annotation(pod, WORKING))["mesh"]


def pair(pod: Json) -> tuple[str, str]:
    first, second = (one["image"] for one in pod["spec"]["containers"] if one["name"].startswith("mesh"))
    return first, second


def changed(patch: Patch) -> dict[str, str]:
    return {one["name"]: one["image"] for one in patch.body.get("spec", {}).get("containers", [])}


def only(result: Plan) -> Patch:
    (patch,) = pod_patches(result)
    return patch


def test_the_whole_way() -> None:
    """The table of §11.3: an upgrade, the former container idles, and the next upgrade."""
    world = World(hot_side("A"), [hot_pod(A, IDLE)])
    world.settle()
    (pod,) = world.pods
    assert (pair(pod), works(pod), versions(pod), world.counts) == ((A, IDLE), "mesh-1", "1/0 0/1", (1, 1, 1, 1))

    world.change(hot_side("B"))
    r = world.objects["SidecarSet"]["side"]["metadata"]["resourceVersion"]
    assert counts(world.reconcile()) == (1, 0, 1, 0)
    (pod,) = world.pods
    assert (pair(pod), works(pod), versions(pod)) == ((A, B), "mesh-2", f"1/{r} {r}/1")
    world.reconcile()
    assert world.counts == (1, 1, 0, 0)
    assert world.last.stages == ()

    while pair(world.pods[0])[0] == A:
        world.tick()
        world.reconcile()
    (pod,) = world.pods
    assert (pair(pod), works(pod), versions(pod)) == ((IDLE, B), "mesh-2", f"0/{r} {r}/0")
    assert world.counts == (1, 1, 0, 0)
    assert codes(world.last) >= {"Resetting"}
    world.settle()
    assert world.counts == (1, 1, 1, 1)
    assert codes(world.last) == {"Complete"}

    world.change(hot_side("C"))
    r2 = world.objects["SidecarSet"]["side"]["metadata"]["resourceVersion"]
    world.reconcile()
    (pod,) = world.pods
    assert (pair(pod), works(pod), versions(pod)) == ((C, B), "mesh-1", f"{r2}/{r} {r}/{r2}")
    world.settle()
    (pod,) = world.pods
    assert (pair(pod), works(pod)) == ((C, IDLE), "mesh-1")


def test_what_an_upgrade_writes() -> None:
    patch = only(planned(hot_side("B"), [hot_pod(A, IDLE)]))
    annotations = patch.body["metadata"]["annotations"]
    assert changed(patch) == {"mesh-2": B}
    state = msgspec.json.decode(annotations["kruise.io/sidecarset-inplace-update-state"])
    assert state["side"]["lastContainerStatuses"] == {"mesh-2": {"imageID": f"id-{IDLE}"}}
    assert msgspec.json.decode(annotations[HASH])["side"]["sidecarList"] == ["mesh"]


def test_what_the_second_step_writes() -> None:
    """It requires the observed version, with an event on the pod; the pod's records of its sidecars stay."""
    pod = hot_pod(A, B, "mesh-2", hash_of="B", versions="1/77 77/1", last={"mesh-2": f"id-{IDLE}"})
    result = planned(hot_side("B"), [pod])
    (stage,) = result.stages
    ((patch,),) = stage.chains
    assert isinstance(patch, Patch)
    assert (patch.resource_version, patch.subresource, changed(patch)) == ("5", "", {"mesh-1": IDLE})
    annotations = patch.body["metadata"]["annotations"]
    assert HASH not in annotations
    assert WORKING not in annotations
    assert {key: value for key, value in annotations.items() if key.startswith("version")} == {
        "version.sidecarset.kruise.io/mesh-1": "0",
        "versionalt.sidecarset.kruise.io/mesh-2": "0",
    }
    state = msgspec.json.decode(annotations["kruise.io/sidecarset-inplace-update-state"])["side"]
    assert state["lastContainerStatuses"] == {"mesh-2": {"imageID": f"id-{IDLE}"}, "mesh-1": {"imageID": f"id-{A}"}}
    event = patch.on_success
    assert event is not None
    assert event.about is not None
    assert (event.reason, event.about.name, event.about.uid) == ("ResetContainerSucceed", "p00", "uid-p00")


MIGRATING: dict[str, Any] = {"hash_of": "B", "versions": "1/77 77/1", "last": {"mesh-2": f"id-{IDLE}"}}


@pytest.mark.parametrize(
    ("more", "due"),
    [
        pytest.param({}, True, id="both work"),
        pytest.param({"running": (A, IDLE)}, False, id="the new one does not run yet"),
        pytest.param({"ready": False, "readies": FIRST_ONLY}, False, id="the new one is not ready"),
        pytest.param({"ready": False, "readies": SECOND_ONLY}, True, id="the former one is not ready"),
        pytest.param({"ready": False, "main_ready": False}, False, id="something else is not ready"),
        pytest.param({"readies": FIRST_ONLY}, True, id="the pod is ready"),
    ],
)
def test_when_the_former_one_idles(more: dict[str, Any], due: bool) -> None:
    result = planned(hot_side("B"), [hot_pod(A, B, "mesh-2", **MIGRATING, **more)])
    assert [changed(patch) for patch in pod_patches(result)] == ([{"mesh-1": IDLE}] if due else [])
    assert counts(result)[2:] == (0, 0), "meanwhile it is not ready"


@pytest.mark.parametrize("strategy", [{"paused": True}, {"type": "NotUpdate"}])
def test_not_while_nothing_may_be_written(strategy: Json) -> None:
    assert planned(hot_side("B").strategy(**strategy), [hot_pod(A, B, "mesh-2", **MIGRATING)]).stages == ()


def test_a_pass_that_lets_one_idle_updates_nobody() -> None:
    """No other pod is updated either."""
    migrating = hot_pod(A, B, "mesh-2", **MIGRATING)
    other = hot_pod(A, IDLE)
    other = msgspec.structs.replace(other, metadata=msgspec.structs.replace(other.metadata, name="p01", uid="u1"))
    result = planned(hot_side("B"), [other, migrating])
    assert [patch.name for patch in pod_patches(result)] == ["p00"]
    assert updated(result) == []


@pytest.mark.parametrize(
    ("first", "second", "working", "readies", "chosen"),
    [
        pytest.param(IDLE, A, "mesh-2", HEALTHY, "mesh-1", id="the idle one"),
        pytest.param(A, IDLE, "mesh-1", NONE, "mesh-2", id="the idle one, healthy or not"),
        pytest.param(A, B, "mesh-2", FIRST_ONLY, "mesh-2", id="the unhealthy one"),
        pytest.param(A, B, "mesh-2", SECOND_ONLY, "mesh-1", id="the unhealthy one, which is the older one"),
        pytest.param(A, B, "mesh-2", HEALTHY, "mesh-1", id="of two healthy ones the older one"),
        pytest.param(A, B, "mesh-2", NONE, "mesh-1", id="of two unhealthy ones the older one"),
        pytest.param(A, B, "mesh-1", HEALTHY, "mesh-2", id="the older one, the other way round"),
    ],
)
def test_which_one_is_next(first: str, second: str, working: str, readies: tuple[bool, bool], chosen: str) -> None:
    pod = hot_pod(first, second, working, readies=readies)
    (mesh,) = hot_side("C").build().sidecars
    assert next_to_work(container_pair(pod, mesh), Consistency(pod, "side")) == chosen


def test_a_failed_upgrade_is_tried_again_with_the_next_image() -> None:
    """The failed container gets it; the former one continues to serve."""
    pod = hot_pod(A, B, "mesh-2", **MIGRATING, ready=False, readies=FIRST_ONLY)
    patch = only(planned(hot_side("C"), [pod]))
    assert changed(patch) == {"mesh-2": C}
    annotations = patch.body["metadata"]["annotations"]
    assert WORKING not in annotations, "it is mesh-2 already"


def test_back_to_what_still_runs() -> None:
    """The failed container idles, and the former one works again.

    (The original leaves the pod unready.)
    """
    world = World(hot_side("A"), [hot_pod(A, IDLE)])
    world.broken = {B}
    world.change(hot_side("B"))
    world.settle()
    assert pair(world.pods[0]) == (A, B)
    assert world.counts == (1, 1, 0, 0)
    world.change(hot_side("A"))
    world.settle()
    (pod,) = world.pods
    assert (pair(pod), works(pod)) == ((A, IDLE), "mesh-1")
    assert versions(pod) == "1/0 0/1"
    assert world.counts == (1, 1, 1, 1)


def test_an_image_that_the_pod_has_already_changes_nothing_but_the_record() -> None:
    result = planned(hot_side("A"), [hot_pod(A, IDLE, hash_of="B")])
    assert pod_patches(result) == [], "with the condition, in one write"
    (patch,) = pod_patches(result, "status")
    assert changed(patch) == {}
    assert patch.body["metadata"]["annotations"].keys() == {HASH, STATE}


@pytest.mark.parametrize(
    "annotations",
    [{WORKING: "{}"}, {WORKING: "no JSON"}, {WORKING: '{"mesh": 1}'}, {WORKING: ""}],
    ids=["not in it", "no JSON", "no text", "empty"],
)
def test_a_pod_that_does_not_say_which_one_works_is_not_counted(annotations: dict[str, str]) -> None:
    assert counts(planned(hot_side("B"), [hot_pod(A, IDLE, annotations=annotations)])) == (0, 0, 0, 0)


def test_a_sidecar_of_the_other_sort_is_not_there() -> None:
    assert counts(planned(hot_side("B"), [pod_of(letter="A")]))[0] == 0
    assert counts(planned(Builder([sidecar("B", "mesh")]), [hot_pod(A, IDLE)]))[0] == 0


@pytest.mark.parametrize("working", ["mesh-1", "mesh-2"])
def test_the_one_that_idles_does_not_work_whatever_the_pod_says(working: str) -> None:
    """When images were written by others, the last real one must not idle as well."""
    result = planned(hot_side("A"), [hot_pod(IDLE, A, working)])
    assert result.stages == ()
    assert counts(result) == (1, 1, 1, 1)
