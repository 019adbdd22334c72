"""The state of workloads of all kinds, by their status."""

from typing import Any

import pytest

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, JOB, Resource
from flotilla_console.model.kinds import KINDS
from flotilla_console.model.kinds.sets import BUILT_IN_DAEMON_SET
from tests.testkit.tables import cases
from tests.unit.console.model.worlds import World, template


def _kind(name: str) -> Resource:
    return catalogue.called(name).resource


_DONE = {"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3}
_NODES = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 3,
    "currentNumberScheduled": 3,
    "numberReady": 3,
    "updatedNumberScheduled": 3,
}
_PAUSED = {"updateStrategy": {"rollingUpdate": {"paused": True}}}


def _kept(partition: object) -> dict[str, Any]:
    return {"updateStrategy": {"rollingUpdate": {"partition": partition}}}


def _condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}


@pytest.mark.parametrize(
    ("resource", "spec", "status", "state", "code"),
    cases(
        {
            "CloneSet": (CLONE_SET, {}, _DONE, "fine", ""),
            "scaling up": (CLONE_SET, {}, _DONE | {"replicas": 2}, "busy", "ScalingUp"),
            "scaling down": (CLONE_SET, {}, _DONE | {"replicas": 4}, "busy", "ScalingDown"),
            "unready": (CLONE_SET, {}, _DONE | {"readyReplicas": 2}, "busy", "WaitingForAvailability"),
            "updating": (CLONE_SET, {}, _DONE | {"updatedReplicas": 1}, "busy", "Updating"),
            "partition": (CLONE_SET, _kept(2), _DONE | {"updatedReplicas": 1}, "held", "PartitionReached"),
            "partition in percent": (
                CLONE_SET,
                _kept("66%"),
                _DONE | {"updatedReplicas": 1},
                "held",
                "PartitionReached",
            ),
            "invalid partition": (CLONE_SET, _kept("x"), _DONE | {"updatedReplicas": 1}, "busy", "Updating"),
            "paused": (CLONE_SET, _PAUSED, _DONE | {"updatedReplicas": 1}, "held", "PausedByUser"),
            "paused at rest": (CLONE_SET, _PAUSED, _DONE, "fine", ""),
            "unobserved": (CLONE_SET, {}, _DONE | {"observedGeneration": 0}, "busy", "NotPlanned"),
            "OnDelete": (
                _kind("statefulset"),
                {"updateStrategy": {"type": "OnDelete"}},
                _DONE | {"updatedReplicas": 1},
                "held",
                "OnDelete",
            ),
            "StatefulSet of Kubernetes": (BUILT_IN_STATEFUL_SET, {}, _DONE, "fine", ""),
            "Deployment": (DEPLOYMENT, {}, _DONE, "fine", ""),
            "Deployment that is too slow": (
                DEPLOYMENT,
                {},
                _DONE | _condition("Progressing", "False", "ProgressDeadlineExceeded"),
                "blocked",
                "ProgressDeadlineExceeded",
            ),
            "Deployment without pods": (
                DEPLOYMENT,
                {},
                _DONE | _condition("ReplicaFailure", reason="FailedCreate", message="quota"),
                "blocked",
                "FailedCreate",
            ),
            "DaemonSet": (_kind("daemonset"), {}, _NODES, "fine", ""),
            "DaemonSet that updates": (
                _kind("daemonset"),
                {},
                _NODES | {"updatedNumberScheduled": 1},
                "busy",
                "Updating",
            ),
            "DaemonSet of Kubernetes": (
                BUILT_IN_DAEMON_SET,
                {},
                _NODES | {"numberReady": 1},
                "busy",
                "WaitingForAvailability",
            ),
            "UnitedDeployment": (_kind("uniteddeployment"), {}, _DONE, "fine", ""),
            "UnitedDeployment with partitions": (
                _kind("uniteddeployment"),
                {},
                _DONE | {"updatedReplicas": 1, "subsetStatuses": [{"name": "a", "partition": 2}]},
                "held",
                "PartitionReached",
            ),
            "Job": (JOB, {"completions": 2}, {"active": 1, "succeeded": 1}, "busy", "WaitingForAvailability"),
            "Job that is done": (JOB, {}, {"succeeded": 1} | _condition("Complete"), "fine", "Completed"),
            "Job that failed": (
                JOB,
                {},
                {"failed": 1} | _condition("Failed", reason="BackoffLimitExceeded"),
                "blocked",
                "BackoffLimitExceeded",
            ),
            "suspended Job": (JOB, {"suspend": True}, {}, "held", "PausedByUser"),
            "BroadcastJob": (
                _kind("broadcastjob"),
                {},
                {"desired": 3, "active": 1, "succeeded": 1},
                "busy",
                "ScalingUp",
            ),
            "BroadcastJob that failed": (_kind("broadcastjob"), {}, _condition("Failed", reason="x"), "blocked", "x"),
            "BroadcastJob that is done": (_kind("broadcastjob"), {}, _condition("Complete"), "fine", "Completed"),
            "AdvancedCronJob": (_kind("advancedcronjob"), {"schedule": "* * * * *"}, {}, "fine", ""),
            "AdvancedCronJob at work": (_kind("advancedcronjob"), {}, {"active": [{"name": "a"}]}, "busy", "Running"),
            "ImagePullJob": (_kind("imagepulljob"), {}, {"desired": 2, "active": 2}, "busy", "WaitingForAvailability"),
            "ImagePullJob that failed": (
                _kind("imagepulljob"),
                {},
                {"desired": 2, "failed": 1, "failedNodes": ["a"]},
                "blocked",
                "FailedOnNodes",
            ),
            "ImageListPullJob": (_kind("imagelistpulljob"), {}, {"completionTime": "now"}, "fine", "Completed"),
            "EphemeralJob": (
                _kind("ephemeraljob"),
                {},
                {"match": 2, "succeeded": 1, "running": 1},
                "busy",
                "WaitingForAvailability",
            ),
            "ContainerRecreateRequest": (
                _kind("containerrecreaterequest"),
                {"containers": [{"name": "a"}]},
                {"containerRecreateStates": [{"name": "a", "phase": "Failed"}]},
                "blocked",
                "Failed",
            ),
            "WorkloadSpread": (_kind("workloadspread"), {}, {"observedGeneration": 1}, "fine", ""),
            "PodUnavailableBudget": (
                _kind("podunavailablebudget"),
                {},
                {"observedGeneration": 1, "desiredAvailable": 2, "currentAvailable": 3, "totalReplicas": 3},
                "fine",
                "",
            ),
        }
    ),
)
def test_state(resource: Resource, spec: Any, status: Any, state: str, code: str) -> None:
    world = World()
    world.put(resource, "web", spec={"replicas": 3} | spec, status=status)
    verdict = world.workload(resource, "web").verdict
    assert (verdict.state, verdict.code) == (state, code)


@pytest.mark.parametrize(
    ("resource", "status", "state"),
    cases(
        {
            "updating": ("sidecarset", {"matchedPods": 3, "updatedPods": 1, "readyPods": 3}, "busy"),
            "updated": ("sidecarset", {"matchedPods": 3, "updatedPods": 3, "readyPods": 3}, "fine"),
            "failed": ("resourcedistribution", {"desired": 3, "succeeded": 1, "failed": 2}, "blocked"),
            "distributed": ("resourcedistribution", {"desired": 3, "succeeded": 3}, "fine"),
        }
    ),
)
def test_state_of_cluster_scoped_kinds(resource: str, status: Any, state: str) -> None:
    world = World()
    world.put(_kind(resource), "logs", "", status={"observedGeneration": 1} | status)
    assert world.workload(_kind(resource), "logs", "").verdict.state == state


def test_all_kinds_that_users_create_have_a_page() -> None:
    wanted = {(kind.resource.group, kind.resource.plural) for kind in catalogue.KINDS if not kind.made_by_us}
    assert wanted <= KINDS.keys()


@pytest.mark.parametrize(
    ("reasons", "record", "state", "code"),
    cases(
        {
            "stuck before waiting": (
                [
                    {"state": "waiting", "code": "Updating", "message": "a"},
                    {"state": "stuck", "code": "ErrImagePull", "message": "b"},
                ],
                {},
                "blocked",
                "ErrImagePull",
            ),
            "causes before symptoms": (
                [
                    {"state": "stuck", "code": "WaitingForMaxUnavailable", "message": "a", "symptom": True},
                    {"state": "stuck", "code": "ErrImagePull", "message": "b"},
                ],
                {},
                "blocked",
                "ErrImagePull",
            ),
            "held": ([{"state": "held", "code": "PartitionReached", "message": "a"}], {}, "held", "PartitionReached"),
            "done": ([{"state": "done", "code": "Complete", "message": "a"}], {}, "fine", "Complete"),
            "an impossible decision": (
                [],
                {"errors": [{"phase": "InvalidSpec", "message": "x"}]},
                "blocked",
                "InvalidSpec",
            ),
            "of an earlier object": ([{"state": "stuck", "code": "A", "message": "a"}], {"uid": "other"}, "fine", ""),
            "of an earlier generation": (
                [{"state": "stuck", "code": "A", "message": "a"}],
                {"generation": 0},
                "fine",
                "",
            ),
            "in another form": ([{"code": "A"}], {}, "fine", ""),
            "none": ([], {}, "fine", ""),
        }
    ),
)
def test_reasons_decide_the_state(reasons: Any, record: Any, state: str, code: str) -> None:
    world = World()
    world.clone_set()
    world.explain(CLONE_SET, "web", *reasons, **record)
    verdict = world.workload(CLONE_SET, "web").verdict
    assert (verdict.state, verdict.code) == (state, code)


def test_images_of_templates() -> None:
    world = World()
    united = _kind("uniteddeployment")
    subset = {"cloneSetTemplate": {"spec": {"template": template("nginx:2")}}}
    world.put(united, "web", spec={"template": subset})
    assert world.workload(united, "web").reading.images == ("nginx:2",)
