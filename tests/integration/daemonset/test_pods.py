"""Pods that a DaemonSet creates, keeps, releases and adopts (daemonset.md §4.4 to §4.7)."""

import re

from flotilla_common.api.resources import POD
from tests.support.daemons import IN_PLACE, NAME, NEW, by_node, daemonset, node_of, replaced, settled, started, strategy
from tests.support.workspace import Workspace, identity, image, revision_of
from tests.testkit.documents import Json, typed
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


def named(pod: Json) -> str:
    return pod["metadata"]["name"]


def test_every_node_gets_a_pod_of_its_own(space: Workspace):
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


def test_nodes_are_chosen_by_selector_and_affinity(space: Workspace):
    """Row 30: a change of the template that excludes a node takes its pod."""
    hostname = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["node-0"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert sorted(started(space, 2, pod={"affinity": affinity})) == ["node-1", "node-2"]
    only = {"kubernetes.io/hostname": "node-2"}
    space.patch({"spec": {"template": {"spec": {"nodeSelector": only}}}}, NAME)
    settled(space, 1, updatedNumberScheduled=1, currentNumberScheduled=1, numberMisscheduled=0)
    assert sorted(by_node(space)) == ["node-2"]


def test_the_partition_may_hold_for_the_first_pods(space: Workspace):
    """Row 20: nodes by their name, from the first."""
    space.apply(daemonset({"partition": 2}, scaleStrategy={"partitionedScaling": True}))
    space.settled(NAME, desiredNumberScheduled=3, numberReady=1)
    assert sorted(by_node(space)) == ["node-0"]
    strategy(space, partition=0)
    settled(space, 3)


def test_a_failed_pod_makes_room_for_another(space: Workspace):
    failed = started(space, 3)["node-1"]
    name = failed["metadata"]["name"]
    space.evict(name)
    replaced(space, failed)
    settled(space, 3)
    assert name not in space.pods
    told = f"Found failed daemon pod {space.name}/{name} on node node-1, will try to kill it"
    space.event("FailedDaemonPod", told)


def test_a_pod_that_is_labelled_for_deletion_is_replaced(space: Workspace):
    """Though the partition keeps all nodes: the new pod has the newest revision."""
    old = started(space, 3, {"partition": 3})
    space.set_image(NEW, NAME)
    space.settled(NAME)
    name = old["node-1"]["metadata"]["name"]
    space.label(name, "apps.kruise.io/specified-delete=true")
    settled(space, 3, updatedNumberScheduled=1, numberAvailable=3)
    there = by_node(space)
    assert {node for node, pod in there.items() if identity(pod) != identity(old[node])} == {"node-1"}
    assert image(there["node-1"]) == NEW


def test_a_pod_is_let_go_by_its_labels_and_taken_in_again(space: Workspace):
    """Rows 38 and 40: of two pods on a node the older one stays; of two of one second, that which is first by name."""
    released = started(space, 3, {"paused": True})["node-1"]
    name = released["metadata"]["name"]
    space.label(name, "app-")
    space.until(lambda: not owner(space.pod(name)) and len(space.pods) == 4)
    settled(space, 3)
    (second,) = (pod for pod in space.pods.values() if node_of(pod) == "node-1" and owner(pod))
    stays, goes = sorted((released, second), key=lambda pod: (pod["metadata"]["creationTimestamp"], named(pod)))
    space.label(name, f"app={NAME}")
    space.until(lambda: named(goes) not in space.pods)
    settled(space, 3)
    assert by_node(space)["node-1"]["metadata"]["uid"] == stays["metadata"]["uid"]
    assert {owner(pod) for pod in space.pods.values()} == {space.clone(NAME)["metadata"]["uid"]}


def test_a_set_that_is_made_again_takes_its_pods_in(space: Workspace):
    """`kubectl delete --cascade=orphan`, and apply: no pod is touched, and the history continues."""
    before = {identity(pod) for pod in started(space, 3, IN_PLACE).values()}
    revisions = set(space.revisions(NAME))
    space.kubectl("delete", "ads", NAME, "--cascade=orphan")
    space.until(lambda: space.clone(NAME) == {} and not any(map(owner, space.pods.values())))
    made = space.apply(daemonset(IN_PLACE))
    settled(space, 3, updatedNumberScheduled=3)
    assert {identity(pod) for pod in space.pods.values()} == before
    assert {owner(pod) for pod in space.pods.values()} == {made["metadata"]["uid"]}
    assert set(space.revisions(NAME)) == revisions


def test_an_orphan_on_a_node_is_taken_in_and_replaced(space: Workspace):
    """Row 39: without a revision it counts as old. When no other pod is left, the update is complete."""
    manifest = daemonset({"maxUnavailable": 3})
    pod = typed(POD, "stray", labels={"app": NAME}, spec=manifest["spec"]["template"]["spec"] | {"nodeName": "node-1"})
    space.apply(pod)
    space.apply(manifest)
    settled(space, 3, updatedNumberScheduled=3, numberAvailable=3)
    assert "stray" not in space.pods
    adopted = [event.object for event in space.history() if event.object["metadata"]["name"] == "stray"]
    assert any(owner(version) for version in adopted)


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
