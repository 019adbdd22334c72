"""Reasons about a WorkloadSpread whose pods are not all where they should be."""

import pytest

from flotilla_common.control.plan import State
from tests.testkit.documents import Json
from tests.unit.workloadspread.build import at, book, planned, pod, spread, subset

PODS = [pod("p1", "a"), pod("p2", "a")]


@pytest.mark.parametrize(
    ("subsets", "pods", "replicas", "told"),
    [
        pytest.param(
            [subset("a", 1)],
            [pod("p1", "a"), pod("p2")],
            2,
            [
                "note SubsetFull: subset a has its 1 pod: others go to later subsets",
                "note PodsLeftOut: 1 pod left alone: no subset had room",
            ],
            id="left out",
        ),
        pytest.param([subset("a", 3), subset("b")], PODS, 2, [], id="room"),
        pytest.param([subset("a"), subset("b", 0)], PODS, 2, [], id="never used"),
        pytest.param(
            [subset("a", 2), subset("b")],
            PODS,
            2,
            ["note SubsetFull: subset a has its 2 pods: others go to later subsets"],
            id="full",
        ),
        pytest.param(
            [subset("a", "50%"), subset("b")],
            PODS,
            2,
            ["note SubsetOverfull: subset a has 1 pod more than its 1: deleted first"],
            id="overfull",
        ),
        pytest.param(
            [subset("a")],
            PODS,
            5,
            ["waiting WaitingForPods: CloneSet web has 2 of 5 pods"],
            id="its workload lacks pods",
        ),
        pytest.param(
            [subset("b")],
            PODS,
            2,
            ["note PodsWithoutSubset: 2 pods without a subset: deleted first"],
            id="their subset is gone",
        ),
        pytest.param(
            [subset("a", patch={"spec": {"containers": [{"image": "x"}]}})],
            PODS,
            2,
            [
                (
                    "stuck InvalidSubset: subset a: its patch cannot be applied, so its pods are rejected: "
                    "an element of a list that is merged by name has no name"
                )
            ],
            id="patch",
        ),
    ],
)
def test_reasons(subsets: list[Json], pods: list[Json], replicas: int, told: list[str]) -> None:
    made = planned(spread(*subsets, creationTimestamp=at(-120)), pods, replicas=replicas)
    assert [f"{one.state.value} {one.code}: {one.message}" for one in made.reasons] == told


def test_the_workload_is_named_to_those_who_ask_further() -> None:
    (reason,) = planned(spread(subset("a")), replicas=1).reasons
    assert (reason.state, reason.code, reason.objects) == (State.WAITING, "WaitingForPods", ("web",))


def test_the_last_pods_of_a_job_are_not_waited_for() -> None:
    document = spread(subset("a"))
    document["spec"]["targetRef"] = {"apiVersion": "batch/v1", "kind": "Job", "name": "web"}
    assert planned(document, PODS, replicas=5).reasons == ()


def test_a_subset_that_had_trouble_gets_no_pods_for_now() -> None:
    condition = {"type": "Schedulable", "status": "False", "reason": "PodUnschedulable"}
    closed = book("a", conditions=[condition | {"lastTransitionTime": "2026-11-26T11:59:00Z"}])
    document = spread(subset("a", 3), subset("b"), patience=20, status={"subsetStatuses": [closed]})
    (reason,) = planned(document, [pod("p", "b")], replicas=1).reasons
    assert reason.code == "SubsetUnschedulable"
    assert reason.message == "subset a gets no more pods for now: it had unschedulable pods"
