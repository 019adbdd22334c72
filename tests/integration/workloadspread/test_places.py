"""Placement and deletion order of pods of all workloads, with kubectl (workloadspread.md §5, §6, §8, §11)."""

import json
from collections import Counter

import pytest

from tests.support.spread import (
    NAME,
    ZONE,
    active,
    aged,
    asked_namespaces,
    at_rest,
    books,
    cost_of,
    places,
    plain,
    spread,
    subset_of,
    totals,
)
from tests.support.workspace import Workspace, cloneset, image
from tests.testkit.documents import Json, metadata

WS = f"workloadspread/{NAME}"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def zones_of(pod: Json) -> list[str]:
    """Return the zones that the pod requires."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get(REQUIRED, {}).get("nodeSelectorTerms", [])
    return [
        value for term in terms for one in term["matchExpressions"] if one["key"] == ZONE for value in one["values"]
    ]


def has_event(space: Workspace, reason: str) -> bool:
    """Report whether there is an event about the WorkloadSpread with this reason."""
    items = space.read("events", f"--field-selector=involvedObject.name={NAME},reason={reason}")["items"]
    return bool(items)


KINDS = [
    pytest.param("apps.kruise.io/v1beta1", "CloneSet", {}, True, True, id="CloneSet"),
    pytest.param("apps/v1", "Deployment", {}, True, True, id="Deployment"),
    pytest.param("apps/v1", "StatefulSet", {"serviceName": "sample"}, False, False, id="StatefulSet"),
    pytest.param("apps.kruise.io/v1beta1", "StatefulSet", {}, False, False, id="Advanced StatefulSet"),
]


@pytest.mark.parametrize(("api_version", "kind", "spec", "costed", "booked"), KINDS)
def test_pods_fill_the_subsets(
    space: Workspace, api_version: str, kind: str, spec: Json, costed: bool, booked: bool
) -> None:
    space.apply(spread(2, None, target=(api_version, kind, "sample")))
    assert space.name in asked_namespaces(space.cluster)
    space.apply(plain(api_version, kind, 4, **spec))
    space.until(lambda: at_rest(space, a=(2, 0), b=(2, -1)))
    for pod in space.pods.values():
        index = "ab".index(subset_of(pod))
        assert zones_of(pod) == [f"zone-{index}"]
        assert cost_of(pod) == (str(200 - 100 * index) if costed else "")
    if not booked:
        assert {name: subset_of(pod) for name, pod in space.pods.items()} == {
            "sample-0": "a",
            "sample-1": "a",
            "sample-2": "b",
            "sample-3": "b",
        }


def test_pods_of_a_job(space: Workspace) -> None:
    """W12: finished ones free their places."""
    space.apply(spread(2, None, target=("batch/v1", "Job", "sample"), zones=False))
    container = {"name": "main", "image": "nginx"}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    spec = {"parallelism": 3, "completions": 3, "suspend": False, "template": template}
    space.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sample"}, "spec": spec})
    space.until(lambda: Counter(map(subset_of, space.pods.values())) == {"a": 2, "b": 1})


def test_both_versions(space: Workspace) -> None:
    space.apply(spread(2, None, version="v1alpha1"))
    old = space.read("workloadspreads.v1alpha1.apps.kruise.io", NAME)
    new = space.read("workloadspreads.v1beta1.apps.kruise.io", NAME)
    for one, term in ((old, "requiredNodeSelectorTerm"), (new, "requiredNodeSelector")):
        assert [subset[term]["matchExpressions"][0]["values"] for subset in one["spec"]["subsets"]] == [
            ["zone-0"],
            ["zone-1"],
        ]
    space.apply(cloneset(3))
    space.until(lambda: at_rest(space, a=(2, 0), b=(1, -1)))
    old = space.read("workloadspreads.v1alpha1.apps.kruise.io", NAME)
    assert [one["replicas"] for one in old["status"]["subsetStatuses"]] == [2, 1]


def test_scaling_in_goes_by_the_order_of_subsets(space: Workspace) -> None:
    """D1, and a deleted pod's place is taken again (W3)."""
    space.apply(spread(2, None))
    space.apply(cloneset(5))
    space.until(lambda: at_rest(space, a=(2, 0), b=(3, -1)))
    space.scale(3)
    space.until(lambda: at_rest(space, a=(2, 0), b=(1, -1)))
    one = next(name for name, pod in space.pods.items() if subset_of(pod) == "a")
    space.kubectl("delete", "pod", one, "--wait=false")
    space.until(lambda: one not in space.pods and at_rest(space, a=(2, 0), b=(1, -1)))
    space.scale(1)
    space.until(lambda: at_rest(space, a=(1, 1), b=(0, -1)))


def test_a_rollout_of_a_deployment(space: Workspace) -> None:
    """W7: the new pods have a book of their own, and the old ones of the first subset go first."""
    target = ("apps/v1", "Deployment", "sample")
    space.apply(spread(2, None, target=target))
    rolling = {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}
    space.apply(plain(*target[:2], 4, **rolling))
    space.until(lambda: at_rest(space, a=(2, 0), b=(2, -1)))
    (old,) = books(space)
    mark = space.now()
    space.apply(plain(*target[:2], 4, image="nginx:mainline", **rolling))
    space.until(
        lambda: (
            all(image(pod) == "nginx:mainline" for pod in space.pods.values())
            and at_rest(space, a=(2, 0), b=(2, -1))
            and old not in books(space)
        )
    )
    for pods in space.moments(mark):
        fresh = places(pod for pod in pods.values() if image(pod) == "nginx:mainline")
        assert fresh["a"] <= 2
        assert places(pods.values())[""] == 0
    assert {subset_of(pod): cost_of(pod) for pod in space.pods.values()} == {"a": "200", "b": "100"}


def test_what_changes_nothing(space: Workspace) -> None:
    """W18, and pods outside of the WorkloadSpread."""
    space.apply(spread(2, None))
    space.apply(cloneset(2))
    space.until(lambda: at_rest(space, a=(2, 0), b=(0, -1)))
    before = space.read(WS)
    pod = json.loads(space.kubectl("get", "pod", min(space.pods), "-o", "json"))
    meta = metadata("another", ownerReferences=pod["metadata"]["ownerReferences"], labels=pod["metadata"]["labels"])
    another = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    made = json.loads(space.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(another)))
    assert subset_of(made) == ""
    space.kubectl("delete", "pod", min(space.pods), "--dry-run=server")
    space.kubectl("run", "alone", "--image=nginx")
    space.until(lambda: "alone" in space.pods)
    assert subset_of(space.pods["alone"]) == ""
    assert "affinity" not in space.pods["alone"]["spec"]
    assert space.read(WS)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_pod_that_is_refused_after_its_admission(space: Workspace) -> None:
    """Its place comes back after half a minute."""
    space.apply(spread(3, 0))
    space.kubectl("create", "quota", "none", "--hard=pods=0")
    space.until(lambda: space.read("quota", "none")["status"].get("hard") == {"pods": "0"})
    space.apply(cloneset(1))
    space.until(lambda: any("creatingPods" in one for book in books(space).values() for one in book))
    space.kubectl("delete", "cloneset", "sample")
    space.kubectl("delete", "quota", "none")
    assert not has_event(space, "CreatePodFailed")
    space.until(lambda: aged(space))
    space.until(lambda: has_event(space, "CreatePodFailed"))
    space.until(lambda: not books(space))
    space.apply(cloneset(3))
    space.until(lambda: at_rest(space, a=(3, 0), b=(0, 0)))


def test_the_webhook_is_asked_only_while_there_is_one(space: Workspace) -> None:
    space.apply(spread(2, None))
    assert space.name in asked_namespaces(space.cluster)
    space.kubectl("delete", WS)
    space.until(lambda: space.name not in asked_namespaces(space.cluster))
    space.apply(cloneset(2))
    space.until(lambda: len(active(space.pods.values())) == 2)
    assert set(map(subset_of, space.pods.values())) == {""}


def test_pods_that_were_there_before(space: Workspace) -> None:
    """X1: they are counted where their nodes are, and new ones go where there is room."""
    space.apply(cloneset(3, template={"spec": {"nodeSelector": {ZONE: "zone-0"}}}))
    space.settled(readyReplicas=3)
    space.apply(spread(2, None))
    space.until(lambda: totals(space) == {"a": (3, 0), "b": (0, -1)})
    space.until(lambda: sorted(map(cost_of, space.pods.values())) == ["-100", "200", "200"])
    space.scale(2)
    space.until(lambda: at_rest(space, a=(2, 0), b=(0, -1)))


def test_pods_beyond_the_limits_stay_as_they_are(space: Workspace) -> None:
    """W2: though their nodes fit; when one within the limits goes, its successor has its place."""
    limits, replicas, prices = (1, 1), 4, {"a": "200", "b": "100"}
    both = (spread(*limits, zones=False), cloneset(replicas))
    space.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, both)))  # mostly within one second
    full = {name: (limit, 0) for name, limit in zip("abc", limits, strict=False)}
    space.until(lambda: at_rest(space, **full) and len(space.pods) == replicas)
    space.settled(readyReplicas=replicas)
    beyond = {name for name, pod in space.pods.items() if not subset_of(pod)}
    assert len(beyond) == replicas - sum(limits)
    one = next(name for name, pod in space.pods.items() if subset_of(pod) == "a")
    space.kubectl("delete", "pod", one, "--wait=false")
    space.until(lambda: one not in space.pods and at_rest(space, **full) and len(space.pods) == replicas)
    assert {name for name, pod in space.pods.items() if not subset_of(pod)} == beyond
    for pod in space.pods.values():
        assert cost_of(pod) == prices.get(subset_of(pod), "")
        assert subset_of(pod) or "affinity" not in pod["spec"]
    space.settled(readyReplicas=replicas)  # a pod that is not ready goes before all others
    space.scale(sum(limits))
    space.until(lambda: len(space.pods) == sum(limits) and not beyond & space.pods.keys())


def test_pods_that_came_a_moment_before(space: Workspace) -> None:
    """They may have the same timestamp as their WorkloadSpread, and do not exceed its limits."""
    space.apply(cloneset(3))
    space.until(lambda: len(space.pods) == 3)
    space.apply(spread(2, 2, zones=False))
    space.until(lambda: at_rest(space, a=(2, 0), b=(1, 1)))
