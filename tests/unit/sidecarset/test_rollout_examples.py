"""The worked examples of rollouts (sidecarset.md §11.2): one pass of each, and its end."""

import pytest

from flotilla_common.control.plan import Plan
from tests.testkit.plans import codes
from tests.unit.sidecarset.build import Builder, counts, image, planned, pod, pod_patches, pods, side, sidecar, updated
from tests.unit.sidecarset.world import World

ONE_PASS = [
    pytest.param(side().p(0).m(1), "Ax10", 1, id="1 all old"),
    pytest.param(side().p("25%").m("30%"), "Ax10", 3, id="2 percentages, rounded up"),
    pytest.param(side().p("99%").m(3), "Ax3", 1, id="3 a partition below 100% lets one go"),
    pytest.param(side().p("1%").m(1), "A", 0, id="4 but not the only one"),
    pytest.param(side().p("50%").m("20%"), "Ax7", 2, id="5 halves, rounded up"),
    pytest.param(side().m(1), "A!x2 Ax3", 3, id="6 old unready ones cost nothing"),
    pytest.param(side().m(1), "B! A!x2 Ax2", 2, id="7 an updated unready one uses it up"),
    pytest.param(side().m(0), "Ax5", 0, id="8 maxUnavailable 0"),
    pytest.param(side().m(0), "A! Ax4", 1, id="9 maxUnavailable 0 repairs what is broken"),
    pytest.param(side().p(7).m(1), "Ax5", 0, id="10 a partition above the number of pods"),
    pytest.param(side().p(3).m("20%"), "Bx2 B!x2 Ax6", 0, id="11 two updated ones are down"),
    pytest.param(side().p(3).m("20%"), "Bx2 B!x2 A!x2 Ax4", 2, id="12 of the old ones, two are down anyway"),
    pytest.param(side("B", sidecar("B", "log")), "A?", 0, id="16 more than the image has changed"),
    pytest.param(side().strategy(paused=True), "B A", 0, id="18 paused"),
    pytest.param(side().strategy(type="NotUpdate"), "Ax3", 0, id="24 NotUpdate"),
    pytest.param(side(), "A F A! A".replace("F", "AF"), 2, id="inactive ones are neither counted nor updated"),
    pytest.param(side().m("100%"), "Ax300", 128, id="a pass is a wave"),
    pytest.param(side(), "", 0, id="no pods"),
    pytest.param(side().m("0%"), "Ax3", 0, id="0%"),
    pytest.param(side().p("100%"), "Ax3", 0, id="partition 100%"),
    pytest.param(side().m("200%"), "Ax3", 3, id="more than all"),
]


@pytest.mark.parametrize(("builder", "there", "number"), ONE_PASS)
def test_how_many_are_updated_in_one_pass(builder: Builder, there: str, number: int) -> None:
    assert len(updated(planned(builder, there))) == number


@pytest.mark.parametrize(
    ("builder", "there", "end"),
    [
        pytest.param(side().p("25%").m("30%"), "Ax10", 7, id="2"),
        pytest.param(side().p("99%").m(3), "Ax3", 1, id="3"),
        pytest.param(side().p("50%").m("20%"), "Ax7", 3, id="5"),
        pytest.param(side(), "Ax10", 10, id="1"),
        pytest.param(side(), "A!x2 Ax3", 5, id="6"),
    ],
)
def test_how_many_are_updated_in_the_end(builder: Builder, there: str, end: int) -> None:
    world = World(builder, pods(there))
    world.settle()
    assert world.counts == (len(world.pods), end, len(world.pods), end)
    assert sorted(world.images()) == [image("A")] * (len(world.pods) - end) + [image("B")] * end


def test_a_broken_image_stops_the_rollout_and_a_good_one_goes_on() -> None:
    """13 and 14: the broken one is free, so both get the good image at once."""
    world = World(side("B").m(1), pods("Ax2"))
    world.broken = {image("B")}
    world.settle()
    assert world.counts == (2, 1, 1, 0)
    assert codes(world.last) == {"WaitingForMaxUnavailable", "Starting"}
    world.change(side("C").m(1))
    assert len(updated(world.reconcile())) == 2
    world.settle()
    assert world.counts == (2, 2, 2, 2)


def test_half_of_the_pods_get_a_broken_image() -> None:
    """15."""
    world = World(side("B").m("50%"), pods("Ax4"))
    world.broken = {image("B")}
    world.settle()
    assert world.counts == (4, 2, 2, 0)
    assert codes(world.last) >= {"WaitingForMaxUnavailable"}


def test_what_cannot_be_updated_says_so() -> None:
    """16: the env of a sidecar was changed."""
    world = World(side(), pods("A?"))
    world.settle()
    assert world.counts == (1, 0, 1, 0)
    (condition,) = [one for one in world.pods[0]["status"]["conditions"] if one["type"] == "SidecarSetUpgradable"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "UpdateImmutableField",
        '{"side":false}',
    )
    assert codes(world.last) == {"NotUpgradable"}


def test_those_that_can_be_updated_are() -> None:
    """17: one pod was created after the env was changed, then the image changes."""
    world = World(side(), pods("A?x1 A"))
    world.settle()
    assert world.counts == (2, 1, 2, 1)


def test_paused_in_the_middle() -> None:
    """18."""
    world = World(side().m(1), pods("Ax2"))
    world.reconcile()
    world.tick()
    world.change(side().m(1).strategy(paused=True))
    world.settle()
    assert world.counts == (2, 1, 2, 1)
    assert codes(world.last) == {"PausedByUser"}
    world.change(side().m(1))
    world.settle()
    assert world.counts == (2, 2, 2, 2)


def test_a_selector_chooses_who_is_updated() -> None:
    """19."""
    canary = side().strategy(selector={"matchLabels": {"canary": "yes"}})
    world = World(canary, pods("Ax2", labels={1: {"canary": "yes"}}))
    world.settle()
    assert world.images() == [image("A"), image("B")]
    assert codes(world.last) == {"NotSelected"}
    world.change(side())
    world.settle()
    assert world.counts == (2, 2, 2, 2)


def test_annotations_follow_with_the_next_image() -> None:
    """20: a change of patchPodMetadata alone leaves pods as updated as they are."""
    entries = [{"annotations": {"mesh": "on"}, "patchPolicy": "Overwrite"}]
    world = World(side().set(patchPodMetadata=entries), pods("Bx5"))
    world.settle()
    assert world.counts == (5, 5, 5, 5)
    assert not any("mesh" in pod["metadata"]["annotations"] for pod in world.pods)
    world.change(side("C").set(patchPodMetadata=entries))
    world.settle()
    assert all(pod["metadata"]["annotations"]["mesh"] == "on" for pod in world.pods)


def test_init_containers_change_nothing_but_the_revision() -> None:
    """21."""
    before = side().set(initContainers=[{"name": "init", "image": "i:1"}])
    world = World(before, pods("Bx5"))
    world.settle()
    first = world.objects["SidecarSet"]["side"]["status"]["latestRevision"]
    world.change(side().set(initContainers=[{"name": "init", "image": "i:2"}]))
    world.settle()
    assert world.counts == (5, 5, 5, 5)
    assert world.objects["SidecarSet"]["side"]["status"]["latestRevision"] != first
    assert len(world.objects["ControllerRevision"]) == 2
    assert not [verb for verb in world.writes if verb.endswith("Pod")]


def test_back_and_forth_half_way() -> None:
    """22: pods still on A are updated at once, the others roll back."""
    world = World(side("A"), pods("Ax3"))
    world.settle()
    world.change(side("B").m(1))
    world.reconcile()
    world.tick()
    world.tick()
    assert world.images().count(image("B")) == 1
    world.change(side("A").m(1))
    assert counts(world.reconcile())[1] == 2
    world.settle()
    assert world.counts == (3, 3, 3, 3)
    assert world.images() == [image("A")] * 3
    assert len(world.objects["ControllerRevision"]) == 2, "the old revision stands for the spec again"


def test_one_that_cannot_be_written_loses_no_others() -> None:
    """23: it is written with the next pass, or is gone by then."""
    world = World(side().m(3), pods("Ax3"))
    world.refused = {"p01"}
    world.reconcile()
    assert world.images() == [image("B"), image("A"), image("B")]
    del world.objects["Pod"]["p01"]
    world.settle()
    assert world.counts == (2, 2, 2, 2)


def test_nothing_is_updated_but_counted() -> None:
    """24."""
    world = World(side().strategy(type="NotUpdate"), pods("Ax3"))
    world.settle()
    assert world.counts == (3, 0, 3, 0)
    assert codes(world.last) == {"NotUpdate"}


@pytest.mark.parametrize(("there", "most"), [("Ax6", 2), ("A! Ax5", 3)])
def test_never_more_than_max_unavailable_are_down(there: str, most: int) -> None:
    world = World(side().m(2), pods(there))
    world.settle()
    assert world.most_down <= most
    assert world.counts == (6, 6, 6, 6)


def test_a_pod_whose_kubelet_is_late_is_busy() -> None:
    """An earlier change has not reached it: it is neither updated nor marked."""
    statuses = [
        {"name": "main", "image": "shop:1", "imageID": "id-main", "ready": True},
        {"name": "proxy", "image": "proxy:before", "imageID": "id-before", "ready": True},
    ]
    late = pod("p00", "A", "~", status={"containerStatuses": statuses})
    result = planned(side("B"), [late])
    assert pod_patches(result) == pod_patches(result, "status") == []
    assert codes(result) == {"Busy"}


def test_the_unready_go_first_whatever_their_place() -> None:
    result: Plan = planned(side().p(3).m(1), "Ax3 A!")
    assert updated(result) == ["p03"]
