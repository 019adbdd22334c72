"""Texts of UnitedDeployments and WorkloadSpreads that the specification fixes word for word.

Events and conditions: a text that is changed in the code fails here. uniteddeployment.md §10 to §13; workloadspread.md
§9.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest

from flotilla_common.control.plan import Plan
from flotilla_topology.uniteddeployment.children import DEPLOYMENTS
from tests.unit.texts.told import conditions, events
from tests.unit.uniteddeployment import build as ud
from tests.unit.workloadspread import build as ws

MANAGED = "Warning FailedUpdateSubset: fail to manage Subset provision: ERR"


def leaving() -> Plan:
    """Plan after a subset has left the topology, and the other serves without it."""
    world = ud.World([{"name": "a", "replicas": 2}, {"name": "b"}], replicas=2)
    world.settle()
    del world.owner["spec"]["topology"]["subsets"][1]
    return world.plan()


def unchangeable() -> Plan:
    """Plan with a patch of a subset that cannot be applied to its existing child."""
    world = ud.World([{"name": "a"}], replicas=2)
    world.settle()
    world.owner["spec"]["topology"]["subsets"][0]["patch"] = {"spec": {"containers": [{"image": "no name"}]}}
    return world.plan()


def waiting(*, reserves: bool = False, after: float = 61) -> Plan:
    """Plan a pass this long after pods of subset `a` became unschedulable."""
    world = unschedulable(reserves=reserves)
    if after:
        world.step()  # marks the subset
        world.step()  # moves its pods
        world.run_pods()
    world.now += timedelta(seconds=after)
    return world.plan()


def unschedulable(*, reserves: bool) -> ud.World:
    """Return a world in which pods of subset `a` are unschedulable for too long."""
    adaptive = {"rescheduleCriticalSeconds": 15, "unschedulableDuration": 60, "reserveUnschedulablePods": reserves}
    world = ud.World([{"name": "a"}, {"name": "b"}], replicas=2)
    world.owner["spec"]["topology"]["scheduleStrategy"] = {"type": "Adaptive", "adaptive": adaptive}
    world.step()
    world.run_pods(broken=["a"])
    world.now += timedelta(seconds=16)
    return world


def joining() -> Plan:
    """Plan with a subset that joins one that reserves unschedulable pods."""
    world = unschedulable(reserves=True)
    world.step()
    world.owner["spec"]["topology"]["subsets"].append({"name": "c"})
    return world.plan()


def spread(entry: ws.Json, *pods: ws.Json) -> Plan:
    """Plan a pass of a WorkloadSpread whose subset `a` has a status."""
    stored = {"subsetStatuses": [ws.book("a", **entry)]}
    return ws.planned(ws.spread(ws.subset("a", 4), ws.subset("b"), patience=20, status=stored), pods)


def marked(since: float) -> ws.Json:
    """Return the status of an unschedulable subset."""
    condition = {"type": "Schedulable", "status": "False", "reason": "PodUnschedulable"}
    return {"conditions": [condition | {"lastTransitionTime": ws.at(since)}]}


EVENTS: list[tuple[str, Callable[[], Plan], list[str]]] = [
    (
        "uniteddeployment: create",
        lambda: ud.World([{"name": "a"}, {"name": "b"}]).plan(),
        ["Normal SuccessfulUpdateSubset: Create 2 Subset (CloneSet)", MANAGED],
    ),
    (
        "uniteddeployment: create Deployments",
        lambda: ud.World([{"name": "a"}], kind=DEPLOYMENTS).plan(),
        ["Normal SuccessfulUpdateSubset: Create 1 Subset (Deployment)", MANAGED],
    ),
    ("uniteddeployment: delete", leaving, ["Normal SuccessfulUpdateSubset: Delete 1 Subset (CloneSet)", MANAGED]),
    (
        "uniteddeployment: numbers that contradict each other",
        lambda: ud.World([{"name": "a", "replicas": 9}], replicas=8).plan(),
        [
            (
                "Warning Failed SpecifySubsetReplicas: Specified subset replicas is ineffective: "
                "specified subsets' replica (9) is greater than UnitedDeployment replica (8)"
            )
        ],
    ),
    (
        "uniteddeployment: a patch that cannot be applied",
        unchangeable,
        [
            (
                "Warning FailedUpdateSubset: Error updating PodSet (CloneSet) a when updating: "
                "patch: an element of a list that is merged by name has no name"
            )
        ],
    ),
    (
        "workloadspread: places",
        lambda: spread({"creatingPods": {"p9": ws.at(-31)}, "deletingPods": {"p1": ws.at(-16)}}, ws.pod("p1", "a")),
        [
            "Warning CreatePodFailed: Pod ns/p9 was expected to be created but it wasn't",
            "Warning DeletePodFailed: Pod ns/p1 was expected to be deleted but it wasn't",
            (
                "Warning PatchPodDeletionCostFailed: WorkloadSpread ns/ws failed to patch deletion-cost annotation "
                "to 200 for Pod ns/p1 in subset a: ERR"
            ),
        ],
    ),
    (
        "workloadspread: no subset",
        lambda: spread({}, ws.pod("p1", node="")),
        [
            (
                "Warning PatchPodDeletionCostFailed: WorkloadSpread ns/ws failed to patch deletion-cost annotation "
                "to -300 for Pod ns/p1 in subset kruise.io/workloadspread-fake-subset-name: ERR"
            )
        ],
    ),
    (
        "workloadspread: finds no node",
        lambda: spread(marked(-5), ws.pod("p1", "a", stuck=25, annotations={ws.COST: "200"})),
        ["Warning DeletePodFailed: Failed to delete unschedulabe Pod ns/p1 in Subset a of WorkloadSpread ns/ws: ERR"],
    ),
    (
        "workloadspread: is tried again",
        lambda: spread(marked(-301)),
        ["Normal RecoverSchedulable: Subset a of WorkloadSpread ns/ws is recovered from unschedulable to schedulable"],
    ),
]


@pytest.mark.parametrize(("plan", "expected"), [pytest.param(plan, rows, id=name) for name, plan, rows in EVENTS])
def test_events(plan: Callable[[], Plan], expected: list[str]) -> None:
    assert events(plan()) == set(expected)


CONDITIONS: list[tuple[str, Callable[[], Plan], str, str]] = [
    ("no node", lambda: waiting(after=0), "a", "False reschedule: timeout pending pods found"),
    ("again", waiting, "a", "True recover: unschedulable subset recovered after 60.000000 seconds"),
    ("reserved", lambda: waiting(reserves=True, after=0), "a", "False reschedule: reserved pods found"),
    ("none reserved", lambda: waiting(reserves=True, after=0), "b", "True reschedule: no reserved pods"),
    ("joins", joining, "c", "False created: newly-created subsets in reservation strategy"),
]


@pytest.mark.parametrize(
    ("plan", "subset", "expected"),
    [pytest.param(plan, subset, text, id=name) for name, plan, subset, text in CONDITIONS],
)
def test_conditions_of_subsets(plan: Callable[[], Plan], subset: str, expected: str) -> None:
    status = plan().status
    assert status is not None
    (entry,) = (one for one in status.body["status"]["subsetStatuses"] if one["name"] == subset)
    (condition,) = entry["conditions"]
    assert "{status} {reason}: {message}".format(**condition) == expected


def test_conditions_of_united_deployments() -> None:
    world = ud.World([{"name": "a"}], replicas=1)
    begun = conditions(world.step(), "UnitedDeployment")
    revision = world.revisions[0]["metadata"]["name"]
    assert begun == {
        f"UnitedDeploymentUpdated True UnitedDeploymentRevisionUpdated: updated to revision {revision}",
        "SubsetProvisioned True: ",
        "SubsetUpdated True: ",
    }
    world.settle()
    world.owner["spec"]["template"] = {world.kind.template: ud.template("nginx:2")}
    told = conditions(world.step(), "UnitedDeployment")
    newest = world.revisions[-1]["metadata"]["name"]
    assert f"UnitedDeploymentUpdated False UnitedDeploymentRevisionUpdating: updating to revision {newest}" in told
