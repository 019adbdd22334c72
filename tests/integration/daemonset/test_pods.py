"""Pods that a DaemonSet creates and adopts (daemonset.md §4.4 to §4.7)."""

import re

from tests.support.daemons import IN_PLACE, NAME, daemonset, settled, started
from tests.support.workspace import Workspace, identity, revision_of
from tests.testkit.documents import Json
from tests.testkit.manifests import manifest

TOLERATED = {
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
}


def owner(pod: Json) -> str:
    """Return the uid of the pod's controller; empty without one."""
    references = pod["metadata"].get("ownerReferences", [])
    return next((one["uid"] for one in references if one.get("controller")), "")


def test_every_node_gets_a_pod_and_a_set_that_is_made_again_takes_them_in(space: Workspace):
    """`kubectl delete --cascade=orphan`, and apply: no pod is touched, and the history continues."""
    made = started(space, 3, IN_PLACE)
    status = settled(space, 3, numberAvailable=3)
    revision = status["updateRevision"]
    assert status == {
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 3,
        "numberReady": 3,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
        "observedGeneration": 1,
        "updateRevision": revision,
    }
    assert space.revisions(NAME) == {f"{NAME}-{revision}": 1}
    for node, pod in made.items():
        meta, spec = pod["metadata"], pod["spec"]
        assert re.fullmatch(f"{NAME}-[a-z0-9]{{5}}", meta["name"])
        assert meta["generateName"] == f"{NAME}-"
        assert meta["labels"]["controller-revision-hash"] == revision
        (reference,) = meta["ownerReferences"]
        assert {key: reference[key] for key in ("apiVersion", "kind", "name", "controller", "blockOwnerDeletion")} == {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "DaemonSet",
            "name": NAME,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        demanded = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        assert demanded == {"nodeSelectorTerms": [{"matchFields": [field]}]}
        assert {(one["key"], one["effect"]) for one in spec["tolerations"]} >= TOLERATED
        assert {one["conditionType"] for one in spec["readinessGates"]} == {"InPlaceUpdateReady", "KruisePodReady"}
        space.event("SuccessfulCreate", f"Created pod: {meta['name']}")
    header, row = (line.split() for line in space.kubectl("get", "ads").splitlines())
    assert header == ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:-1] == [NAME, "3", "3", "3", "3", "3"]

    before, revisions = {identity(pod) for pod in space.pods.values()}, space.revisions(NAME)
    space.kubectl("delete", "ads", NAME, "--cascade=orphan")
    space.until(lambda: space.clone(NAME) == {} and not any(map(owner, space.pods.values())))
    again = space.apply(daemonset(IN_PLACE))
    settled(space, 3, updatedNumberScheduled=3)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {owner(pod) for pod in space.pods.values()} == {again["metadata"]["uid"]}
    assert space.revisions(NAME) == revisions


def test_a_built_in_daemonset_moves_by_its_api_version_alone(space: Workspace):
    """All fields of apps/v1, and what the apiserver fills in there, mean the same."""
    space.kubectl("apply", "-f", "-", stdin=BUILT_IN)
    before = space.read("daemonset.apps", "node-exporter")
    space.kubectl("delete", "daemonset.apps", "node-exporter", "--cascade=orphan")
    space.until(lambda: len(space.pods) == 3 and not any(map(owner, space.pods.values())))
    names = set(space.pods)
    made = space.apply(BUILT_IN.replace("apps/v1", "apps.kruise.io/v1beta1"))
    space.settled("node-exporter", desiredNumberScheduled=3, numberReady=3, numberAvailable=3, updatedNumberScheduled=3)
    assert not names & set(space.pods), "the labels of the built-in kind's revisions are its own"
    theirs, ours = before["spec"], made["spec"]
    fields = ("selector", "minReadySeconds", "revisionHistoryLimit")
    assert {field: ours[field] for field in fields} == {field: theirs[field] for field in fields}
    rolling = ours["updateStrategy"]["rollingUpdate"]
    assert rolling.pop("rollingUpdateType") == "Standard"
    assert rolling == theirs["updateStrategy"]["rollingUpdate"]
    applied = space.kubectl("apply", "-f", "-", stdin=BUILT_IN.replace("apps/v1", "apps.kruise.io/v1alpha1"))
    assert applied.startswith("daemonset.apps.kruise.io/node-exporter ")
    assert len({revision_of(pod) for pod in space.pods.values()}) == 1


BUILT_IN = manifest("daemonset-built-in")
