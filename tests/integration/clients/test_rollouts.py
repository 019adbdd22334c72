"""A rollout controller works with our sets: batches, blue-green, and interruptions of them."""

import json
from pathlib import Path

import pytest

from tests.support.kubectl_kruise import KubectlKruise
from tests.support.rest import Rest
from tests.support.rollout_controller import BATCH, CONTROL, GROUP, NEVER_AVAILABLE, RolloutController, holding_webhook
from tests.support.workspace import Workspace, image, is_ready
from tests.testkit.documents import Json

OLD, NEW, NEWER = "nginx:alpine", "nginx:mainline", "nginx:stable"
REPLICAS = {"CloneSet": 5, "StatefulSet": 5, "DaemonSet": 3}
CASES = [
    pytest.param(kind, user, controller, id=f"{kind} written in {user}, released in {controller}")
    for kind, user, controller in (
        ("CloneSet", "v1beta1", "v1alpha1"),
        ("CloneSet", "v1alpha1", "v1beta1"),
        ("StatefulSet", "v1beta1", "v1alpha1"),
        ("DaemonSet", "v1alpha1", "v1beta1"),
    )
]
"""CloneSets differ between the versions where rollouts look; others are the same in both."""


def manifest(kind: str, version: str, tag: str = OLD, *, policy: str = "InPlaceIfPossible", name: str = "web") -> Json:
    """Return a set whose pods may all be unavailable at once."""
    policies = {"DaemonSet": "rollingUpdateType", "StatefulSet": "podUpdatePolicy", "CloneSet": "podUpdatePolicy"}
    rolling: Json = {policies[kind]: policy, "maxUnavailable": "100%"}
    if (kind, version) == ("CloneSet", "v1alpha1"):
        strategy: Json = {"type": policy, "maxUnavailable": "100%"}
    else:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    pod: Json = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": tag}]}
    spec: Json = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        "updateStrategy": strategy,
    }
    if kind == "StatefulSet":
        pod["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
        spec |= {"serviceName": "web", "podManagementPolicy": "Parallel"}
    if kind != "DaemonSet":
        spec["replicas"] = REPLICAS[kind]
    return {"apiVersion": f"apps.kruise.io/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def released(space: Workspace, tags: dict[str, int]) -> None:
    """Wait until this many ready pods have each image."""

    def reached() -> bool:
        pods = [pod for pod in space.pods.values() if is_ready(pod)]
        return {tag: sum(image(pod) == tag for pod in pods) for tag in tags} == tags

    space.until(reached)


@pytest.mark.parametrize(("kind", "user", "controller"), CASES)
def test_batches(space: Workspace, rest: Rest, tmp_path: Path, kind: str, user: str, controller: str) -> None:
    """A new template is held back by the webhook in the same request, released in three batches, and handed back."""
    replicas = REPLICAS[kind]
    rollout = RolloutController(rest, space.name, kind, controller)
    space.apply(manifest(kind, user))
    released(space, {OLD: replicas})
    names = set(space.pods)
    stable = rollout.update_hash(rollout.wait(lambda it: rollout.updated(it) == replicas))
    with holding_webhook(rest, space.name, tmp_path) as held:
        space.apply(manifest(kind, user, NEW))
        assert len(held) == 1
        canary = rollout.update_hash(rollout.wait(lambda it: rollout.update_hash(it) != stable))
        rollout.take_over()
        workload = rollout.wait(lambda it: rollout.updated(it) == 0)
        assert workload["metadata"]["annotations"][CONTROL]
        rollout.batch(1, replicas - 1, 1)
        released(space, {OLD: replicas - 1, NEW: 1})
        serving(space, kind, {stable: replicas - 1, canary: 1})
        # Of five pods 50 % may stay old, rounded up; a StatefulSet takes no percentages.
        rollout.batch(2, 3 if kind == "StatefulSet" else "50%", 2)
        rollout.batch(3, 0 if kind == "StatefulSet" else "0%", replicas)
        rollout.finish()
        workload = rollout.wait(lambda it: rollout.updated(it) == replicas)
        assert len(held) == 1  # nothing but the user's write has changed the template
    assert CONTROL not in workload["metadata"].get("annotations", {})
    assert rollout.partition(workload) == 0
    released(space, {NEW: replicas})
    assert set(space.pods) == names  # updated in place
    batches = sorted(pod["metadata"]["labels"][BATCH] for pod in space.pods.values())
    assert batches == ["1", "2", "3", "3", "3"][:replicas]


def serving(space: Workspace, kind: str, expected: dict[str, int]) -> None:
    """Check that a stable and a canary Service find the ready pods of their revision, by the status's hash."""
    for revision in expected:
        # Pods of a StatefulSet have the whole name of the revision.
        label = {"CloneSet": "pod-template-hash"}.get(kind, "controller-revision-hash")
        value = f"web-{revision}" if kind == "StatefulSet" else revision
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"web-{revision}"},
            "spec": {"selector": {label: value}, "ports": [{"port": 80}]},
        }
        space.kubectl("apply", "-f", "-", stdin=json.dumps(service))

    def found() -> dict[str, int]:
        return {revision: len(endpoints(space, f"web-{revision}")) for revision in expected}

    space.until(lambda: found() == expected)


def endpoints(space: Workspace, service: str) -> list[Json]:
    """Return the ready endpoints of a Service."""
    slices = space.read("endpointslices", "-l", f"kubernetes.io/service-name={service}")["items"]
    return [one for part in slices for one in part.get("endpoints") or () if one["conditions"].get("ready")]


def test_blue_green_by_surge(space: Workspace, rest: Rest) -> None:
    """New pods get ready beside the old ones and never available, until the rollout is promoted."""
    rollout = RolloutController(rest, space.name, "CloneSet", "v1beta1")
    space.apply(manifest("CloneSet", "v1beta1", policy="ReCreate"))
    released(space, {OLD: 5})
    blue = set(space.pods)
    beside = rollout.strategy(maxUnavailable=0, maxSurge="40%", partition="100%", paused=False)
    rollout.patch(merged(beside, {"spec": {"minReadySeconds": NEVER_AVAILABLE}}))
    rollout.wait(lambda it: it["status"]["availableReplicas"] == 0)  # nor are the old ones from now on
    space.set_image(NEW, "web")
    rollout.patch(rollout.strategy(partition=None))
    rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == 2)
    released(space, {OLD: 5, NEW: 2})
    rollout.patch(rollout.strategy(maxSurge="100%"))
    workload = rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == 5)
    assert blue < set(space.pods)
    assert (workload["status"]["replicas"], workload["status"]["readyReplicas"]) == (10, 10)
    assert workload["status"]["availableReplicas"] == 0
    assert workload["status"]["currentRevision"] != workload["status"]["updateRevision"]
    rollout.patch(merged(rollout.strategy(maxUnavailable="20%", maxSurge=0), {"spec": {"minReadySeconds": 0}}))
    rollout.wait(lambda it: it["status"]["updatedAvailableReplicas"] == it["status"]["replicas"] == 5)
    released(space, {OLD: 0, NEW: 5})
    assert blue.isdisjoint(space.pods)


def test_blue_green_taken_back(space: Workspace, rest: Rest) -> None:
    """The old template again: what was made for the new one goes, and no old pod has been touched."""
    rollout = RolloutController(rest, space.name, "CloneSet", "v1alpha1")
    space.apply(manifest("CloneSet", "v1beta1", policy="ReCreate"))
    released(space, {OLD: 5})
    blue = {name: pod["metadata"]["uid"] for name, pod in space.pods.items()}
    beside = rollout.strategy(maxUnavailable=0, maxSurge="100%")
    rollout.patch(merged(beside, {"spec": {"minReadySeconds": NEVER_AVAILABLE}}))
    space.set_image(NEW, "web")
    rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == 5)
    space.set_image(OLD, "web")
    rollout.wait(lambda it: it["status"]["replicas"] == it["status"]["updatedReadyReplicas"] == 5)
    space.until(lambda: {name: pod["metadata"]["uid"] for name, pod in space.pods.items()} == blue)


def test_blue_green_by_a_second_set(space: Workspace) -> None:
    """Two sets match one Service, distinguished by one more label that the Service switches to."""
    for name, tag in (("blue", OLD), ("green", NEW)):
        one = manifest("CloneSet", "v1beta1", tag, name=name)
        one["spec"]["selector"]["matchLabels"] = {"app": "web", "color": name}
        one["spec"]["template"]["metadata"]["labels"] = {"app": "web", "color": name}
        space.apply(one)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    ports = [{"port": 80}]
    for color, tag in (("blue", OLD), ("green", NEW)):
        spec = {"selector": {"app": "web", "color": color}, "ports": ports}
        space.kubectl("apply", "-f", "-", stdin=json.dumps(service | {"spec": spec}))
        space.until(lambda: len(endpoints(space, "web")) == 5)
        served = {one["targetRef"]["name"] for one in endpoints(space, "web")}
        space.until(lambda served=served, tag=tag: {image(space.pod(name)) for name in served} == {tag})
    space.kubectl("scale", "clone/blue", "--replicas=0")
    space.until(lambda: len(space.pods) == 5)
    assert len(endpoints(space, "web")) == 5


def test_batches_that_somebody_approves(space: Workspace, rest: Rest) -> None:
    """`kubectl-kruise rollout approve` lets the controller continue, and `describe rollout` shows its progress."""
    version = "v1alpha1"
    rollout, tool = RolloutController(rest, space.name, "CloneSet", version), KubectlKruise(rest, space.name, version)
    space.apply(manifest("CloneSet", version))
    released(space, {OLD: 5})
    target = {"apiVersion": f"apps.kruise.io/{version}", "kind": "CloneSet", "name": "web"}
    document = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Rollout", "metadata": {"name": "web"}}
    space.kubectl("apply", "-f", "-", stdin=json.dumps(document | {"spec": {"workloadRef": target}}))
    old = rollout.update_hash(rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == 5))
    rollout.take_over()
    space.set_image(NEW, "web")
    new = rollout.update_hash(rollout.batch(1, "80%", 1))
    rollout.wait_for_approval(1, lambda: tool.approve("web"))
    rollout.batch(2, "40%", 3)
    released(space, {OLD: 2, NEW: 3})
    rollout.wait_for_approval(2, lambda: tool.approve("web"))
    step, *pods = tool.describe_rollout("web")
    assert step == "Step: 2 StepReady"
    assert sorted(pods) == sorted([f"{new} 1 Running", *[f"{new} 2 Running"] * 2, *[f"{old} - Running"] * 2])
    rollout.finish()
    rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == 5)


def test_what_comes_in_between(space: Workspace, rest: Rest) -> None:
    """A pause, a scaling, a third template and the first one again, all in the middle of a rollout."""
    rollout = RolloutController(rest, space.name, "CloneSet", "v1alpha1")
    space.apply(manifest("CloneSet", "v1beta1"))
    released(space, {OLD: 5})
    names = set(space.pods)
    rollout.patch(rollout.strategy(partition="60%"))
    space.set_image(NEW, "web")
    rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == 2)
    rollout.patch(rollout.strategy(paused=True, partition=0))
    paused = rollout.wait(lambda _: True)
    assert paused["status"]["expectedUpdatedReplicas"] == 5
    rollout.patch({"spec": {"replicas": 10}})
    rollout.wait(lambda it: it["status"]["readyReplicas"] == 10)
    assert sum(image(space.pod(name)) == NEW for name in names) == 2  # no pod is updated meanwhile
    rollout.patch(rollout.strategy(paused=False, partition="70%"))
    rollout.patch({"spec": {"replicas": 5}})
    rollout.wait(lambda it: it["status"]["replicas"] == it["status"]["readyReplicas"] == 5)
    rollout.patch(rollout.strategy(partition="60%"))
    space.set_image(NEWER, "web")
    rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == 2)
    first = rollout.read()["status"]["currentRevision"]
    space.set_image(OLD, "web")
    rollout.patch(rollout.strategy(partition=None))
    back = rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == it["status"]["replicas"] == 5)
    assert back["status"]["updateRevision"] == back["status"]["currentRevision"] == first
    released(space, {OLD: 5})


def test_a_watch_in_the_old_version_sees_every_state(space: Workspace, rest: Rest) -> None:
    """A client that caches in v1alpha1, while the set is written in v1beta1: all versions in order, all complete."""
    space.apply(manifest("CloneSet", "v1beta1"))
    rollout = RolloutController(rest, space.name, "CloneSet", "v1alpha1")
    start = rollout.wait(lambda it: it["status"]["updatedReadyReplicas"] == 5)["metadata"]["resourceVersion"]
    space.set_image(NEW, "web")
    RolloutController(rest, space.name, "CloneSet", "v1beta1").wait(
        lambda it: it["status"]["updatedReadyReplicas"] == 5
    )
    final = rollout.read()
    seen: list[Json] = []
    for one in rest.watch(f"{rollout.collection}?watch=true&timeoutSeconds=20&resourceVersion={start}"):
        seen.append(one)
        if one["metadata"]["resourceVersion"] == final["metadata"]["resourceVersion"]:
            break
    assert seen[-1] == final
    versions = [int(one["metadata"]["resourceVersion"]) for one in seen]
    assert versions == sorted(set(versions))
    assert {one["apiVersion"] for one in seen} == {"apps.kruise.io/v1alpha1"}
    counts = {"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas"}
    assert all(counts <= one["status"].keys() for one in seen)  # with their zeros
    old = final["status"]["updateRevision"]
    for one in seen:
        status = one["status"]
        done = status["observedGeneration"] == one["metadata"]["generation"] and status["updatedReadyReplicas"] == 5
        assert not done or status["updateRevision"] == old


def merged(one: Json, other: Json) -> Json:
    """Return both patches as one."""
    return {"spec": one["spec"] | other["spec"]}
