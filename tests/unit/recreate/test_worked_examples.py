"""The worked examples of containerrecreaterequest.md §12 that are the manager's part, number by number.

The agent's decisions (containers to kill, order, grace) are scripted here as its reports; examples 11, 12 and 27 are
its part alone.
"""

from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, RecreateState
from flotilla_common.api.resources import POD
from flotilla_jobs.containerrecreate.merge import ENDED
from tests.unit.recreate.world import ACTIVE, FINALIZER, START, World, pod_document, request_document, stamp, state

HELD = '[{"userAgent":"ContainerRecreateRequest","key":"ns/r"}]'
DEADLINE = "recreating has exceeded the activeDeadlineSeconds"


def labels(world: World, name: str = "r") -> set[str]:
    return set(world.request(name)["metadata"]["labels"])


def states(world: World, name: str = "r") -> list[tuple[str, str, bool]]:
    found = world.status(name).get("containerRecreateStates", [])
    return [(one["name"], one["phase"], one.get("isKilled", False)) for one in found]


def taken_up(*containers: str, **spec: Any) -> World:
    """Return a world whose request the agent has claimed, with all containers Pending."""
    world = World(request_document(*containers, **spec))
    world.passes()
    world.report(phase="Recreating")
    world.report(*(state(one, "Pending") for one in containers), phase="Recreating")
    return world


def test_1_one_container():
    world = World(request_document("app"))
    assert world.passes() == []
    assert world.codes() == ["WaitingForNodeAgent"]
    world.report(phase="Recreating")
    assert world.status() == {"phase": "Recreating"}
    world.report(state("app", "Pending"), phase="Recreating")
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    world.stop("app")
    assert world.passes(1) == []
    assert world.codes() == ["WaitingForStart"]
    world.restart("app", "containerd://c3")
    assert world.passes(1) == ["request new containers"]
    seen = {"name": "app", "ready": True, "restartCount": 1, "containerID": "containerd://c3"}
    assert world.status()["containerStatusSnapshot"] == [seen]
    world.report(state("app", "Succeeded", killed=True), phase="Completed")
    status = world.status()
    assert (status["phase"], status.get("message", "")) == ("Completed", "")
    assert status["completionTime"] == stamp(world.now)
    assert states(world) == [("app", "Succeeded", True)]
    assert ACTIVE not in labels(world)
    assert len(labels(world)) == 2
    assert world.last.reasons == ()


def test_2_two_containers_pass_by_pass():
    world = taken_up("app", "side")
    seen = [states(world)]
    for app, side in (("Recreating", "Pending"), ("Recreating", "Recreating"), ("Succeeded", "Succeeded")):
        world.report(state("app", app, killed=True), state("side", side, killed=side != "Pending"), phase="Recreating")
        seen.append(states(world))
    assert seen == [
        [("app", "Pending", False), ("side", "Pending", False)],
        [("app", "Recreating", True), ("side", "Pending", False)],
        [("app", "Recreating", True), ("side", "Recreating", True)],
        [("app", "Succeeded", True), ("side", "Succeeded", True)],
    ]
    world.report(phase="Completed")
    assert world.status()["phase"] == "Completed"


def test_3_ordered_the_second_waits_and_says_so():
    world = taken_up("app", "side", strategy={"orderedRecreate": True})
    world.report(state("app", "Recreating", killed=True), state("side", "Pending"), phase="Recreating")
    assert world.codes() == ["WaitingForStart", "WaitingForStop"]


def test_4_a_slow_post_start_is_not_ready():
    world = taken_up("app")
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    world.restart("app", "containerd://c3", ready=False)
    world.passes(1)
    assert world.status()["containerStatusSnapshot"][0]["ready"] is False
    assert world.codes() == ["WaitingForReadiness"]
    world.restart("app", "containerd://c3")
    world.passes(10)
    assert world.status()["containerStatusSnapshot"][0]["ready"] is True


def test_5_min_started_seconds_are_the_agents_to_count():
    world = taken_up("app", strategy={"minStartedSeconds": 8})
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    world.restart("app", "containerd://c3")
    world.passes(1)
    assert world.codes() == ["WaitingForMinStarted"]
    assert world.last.wake_at is None


def test_6_restarted_by_the_kubelet_meanwhile():
    world = World(request_document("app"))
    world.restart("app", "containerd://c3")
    world.report(phase="Recreating")
    assert world.status()["containerStatusSnapshot"][0]["containerID"] == "containerd://c3"
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    world.report(state("app", "Succeeded", killed=True), phase="Completed")
    assert states(world) == [("app", "Succeeded", True)]


def test_7_with_force_it_goes_back_to_pending_before_the_kill():
    world = World(request_document("app", strategy={"forceRecreate": True}))
    world.report(state("app", "Recreating"), phase="Recreating")
    world.report(state("app", "Pending"), phase="Recreating")
    assert states(world) == [("app", "Pending", False)]
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    assert states(world) == [("app", "Recreating", True)]


def test_8_crash_loop_enters_the_snapshot_when_it_runs():
    world = World(request_document("app"))
    world.stop("app")
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    assert "containerStatusSnapshot" not in world.status()
    world.restart("app", "containerd://c9", restarts=4)
    world.passes(20)
    assert world.status()["containerStatusSnapshot"][0]["restartCount"] == 4


def test_9_never_ready_stays_until_the_deadline():
    world = taken_up("app", activeDeadlineSeconds=600)
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    world.restart("app", "containerd://c3", ready=False)
    world.passes(598)
    assert world.last.wake_at == START + timedelta(seconds=600)
    assert world.status()["phase"] == "Recreating"
    world.passes(2)
    assert (world.status()["phase"], world.status()["message"]) == ("Completed", DEADLINE)
    assert world.codes() == ["CompletedAbnormally", "NotRecreated"]
    without = taken_up("app")
    without.passes(1_000_000)
    assert (without.status()["phase"], without.last.wake_at) == ("Recreating", None)


def test_10_a_kill_that_ends_after_the_deadline():
    world = taken_up("app", "side", activeDeadlineSeconds=5)
    world.passes(5)
    assert (world.status()["phase"], world.status()["message"]) == ("Completed", DEADLINE)
    assert states(world) == [("app", "Failed", False), ("side", "Failed", False)]
    assert {one["message"] for one in world.status()["containerRecreateStates"]} == {DEADLINE}
    done = world.status()["completionTime"]
    world.context.clock.time += 15
    world.report(state("app", "Recreating", killed=True), state("side", "Pending"), phase="Recreating")
    assert states(world) == [("app", "Failed", True), ("side", "Failed", False)]
    world.report(state("app", "Succeeded", killed=True), state("side", "Pending"), phase="Completed")
    assert states(world) == [("app", "Failed", True), ("side", "Failed", False)]
    status = world.status()
    assert (status["phase"], status["completionTime"], status["message"]) == ("Completed", done, DEADLINE)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param([], [("app", "Failed", False), ("side", "Failed", False)], id="nothing reported yet"),
        pytest.param(
            [state("app", "Succeeded", killed=True), state("side", "Recreating", killed=True)],
            [("app", "Succeeded", True), ("side", "Failed", True)],
            id="one is not ready yet",
        ),
        pytest.param(
            [state("app", "Failed", "why"), state("side", "Pending")],
            [("app", "Failed", False), ("side", "Failed", False)],
            id="one failed",
        ),
    ],
)
def test_10_at_the_deadline_what_is_not_done_has_failed(told: list[RecreateState], expected: list[Any]):
    strategy = {"failurePolicy": "Ignore"}
    world = World(request_document("app", "side", strategy=strategy, activeDeadlineSeconds=30))
    world.report(*told, phase="Recreating" if told else "Pending")
    assert world.passes(30) == [f"request Completed: {DEADLINE}", "request release the request"]
    assert states(world) == expected
    assert world.passes(1) == []


def test_13_grace_with_the_gate():
    world = World(request_document("app", strategy={"unreadyGracePeriodSeconds": 3}))
    assert world.passes() == []
    world.report(phase="Recreating")
    assert world.log == ["request unready grace period", "pod unready grace period", "request Recreating"]
    assert world.request()["metadata"]["finalizers"] == [FINALIZER]
    assert (world.holders()["status"], world.holders()["message"]) == ("False", HELD)
    ready = next(one for one in world.pod["status"]["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
    (condition,) = world.status()["conditions"]
    assert condition == {
        "type": "PreRecreateGrace",
        "status": "True",
        "reason": "PreRecreateGrace",
        "message": "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
        "lastTransitionTime": stamp(START),
    }
    assert world.codes() == ["UnreadyGracePeriod"]
    assert world.passes(2) == []
    assert world.status()["conditions"] == [condition]
    world.report(state("app", "Succeeded", killed=True), phase="Completed")
    assert (world.holders()["status"], world.holders()["message"]) == ("True", "[]")
    assert "finalizers" not in world.request()["metadata"]
    assert ACTIVE not in labels(world)


def test_14_grace_without_the_gate():
    world = World(request_document("app", strategy={"unreadyGracePeriodSeconds": 0}), pod=pod_document(gated=False))
    world.report(phase="Recreating")
    assert world.log == ["request Recreating"]
    assert "finalizers" not in world.request()["metadata"]
    assert world.status()["conditions"][0]["status"] == "True"


def test_15_two_requests_at_once():
    grace = {"unreadyGracePeriodSeconds": 5}
    second = request_document("app", name="r2", strategy=grace)
    world = World(request_document("app", strategy=grace), second)
    world.report(phase="Recreating")
    world.report(phase="Pending", name="r2")
    assert world.status("r2") == {"phase": "Pending"}
    assert [reason.sentence for reason in world.last.reasons] == [
        "waiting: r to be done first: the agent works on one request of a pod at a time"
    ]
    assert world.holders()["message"] == HELD
    world.report(state("app", "Succeeded", killed=True), phase="Completed")
    assert world.holders()["message"] == "[]"
    world.report(phase="Recreating", name="r2")
    assert world.holders()["message"] == HELD.replace("ns/r", "ns/r2")


def test_16_only_the_own_entry_is_taken_back():
    other = '{"userAgent":"Lifecycle","key":"preUpdateHook"}'
    pod = pod_document()
    pod["status"]["conditions"][2] |= {"status": "False", "message": f"[{other}]"}
    world = World(request_document("app", strategy={"unreadyGracePeriodSeconds": 0}), pod=pod)
    world.report(phase="Recreating")
    assert world.holders()["message"] == f"{HELD[:-1]},{other}]"
    world.report(phase="Completed")
    assert (world.holders()["status"], world.holders()["message"]) == ("False", f"[{other}]")


@pytest.mark.parametrize("how", ["gone", "terminating"])
def test_17_the_pod_is_deleted(how: str):
    world = taken_up("app", "side", strategy={"unreadyGracePeriodSeconds": 0})
    if how == "gone":
        world.delete_pod()
    else:
        world.put(POD, merge(world.pod, {"metadata": {"deletionTimestamp": stamp(world.now)}}))
    world.passes(1)
    assert (world.status()["phase"], world.status()["message"]) == ("Completed", "pod has gone")
    assert states(world) == [("app", "Failed", False), ("side", "Failed", False)]
    assert "finalizers" not in world.request()["metadata"]
    assert ACTIVE not in labels(world)


def test_18_a_namesake_of_the_pod():
    world = taken_up("app", strategy={"unreadyGracePeriodSeconds": 0})
    world.delete_pod()
    world.put(POD, pod_document(uid="p2"))
    before = world.pod
    world.passes(1)
    assert world.status()["message"] == "pod has gone"
    assert world.pod is before  # the namesake is not touched


def test_19_nobody_answers():
    world = World(request_document("app"))
    world.passes(9)
    assert (world.last.reasons[0].sentence, world.last.wake_at) == (
        "waiting: the agent of node n has not taken the request up yet",
        START + timedelta(seconds=10),
    )
    world.passes(50)
    assert "no node agent has answered since 2026-03-01T08:00:00Z on 1 node: n" in world.last.reasons[0].message
    assert (world.status(), world.last.wake_at) == ({}, START + timedelta(seconds=60))
    world.passes(1)
    assert "no node agent answered on node n; see that it runs there" in world.last.reasons[0].message
    assert (world.status()["phase"], world.status()["message"]) == (
        "Completed",
        "daemon has not responded for a long time",
    )
    assert states(world) == []


def test_20_an_agent_that_died_is_waited_for():
    world = taken_up("app")
    world.passes(100_000)
    assert world.status()["phase"] == "Recreating"
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    assert states(world) == [("app", "Recreating", True)]


@pytest.mark.parametrize(
    ("policy", "side"), [pytest.param("Fail", "Pending", id="21"), pytest.param("Ignore", "Succeeded", id="22")]
)
def test_21_22_the_stop_fails(policy: str, side: str):
    world = taken_up("app", "side", strategy={"failurePolicy": policy})
    error = "kill container error: no such task"
    world.report(state("app", "Failed", error), state("side", side, killed=side != "Pending"), phase="Completed")
    assert states(world) == [("app", "Failed", False), ("side", side, side != "Pending")]
    assert world.status()["containerRecreateStates"][0]["message"] == error
    assert "message" not in world.status()
    assert world.last.reasons[0].message == f"container app was not recreated: it is Failed: {error}"


def test_21_none_stays_recreating_when_another_ones_failure_ends_the_request():
    world = taken_up("app", "side")
    world.report(state("app", "Recreating", killed=True), state("side", "Failed", "why"), phase="Completed")
    assert states(world) == [("app", "Failed", True), ("side", "Failed", False)]
    assert world.status()["containerRecreateStates"][0]["message"] == ENDED
    assert world.passes(1) == []


def test_23_deleted_while_it_holds_the_pod():
    world = World(request_document("app", strategy={"unreadyGracePeriodSeconds": 30}))
    world.report(phase="Recreating")
    world.delete_request()
    assert world.passes(1) == ["pod unready grace period is over", "request release the request"]
    assert world.holders()["message"] == "[]"
    assert world.requests.get("ns", "r") is None


@pytest.mark.parametrize(
    ("ttl", "after"),
    [pytest.param(0, 0, id="24"), pytest.param(-5, 0, id="negative counts as 0"), pytest.param(30, 30, id="later")],
)
def test_24_time_to_live(ttl: int, after: int):
    world = taken_up("app", ttlSecondsAfterFinished=ttl)
    world.log.clear()
    world.report(state("app", "Succeeded", killed=True), phase="Completed")
    if after:
        assert world.last.wake_at == world.now + timedelta(seconds=after)
        assert world.passes(after - 1) == []
        assert world.passes(1) == ["delete"]
    assert world.log == ["request Completed", "request release the request", "delete"]


def test_24_without_a_completion_time_the_age_counts():
    world = World(request_document("app", ttlSecondsAfterFinished=30) | {"status": {"phase": "Completed"}})
    assert world.passes(29) == ["request release the request"]
    assert world.last.wake_at == START + timedelta(seconds=30)
    assert world.passes(1) == ["delete"]


def test_25_restart_policy_never():
    world = taken_up("app", activeDeadlineSeconds=60)
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    world.stop("app")
    world.passes(30)
    assert world.codes() == ["WaitingForStart"]
    world.passes(30)
    assert (world.status()["message"], states(world)) == (DEADLINE, [("app", "Failed", True)])


def test_28_no_runtime():
    world = World(request_document("app"))
    message = "failed to find runtime service: containers of containerd and cri-o"
    world.report(phase="Completed", message=message)
    assert (world.status()["phase"], world.status()["message"]) == ("Completed", message)
    assert ACTIVE not in labels(world)


def test_what_a_kill_came_to_is_noted_even_while_the_request_is_being_deleted():
    world = taken_up("app")
    world.put(RECREATE_REQUEST, merge(world.request(), {"metadata": {"finalizers": ["example.com/mine"]}}))
    world.delete_request()
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    assert states(world) == [("app", "Recreating", True)]
    assert (world.codes(), ACTIVE in labels(world)) == (["Deleting"], True)


def test_a_pod_without_the_gate_is_said_to_stay_ready():
    world = World(request_document("app", strategy={"unreadyGracePeriodSeconds": 5}), pod=pod_document(gated=False))
    world.report(phase="Recreating")
    assert "it lacks the gate KruisePodReady" in world.last.reasons[0].message


def test_a_phase_that_is_none_of_ours_is_overruled():
    world = World(request_document("app") | {"status": {"phase": "Succeeded"}})
    world.report(state("app", "Pending"))
    assert world.status()["phase"] == "Succeeded"
    world.report(phase="Recreating")
    assert world.status()["phase"] == "Recreating"
