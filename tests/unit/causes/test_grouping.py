"""Pods with the same cause become one sentence, and planners give it as a reason."""

import msgspec

from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.workload.causes import LOOKED_AT, Cause, explain_pods, grouped, root_cause
from tests.unit.causes.build import NOW, around, ended, pod, running, waiting

IMAGE = Cause(code="ErrImagePull", message="no image")
SLOW = Cause(code="Starting", message="is being created", stuck=False)


def crash(detail: str) -> Cause:
    return Cause(code="CrashLoopBackOff", message="crashes", detail=detail)


def test_what_somebody_has_to_act_on_comes_first_then_what_most_have() -> None:
    found = [("a", SLOW), ("b", SLOW), ("c", SLOW), ("d", IMAGE), ("e", crash("1 restart")), ("f", crash("2 restarts"))]
    assert [group.sentence for group in grouped(found)] == [
        "e, f: crashes (e: 1 restart)",
        "d: no image",
        "a, b, c: is being created",
    ]


def test_many_pods_are_named_up_to_a_limit() -> None:
    [group] = grouped((f"web-{number}", IMAGE) for number in range(8))
    assert group.sentence == "web-0, web-1, web-2, web-3, web-4 and 3 more: no image"


def test_a_reason_carries_code_and_pods_and_replaces_what_says_less() -> None:
    builder = PlanBuilder()
    builder.reason(State.WAITING, "WaitingForMaxUnavailable", "web-1", ["web-1"])
    builder.reason(State.WAITING, "StartError", "web-1", ["web-1"])
    groups = explain_pods(builder, [pod(waiting("RunContainerError", "exec: no"))], around())
    assert [(one.code, one.objects) for one in builder.reasons] == [
        ("WaitingForMaxUnavailable", ("web-1",)),
        ("StartError", ("web-1",)),
    ]
    assert builder.reasons[1].message == "web-1: container app cannot be started: exec: no"
    assert root_cause(groups, {}) == builder.reasons[1].message
    assert root_cause(groups, {"scale": "exceeded quota"}) == "exceeded quota"


def test_what_is_under_way_is_no_root_cause_of_a_rollout_that_takes_too_long() -> None:
    groups = explain_pods(PlanBuilder(), [pod(running())], around())
    assert groups
    assert root_cause(groups, {}) == ""


def test_only_the_first_pods_are_looked_at() -> None:
    looked: list[int] = []

    def pods():
        for number in range(10_000):
            looked.append(number)
            yield pod(running())

    explain_pods(PlanBuilder(), pods(), around())
    assert len(looked) == LOOKED_AT


def test_the_sentence_of_a_service_stays_the_same_while_time_goes_on() -> None:
    """Or each pass would publish another why.v1."""
    crashing = pod(waiting("CrashLoopBackOff", "back-off 40s", restarts=3, last=ended(1)))
    drafts = [PlanBuilder(), PlanBuilder()]
    for builder, later in zip(drafts, (0, 60), strict=True):
        known = msgspec.structs.replace(around(), now=NOW.replace(minute=later // 60))
        explain_pods(builder, [crashing], known)
    assert drafts[0].reasons == drafts[1].reasons != []
