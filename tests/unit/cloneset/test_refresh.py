"""Writes that pods get from every pass, and how the update step combines with them (docs/adr/0004)."""

import json
from datetime import timedelta

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Patch
from tests.testkit.plans import codes
from tests.unit.cloneset.build import NOW, CloneSetBuilder, cloneset, planned, pod, pods, summary, template
from tests.unit.cloneset.world import World


def half_started(name: str, side: str = "o") -> Pod:
    """Return the first write of an in-place update happened, then the service crashed."""
    document = msgspec.to_builtins(pod(name, side, ready=False))
    for condition in document["status"]["conditions"]:
        if condition["type"] == "InPlaceUpdateReady":
            condition |= {"status": "False", "reason": "StartInPlaceUpdate"}
    return msgspec.convert(document, Pod)


def rolling(replicas: int) -> CloneSetBuilder:
    return cloneset().replicas(replicas).max_unavailable(1).in_place()


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        pytest.param(rolling(3), ["update x"], id="goes on"),
        pytest.param(rolling(3).paused(), ["patch x"], id="undone while paused"),
        pytest.param(rolling(3).partition(3), ["patch x"], id="undone behind the partition"),
        pytest.param(cloneset().replicas(3).on_delete(), ["patch x"], id="undone on OnDelete"),
    ],
)
def test_a_half_started_update(builder: CloneSetBuilder, expected: list[str]) -> None:
    result = planned(builder, [*pods("2o"), half_started("x")])
    assert summary(result) == expected
    if expected == ["patch x"]:
        (patch,) = result.actions
        assert isinstance(patch, Patch)
        assert (patch.subresource, patch.resource_version) == ("status", "5")


def test_refresh_goes_before_scaling() -> None:
    fresh = pod("x", "n", state="PreparingNormal", ready=False)
    gone = pod("gone", "n", labels={"app": "other"})
    result = planned(cloneset().replicas(4), [*pods("2n"), fresh, gone])
    assert summary(result) == ["release gone", "state x Normal", "create new"]


def test_a_half_started_way_back_goes_on() -> None:
    builder = rolling(6).partition(5)
    result = planned(builder, [*pods("4n 1o"), half_started("x", "n")], gates="CloneSetPartitionRollback=true")
    assert summary(result) == ["update x"]


def test_refresh_and_update_share_a_pass() -> None:
    fresh = pod("x", "n", state="PreparingNormal", ready=False)
    result = planned(cloneset().replicas(4).max_unavailable(2).in_place(), [*pods("3o"), fresh])
    assert summary(result) == ["state x Normal", "update o1"]


def test_a_refreshed_pod_keeps_its_place_in_the_order() -> None:
    fresh = pod("x", "o", state="PreparingNormal", ready=False)
    result = planned(rolling(4).partition(3), [*pods("3o"), fresh])
    assert summary(result) == ["state x Normal"]
    later = planned(rolling(4).partition(3), [*pods("3o"), pod("x", "o", ready=False)])
    assert summary(later) == ["update x"]


def test_labels_of_older_releases_are_filled_in() -> None:
    document = msgspec.to_builtins(pod("x"))
    del document["metadata"]["labels"]["pod-template-hash"]
    result = planned(cloneset().replicas(1), [msgspec.convert(document, Pod)])
    (patch,) = result.actions
    assert isinstance(patch, Patch)
    assert patch.body["metadata"]["labels"] == {"pod-template-hash": "new"}


def test_an_unreadable_pod_stops_nobody_else() -> None:
    broken = pod("x", "n", state="Updating", ready=False, annotations={"apps.kruise.io/inplace-update-state": "{"})
    result = planned(rolling(3).max_unavailable(2), [*pods("2o"), broken])
    assert "PodUnreadable" in codes(result)
    assert summary(result) == ["update o1"]


def test_grace_period() -> None:
    builder = rolling(1).in_place(grace=10)
    world = World(builder.template(template("nginx:1")))
    world.settle()
    world.change(builder.template(template("nginx:2")))
    started = world.reconcile()
    assert started.wake_at == world.now + timedelta(seconds=10)
    (document,) = world.pods
    assert document["spec"]["containers"][0]["image"] == "nginx:1"
    assert json.loads(document["metadata"]["annotations"]["apps.kruise.io/inplace-update-grace"])["graceSeconds"] == 10
    world.tick()
    waiting = world.reconcile()
    assert "WaitingForGracePeriod" in codes(waiting)
    for _ in range(12):
        world.tick()
    world.settle()
    (document,) = world.pods
    assert document["spec"]["containers"][0]["image"] == "nginx:2"
    assert world.available() == 1


def test_a_pod_that_has_to_be_hooked_again_says_so() -> None:
    result = planned(rolling(1).hook("inPlaceUpdate"), [pod("x", state="Updated")])
    (reason,) = [reason for reason in result.reasons if reason.code == "WaitingForHook"]
    assert reason.message == (
        "sample-x: Updated: nobody has answered the inPlaceUpdate hook: "
        "whoever is to answer it has to put on label hold=inPlaceUpdate"
    )


def test_messages_name_a_handful_of_pods() -> None:
    result = planned(cloneset().replicas(9).max_unavailable(7), "2o 7n!", now=NOW)
    (reason,) = [reason for reason in result.reasons if reason.code == "WaitingForMaxUnavailable"]
    assert reason.message == (
        "maxUnavailable 7 is used by sample-n1, sample-n2, sample-n3, sample-n4, sample-n5 and 2 more"
    )
    assert len(reason.objects) == 5
