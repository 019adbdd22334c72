"""The oracles of UnitedDeployments: small histories that break a rule, or nearly do, and wrong final states."""

import copy
from collections.abc import Callable, Collection
from typing import Any

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.resources import POD
from tests.simulation.oracles.united import SubsetWorkloads
from tests.simulation.oracles.united_end import FinalState, final_problems
from tests.testkit.documents import typed
from tests.unit.simulation.object_history_builder import Json, ObjectHistoryBuilder

US, USER, CLONES = "topology-0", "user", "cloneset-0"
SUBSET, REVISION = "apps.kruise.io/subset-name", "apps.kruise.io/controller-revision-hash"
SELECTOR = {"matchLabels": {"app": "web"}}
Story = Callable[["UnitedHistoryBuilder"], object]


def reference(kind: str, name: str) -> Json:
    return {"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "name": name, "uid": name, "controller": True}


def united(*subsets: str, replicas: int = 4, kind: str = "cloneSetTemplate", **spec: Any) -> Json:
    topology: Json = {"subsets": [{"name": name} for name in subsets]}
    topology |= spec.pop("topology", {})
    return {"selector": SELECTOR, "replicas": replicas, "template": {kind: {}}, "topology": topology, **spec}


def ready_pod(child: str, number: int, *, revision: str = "web-1", ready: bool = True, **labels: str) -> Json:
    metadata = {
        "name": f"{child}-{number}",
        "labels": {"app": "web", SUBSET: child.removeprefix("web-"), REVISION: revision, **labels},
        "ownerReferences": [reference("CloneSet", child)],
    }
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": metadata, "spec": {}, "status": status}


class UnitedHistoryBuilder(ObjectHistoryBuilder):
    """A history of UnitedDeployment `web` of CloneSets `web-a` and `web-b`, with two ready pods each.

    A second passes before each change.
    """

    def __init__(self) -> None:
        super().__init__(SubsetWorkloads())
        self.united(united("a", "b"))
        for name in ("a", "b"):
            self.child(name)
            for number in range(2):
                self.pod(name, number)

    def united(self, spec: Json, *, by: str = USER, after: float = 1.0, **more: Json) -> None:
        """Write the UnitedDeployment."""
        body = {"kind": "UnitedDeployment", "spec": spec, **more}
        self.put(UNITED_DEPLOYMENT, "web", body, by=by, at=self.at + after)

    def child(
        self,
        subset: str,
        *,
        by: str = US,
        name: str = "",
        replicas: int = 2,
        partition: int = 0,
        revision: str = "web-1",
        owner: str = "web",
        after: float = 1.0,
        **metadata: Any,
    ) -> None:
        """Write a child."""
        owners = [reference("UnitedDeployment", owner)] if owner else []
        labels = {REVISION: revision} | ({SUBSET: subset} if subset else {})
        body = {
            "kind": "CloneSet",
            "metadata": {"labels": labels, "ownerReferences": owners, **metadata},
            "spec": {
                "selector": SELECTOR,
                "replicas": replicas,
                "updateStrategy": {"rollingUpdate": {"partition": partition}},
                "template": revision,
            },
        }
        self.put(CLONE_SET, name or f"web-{subset}", body, by=by, at=self.at + after)

    def drop(self, name: str, *, by: str = US) -> None:
        """Delete a child."""
        self.put(CLONE_SET, name, None, by=by, at=self.at + 1)

    def pod(self, subset: str, number: int, *, ready: bool = True, after: float = 1.0) -> None:
        """Write a pod of a child, ready or not."""
        pod = ready_pod(f"web-{subset}", number, ready=ready)
        self.put(POD, pod["metadata"]["name"], pod, by="kubelet", at=self.at + after)

    def told(self, generation: int, *, subsets: Json, revision: str = "web-1") -> None:
        """Write the status of a handled generation."""
        entries = [{"name": name, "replicas": replicas} for name, replicas in subsets.items()]
        status = {"observedGeneration": generation, "updatedRevision": revision, "subsetStatuses": entries}
        spec = self.held(UNITED_DEPLOYMENT, "web")["spec"]
        self.united(spec, by=US, status=status, metadata={"generation": generation})


BROKEN: dict[str, tuple[Story, str]] = {
    "a second child": (lambda t: t.child("a", name="web-a2"), "makes a second workload for subset a"),
    "a child of no subset": (lambda t: t.child("c"), "makes a workload for 'c', which is no subset"),
    "of another kind": (
        lambda t: (t.united(united("a", "b", kind="deploymentTemplate")), t.child("a", revision="web-2")),
        "writes a CloneSet, for which there is no template",
    ),
    "of one that goes": (
        lambda t: (
            t.united(united("a", "b"), metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"}),
            t.child("a", replicas=3),
        ),
        "of a UnitedDeployment that goes",
    ),
    "of nobody": (lambda t: t.child("a", owner="another", name="x"), "that no UnitedDeployment controls"),
    "without a subset": (
        lambda t: (t.child("", name="x", owner="", by=USER), t.child("", name="x")),
        "takes in a workload that names no subset",
    ),
    "the only one of its subset": (lambda t: t.drop("web-a"), "deletes the only workload of subset a"),
    "pods that are needed": (
        lambda t: (t.united(united("b")), t.drop("web-a")),
        "deletes subset a with 2 pods that are ready: 2 others are, 4 must be",
    ),
    "pods beyond the replicas are no help": (
        lambda t: (t.united(united("b")), t.pod("b", 2), t.pod("b", 3), t.drop("web-a")),
        "2 others are, 4 must be",
    ),
    "shrunk too soon": (
        lambda t: (t.united(united("a", "b", "c")), t.child("c", replicas=1), t.child("a", replicas=1)),
        "shrinks web-a to 1: 3 pods are ready then, 4 must be",
    ),
    "held without a reason": (lambda t: t.child("a", partition=1, revision="web-2"), "holds 1 pods of subset a"),
    "not held": (
        lambda t: (
            t.united(united("a", "b", updateStrategy={"manualUpdate": {"partitions": {"a": 1}}})),
            t.child("a", revision="web-2"),
        ),
        "holds 0 pods of subset a, which nobody asks for",
    ),
    "written three times": (
        lambda t: [t.child("a", revision=f"web-{number}") for number in (2, 3, 4)],
        "is write number 3 of web-a for one reason",
    ),
    "told too soon": (
        lambda t: (t.united(united("a", "b", replicas=5)), t.told(2, subsets={"a": 3, "b": 2})),
        "says that generation 2 is handled, though the workload of subset a is not as it says",
    ),
    "told of another revision": (
        lambda t: (t.child("b", revision="web-2"), t.told(1, subsets={"a": 2, "b": 2}, revision="web-2")),
        "though the workload of subset a is not as it says",
    ),
}

SOUND: dict[str, Story] = {
    "a duplicate goes": lambda t: (
        t.child("a", name="web-x", by=USER, owner=""),
        t.child("a", name="web-x"),
        t.drop("web-x"),
    ),
    "a subset goes when others serve": lambda t: (
        t.united(united("b")),
        t.child("b", replicas=4),
        t.pod("b", 2),
        t.pod("b", 3),
        t.drop("web-a"),
    ),
    "fewer are asked for": lambda t: (t.united(united("b", replicas=2)), t.drop("web-a")),
    "pods that do not serve go": lambda t: (
        t.united(united("b")),
        t.pod("a", 0, ready=False),
        t.pod("a", 1, ready=False),
        t.drop("web-a"),
    ),
    "a pod broke a moment ago": lambda t: (
        t.united(united("b")),
        t.child("b", replicas=4),
        t.pod("b", 2),
        t.pod("b", 3),
        t.pod("b", 0, ready=False, after=0.99),
        setattr(t, "at", t.at - 0.98),
        t.drop("web-a"),
    ),
    "somebody else deletes it": lambda t: (t.drop("web-a", by=USER), t.child("a")),
    "written for several reasons": lambda t: [
        (t.united(united("a", "b", replicas=number)), t.child("a", replicas=number - 2)) for number in range(5, 9)
    ],
    "shrunk step by step": lambda t: (
        t.united(united("a", "b", "c")),
        t.child("c", replicas=3),
        *((t.pod("c", number), t.child("a", replicas=1 - number)) for number in range(2)),
    ),
    "told when it is so": lambda t: (
        t.united(united("a", "b", replicas=6)),
        t.child("a", replicas=3),
        t.child("b", replicas=3),
        t.told(2, subsets={"a": 3, "b": 3}),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_rule(name: str) -> None:
    story, text = BROKEN[name]
    history = UnitedHistoryBuilder()
    story(history)
    assert [text in breach for breach in history.breaches] == [True], history.breaches


@pytest.mark.parametrize("name", SOUND)
def test_what_breaks_none(name: str) -> None:
    history = UnitedHistoryBuilder()
    SOUND[name](history)
    assert history.breaches == []


def child_at_rest(subset: str) -> Json:
    labels = {SUBSET: subset, REVISION: "web-1"}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web", SUBSET: subset}},
        "template": {"metadata": {"labels": labels}},
        "updateStrategy": {"rollingUpdate": {"partition": 0}},
    }
    name = f"web-{subset}"
    return typed(CLONE_SET, name, uid=name, labels=labels, annotations={"apps.kruise.io/subset-patch": ""}, spec=spec)


def at_rest() -> dict[str, Any]:
    """Return the final state of a UnitedDeployment without a problem."""
    status = {
        "observedGeneration": 3,
        "replicas": 4,
        "readyReplicas": 4,
        "updatedReplicas": 4,
        "updatedReadyReplicas": 4,
        "currentRevision": "web-1",
        "updatedRevision": "web-1",
        "subsetStatuses": [{"name": name, "replicas": 2, "readyReplicas": 2} for name in "ab"],
    }
    whole = {"metadata": {"name": "web", "uid": "web", "generation": 3}, "spec": united("a", "b"), "status": status}
    pods = [ready_pod(f"web-{subset}", number) for subset in "ab" for number in range(2)]
    revisions = [{"metadata": {"name": "web-1"}, "revision": 1}, {"metadata": {"name": "web-2"}, "revision": 2}]
    return {"united": whole, "children": list(map(child_at_rest, "ab")), "pods": pods, "revisions": revisions}


def wrong(change: Callable[[dict[str, Any]], object]) -> Collection[str]:
    """Return the problems of the final state after a change."""
    final = copy.deepcopy(at_rest())
    change(final)
    return list(final_problems(FinalState(**final)))


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert wrong(lambda final: None) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda r: r["children"].pop(), "the workloads are"),
        (lambda r: r["children"].append(child_at_rest("c")), "the workloads are"),
        (lambda r: r["children"].append(child_at_rest("a")), "the workloads are"),
        (lambda r: r["united"]["spec"].update(replicas=5), "the workloads have 4 replicas, not 5"),
        (lambda r: r["children"][0]["metadata"]["labels"].update({REVISION: "web-2"}), "web-a: its labels are"),
        (
            lambda r: r["children"][0]["spec"]["updateStrategy"]["rollingUpdate"].update(partition=1),
            "web-a: it holds 1 pods, not 0",
        ),
        (lambda r: r["united"]["spec"]["topology"]["subsets"][0].update(patch={}), "web-a: it says that its patch is"),
        (lambda r: r["pods"].pop(), "web-b: it has 1 pods, not 2"),
        (
            lambda r: r["pods"][0]["metadata"]["labels"].update({REVISION: "web-2"}),
            "web-a: 1 of its pods are on web-1, 2 are to be",
        ),
        (lambda r: r["united"]["status"].update(readyReplicas=3), "the status says"),
        (lambda r: r["united"]["status"].update(observedGeneration=2), "the status says"),
        (lambda r: r["united"]["status"]["subsetStatuses"].pop(), "subsets are said to be"),
        (lambda r: r["united"]["status"]["subsetStatuses"][0].update(partition=1), "subsets are said to be"),
        (lambda r: r["united"]["status"].update(currentRevision="web-2"), "the current revision is web-2"),
        (lambda r: r["united"]["status"].update(currentRevision="web-3"), "which are not there"),
        (lambda r: r["revisions"][0].update(revision=2), "revisions have the numbers [2, 2]"),
    ],
)
def test_what_must_not_be_at_rest(change: Callable[[dict[str, Any]], object], text: str) -> None:
    assert [one for one in wrong(change) if text in one], wrong(change)
