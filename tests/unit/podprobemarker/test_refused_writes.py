"""Writes of results that the apiserver refuses: their reasons and their retries."""

import pytest

from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Action, Outcome, OutcomeKind, Plan, Reason, State
from tests.unit.podprobemarker.world import World, probe

OK, BAD = "Succeeded", "Failed"
DENIED = Outcome(kind=OutcomeKind.DENIED, message='admission webhook "guard.game.io" denied the request: no label idle')


def world_of(*, refusing: str = "p0", outcome: Outcome = DENIED, pods: int = 2) -> World:
    """Return a world whose apiserver refuses writes of the pod."""
    world = World()
    for number in range(pods):
        world.pod(f"p{number}")
    world.marker()
    world.settle()

    def refuse(action: Action) -> Outcome | None:
        return outcome if action.resource == POD and action.name == refusing else None

    world.refuse = refuse
    world.refused.clear()
    return world


def stuck(plan: Plan) -> list[Reason]:
    return [reason for reason in plan.reasons if reason.state is State.STUCK and reason.code != "WaitingForNodeAgent"]


def test_the_reason_names_the_pod_and_what_the_apiserver_said():
    world = world_of()
    world.report(p0__m__idle=(OK, ""), p1__m__idle=(OK, ""))
    assert (world.shown("p0"), world.shown("p1")) == (None, ("True", ""))
    [reason] = stuck(world.pass_of_node("n1"))
    assert (reason.code, reason.objects) == ("WebhookDenied", ("ns/p0",))
    assert reason.message == f"writing the results of probes to 1 pod (ns/p0) is refused: {DENIED.message}"


def test_it_is_sent_again_after_a_back_off_however_often_the_node_is_planned():
    world = world_of()
    sent: list[int] = []
    for second in range(16):
        world.report(p0__m__idle=(OK, ""), p1__m__idle=(OK if second % 2 else BAD, str(second)))
        assert world.shown("p1") == ("True" if second % 2 else "False", str(second)), "others are not held back"
        if world.refused:
            sent.append(second)
        assert world.refused in ([], ["p0"])
        world.refused.clear()
        world.wait(1)
    assert sent == [0, 1, 3, 7, 15]


def test_the_plan_waits_for_the_next_try():
    world = world_of()
    world.report(p0__m__idle=(OK, ""))
    wake = world.pass_of_node("n1").wake_at
    assert wake is not None
    assert (wake - world.now).total_seconds() == 1


def test_another_result_is_sent_at_once():
    world = world_of()
    world.report(p0__m__idle=(OK, ""))
    world.refused.clear()
    world.refuse = lambda action: None
    world.report(p0__m__idle=(BAD, "busy"))
    assert world.shown("p0") == ("False", "busy")
    assert stuck(world.pass_of_node("n1")) == []


def test_a_guard_that_is_gone_lets_the_next_try_through():
    world = world_of()
    world.report(p0__m__idle=(OK, ""))
    world.refuse = lambda action: None
    world.settle()
    assert world.shown("p0") is None
    world.wait(1)
    world.settle()
    assert world.shown("p0") == ("True", "")
    assert stuck(world.pass_of_node("n1")) == []


@pytest.mark.parametrize(
    "kind", [OutcomeKind.UNKNOWN, OutcomeKind.THROTTLED, OutcomeKind.CONFLICT, OutcomeKind.NOT_FOUND]
)
def test_what_may_pass_by_itself_is_left_to_the_back_off_of_the_node(kind: OutcomeKind):
    world = world_of(outcome=Outcome(kind=kind, message="timed out"))
    world.report(p0__m__idle=(OK, ""))
    world.refused.clear()
    world.pass_of_node("n1")
    assert world.refused == ["p0"]


def test_pods_of_other_markers_are_named_apart():
    """Reasons name the pods of each PodProbeMarker separately.

    `explain podprobemarker` shows the reasons that name its pods, and a reason names only the first few.
    """
    world = World()
    for number in range(8):
        world.pod(f"p{number}", metadata={"labels": {"app": "game" if number < 7 else "shop"}})
    world.marker(name="m")
    world.marker(probe("open"), name="s", labels={"app": "shop"})
    world.settle()
    world.refuse = lambda action: DENIED if action.resource == POD else None
    world.report(**{f"p{number}__m__idle": (OK, "") for number in range(7)}, p7__s__open=(OK, ""))
    first, second = stuck(world.pass_of_node("n1"))
    assert "7 pods" in first.message
    assert set(first.objects) < {f"ns/p{number}" for number in range(7)}
    assert second.objects == ("ns/p7",)


def test_marks_by_conditions_of_virtual_nodes_are_held_back_likewise():
    world = World(nodes_there=0, gates="EnablePodProbeMarkerOnServerless=true")
    world.node("v", type="virtual-kubelet")
    condition = {"type": "game.io/idle", "status": "True"}
    for name in ("p0", "p1"):
        world.pod(name, node="v", status={"conditions": [{"type": "Initialized", "status": "True"}, condition]})
    world.refuse = lambda action: DENIED if action.name == "p0" else None
    world.marker()
    world.settle()
    assert (world.labels("p0"), world.labels("p1")) == ({}, {"idle": "yes"})
    [reason] = stuck(world.pass_of_marker())
    assert (reason.code, reason.objects) == ("WebhookDenied", ("p0",))
    sent = len(world.refused)
    world.pass_of_marker()
    assert len(world.refused) == sent
