"""The oracles of WorkloadSpreads: small histories that break a rule, or nearly do, and wrong final states.

A place is given away twice, or an entry of the book of places is lost.
"""

import copy
import json
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.resources import POD
from tests.simulation.loop import EPOCH
from tests.simulation.oracles.spread_end import FinalState, final_problems
from tests.simulation.oracles.spreads import Spreads
from tests.unit.simulation.object_history_builder import Json, ObjectHistoryBuilder

US, WEBHOOK, USER, CLONES = "topology-0", "webhook-1", "user", "cloneset-0"
MATCHED, COST = "apps.kruise.io/matched-workloadspread", "controller.kubernetes.io/pod-deletion-cost"
A, B = {"name": "a", "maxReplicas": 2}, {"name": "b"}
NO_NODE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
MARKED = [{"type": "Schedulable", "status": "False"}]
OWNER = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "web", "controller": True}
Story = Callable[["SpreadHistoryBuilder"], object]


def pod_of(name: str, subset: str, *, uid: str = "", cost: str = "", spread: str = "spread", **metadata: Any) -> Json:
    matched = {"name": spread, "subset": subset} | ({"uid": uid} if uid else {})
    annotations = ({MATCHED: json.dumps(matched)} if subset else {}) | ({COST: cost} if cost else {})
    meta = {"name": name, "namespace": "shop", "annotations": annotations, "ownerReferences": [OWNER]}
    meta["creationTimestamp"] = "2026-01-01T00:00:01Z"
    return {"metadata": meta | metadata, "spec": {}, "status": {"phase": "Running", "conditions": NO_NODE}}


class SpreadHistoryBuilder(ObjectHistoryBuilder):
    """A history of WorkloadSpread `spread` of the CloneSet `web`: two pods at most in a, any number in b.

    A second passes before each change.
    """

    def __init__(self) -> None:
        super().__init__(Spreads())
        self.target(4)
        self.spread(A, B)
        self.told()

    def target(self, replicas: int) -> None:
        """Write the workload with this number of replicas."""
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}
        self.put(CLONE_SET, "web", {"kind": "CloneSet", "spec": spec}, by=USER, at=self.at + 1)

    def spread(self, *subsets: Json, by: str = USER, after: float = 1.0, **more: Any) -> None:
        """Write the WorkloadSpread."""
        reference = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}
        body = {"spec": {"targetRef": reference, "subsets": list(subsets)}, **more}
        self.put(WORKLOAD_SPREAD, "spread", body, by=by, at=self.at + after)

    def told(
        self, *, by: str = US, creating: Collection[str] = (), deleting: Collection[str] = (), **status: Any
    ) -> None:
        """Write its book: the pods of subset a whose creation or deletion is expected."""
        now = f"{EPOCH + timedelta(seconds=self.at):%Y-%m-%dT%H:%M:%SZ}"
        entry = {
            "name": "a",
            "creatingPods": dict.fromkeys(creating, now),
            "deletingPods": dict.fromkeys(deleting, now),
        }
        books = {"versionIgnored": [entry, {"name": "b"}]}
        subsets = self.held(WORKLOAD_SPREAD, "spread")["spec"]["subsets"] if self.at > 2 else [A, B]
        told = {"observedGeneration": 1, "versionedSubsetStatuses": books} | status
        self.spread(*subsets, by=by, status=told)

    def pod(self, name: str, subset: str, *, by: str = CLONES, after: float = 1.0, **change: Any) -> None:
        """Write a pod."""
        self.put(POD, name, pod_of(name, subset, **change), by=by, at=self.at + after)

    def drop(self, name: str, *, by: str = CLONES, after: float = 1.0) -> None:
        """Delete a pod."""
        self.put(POD, name, None, by=by, at=self.at + after)


def two(history: SpreadHistoryBuilder) -> None:
    history.pod("p", "a")
    history.pod("q", "a")


BROKEN: dict[str, tuple[Story, str]] = {
    "a third pod": (lambda t: (two(t), t.pod("r", "a")), "is pod number 3 of subset a, 2 may be"),
    "a second one when fewer may be": (
        lambda t: (t.pod("p", "a"), t.spread({**A, "maxReplicas": 1}, B), t.told(), t.pod("q", "a")),
        "is pod number 2 of subset a, 1 may be",
    ),
    "more than the share": (
        lambda t: (t.spread({**A, "maxReplicas": "40%"}, B), t.told(), t.target(2), t.pod("p", "a"), t.pod("q", "a")),
        "is pod number 2 of subset a, 1 may be",
    ),
    "a place is forgotten": (
        lambda t: (t.told(by=WEBHOOK, creating=["p"]), t.told()),
        "drops p from the creatingPods of subset a",
    ),
    "a place is overwritten": (
        lambda t: (t.told(by=WEBHOOK, creating=["p"]), t.told(by=WEBHOOK, creating=["q"])),
        "drops p from the creatingPods of subset a",
    ),
    "a book is closed": (
        lambda t: (t.told(by=WEBHOOK, creating=["p"]), t.told(versionedSubsetStatuses={})),
        "drops p from the creatingPods of subset a",
    ),
    "a pod that goes is forgotten": (
        lambda t: (t.pod("p", "a"), t.told(by=WEBHOOK, deleting=["p"]), t.told()),
        "drops p from the deletingPods of subset a",
    ),
    "the webhook writes more than books": (
        lambda t: t.told(by=WEBHOOK, observedGeneration=2),
        "writes more than the books",
    ),
    "moved": (lambda t: (t.pod("p", "a"), t.pod("p", "b", by=US)), "moves a pod from subset a to ('spread', 'b')"),
    "a cost of no subset": (
        lambda t: (t.pod("p", "a"), t.pod("p", "a", by=US, cost="150")),
        "says that the pod costs 150",
    ),
    "a cost of another subset": (
        lambda t: (t.spread(A, B, {"name": "c"}), t.pod("p", "b"), t.pod("p", "b", by=US, cost="300")),
        "says that the pod costs 300",
    ),
    "deleted before it is marked": (
        lambda t: (t.pod("p", "a"), t.drop("p", by=US)),
        "deletes a pod of subset a before it is marked",
    ),
}

SOUND: dict[str, Story] = {
    "the place of one that goes": lambda t: (two(t), t.drop("p"), t.pod("r", "a")),
    "any number elsewhere": lambda t: [t.pod(name, "b") for name in "pqrst"],
    "more may be": lambda t: (two(t), t.spread({**A, "maxReplicas": 3}, B), t.pod("r", "a")),
    "fewer may be since a moment": lambda t: (
        t.pod("p", "a"),
        t.spread({**A, "maxReplicas": 1}, B, after=0.99, status={"observedGeneration": 1}),
        setattr(t, "at", t.at - 0.98),
        t.pod("q", "a"),
    ),
    "not seen by the controller yet": lambda t: (two(t), t.spread(A, B), t.pod("r", "a")),
    "of another WorkloadSpread": lambda t: (two(t), t.pod("r", "a", spread="other")),
    "it has come": lambda t: (t.told(by=WEBHOOK, creating=["p"]), t.pod("p", "a"), t.told()),
    "it has come under its uid": lambda t: (t.told(by=WEBHOOK, creating=["u"]), t.pod("p", "a", uid="u"), t.told()),
    "it never came": lambda t: (t.told(by=WEBHOOK, creating=["p"]), setattr(t, "at", t.at + 30), t.told()),
    "it is gone": lambda t: (t.pod("p", "a"), t.told(by=WEBHOOK, deleting=["p"]), t.drop("p"), t.told()),
    "it never went": lambda t: (
        t.pod("p", "a"),
        t.told(by=WEBHOOK, deleting=["p"]),
        setattr(t, "at", t.at + 15),
        t.told(),
    ),
    "its subset is gone": lambda t: (
        t.told(by=WEBHOOK, creating=["p"]),
        t.spread(B, status=t.held(WORKLOAD_SPREAD, "spread")["status"]),
        t.told(versionedSubsetStatuses={"versionIgnored": [{"name": "b"}]}),
    ),
    "costs of a subset": lambda t: (t.pod("p", "a"), *(t.pod("p", "a", by=US, cost=one) for one in ("200", "-100"))),
    "deleted when it is marked": lambda t: (
        t.pod("p", "a"),
        t.told(subsetStatuses=[{"name": "a", "conditions": MARKED}]),
        t.drop("p", by=US),
    ),
    "deleted by others": lambda t: (t.pod("p", "a"), t.drop("p", by=USER)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_rule(name: str) -> None:
    story, text = BROKEN[name]
    history = SpreadHistoryBuilder()
    story(history)
    assert [text in breach for breach in history.breaches] == [True], history.breaches


@pytest.mark.parametrize("name", SOUND)
def test_what_breaks_none(name: str) -> None:
    history = SpreadHistoryBuilder()
    SOUND[name](history)
    assert history.breaches == []


def at_rest() -> dict[str, Any]:
    """Return the final state of a WorkloadSpread without a problem: two pods in a, one in b."""
    totals = [{"name": "a", "replicas": 2, "missingReplicas": 0}, {"name": "b", "replicas": 1, "missingReplicas": -1}]
    spread: Json = {
        "metadata": {"name": "spread", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}},
        "status": {
            "observedGeneration": 2,
            "subsetStatuses": totals,
            "versionedSubsetStatuses": {"versionIgnored": copy.deepcopy(totals)},
        },
    }
    spread["spec"]["subsets"] = [A, B]
    pods = [pod_of("p", "a", cost="200"), pod_of("q", "a", cost="200"), pod_of("r", "b", cost="100")]
    return {"spread": spread, "replicas": 3, "pods": pods}


def wrong(change: Callable[[dict[str, Any]], object]) -> list[str]:
    """Return the problems of the final state after a change."""
    final = copy.deepcopy(at_rest())
    change(final)
    return list(final_problems(FinalState(**final)))


def book(final: dict[str, Any]) -> list[Json]:
    """Return the only book of places."""
    found: list[Json] = final["spread"]["status"]["versionedSubsetStatuses"]["versionIgnored"]
    return found


def test_nothing_is_wrong_with_what_is_right() -> None:
    assert wrong(lambda final: None) == []


def test_one_pod_too_many_costs_less() -> None:
    def lower(final: dict[str, Any]) -> None:
        final["spread"]["spec"]["subsets"] = [{**A, "maxReplicas": 1}, B]
        final["pods"][0] = pod_of("p", "a", cost="-100")

    assert wrong(lower) == []


def crowd(final: dict[str, Any], **stranger: Any) -> None:
    """Both subsets are full, and there is one pod more."""
    final["spread"]["spec"]["subsets"][1] = {**B, "maxReplicas": 1}
    totals = final["spread"]["status"]["subsetStatuses"]
    totals[1]["missingReplicas"] = book(final)[1]["missingReplicas"] = 0
    final["pods"].append(pod_of("s", "", **stranger))


def test_one_that_no_subset_had_room_for_is_as_it_was() -> None:
    assert wrong(crowd) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda r: crowd(r, cost="-300"), "pods that no subset had room for have a cost: ['s']"),
        (lambda r: crowd(r, creationTimestamp="2026-01-01T00:00:00Z"), "pods of no subset cost ['']"),
        (lambda r: r["spread"]["metadata"].update(generation=3), "generation 3 is not handled"),
        (lambda r: r["spread"]["status"]["subsetStatuses"].pop(), "subsetStatuses are of ['a']"),
        (lambda r: r["spread"]["status"]["subsetStatuses"].reverse(), "subsetStatuses are of ['b', 'a']"),
        (
            lambda r: r["spread"]["status"]["subsetStatuses"][0].update(missingReplicas=1),
            "subsetStatuses say (2, 1) of subset a, not (2, 0)",
        ),
        (lambda r: book(r)[1].update(replicas=2), "versionIgnored say (2, -1) of subset b, not (1, -1)"),
        (
            lambda r: r["spread"]["status"]["versionedSubsetStatuses"]["versionIgnored"][0].update(
                creatingPods={"x": ""}
            ),
            "versionIgnored still wait for ['x']",
        ),
        (lambda r: r["spread"]["status"]["versionedSubsetStatuses"].update(old=[]), "there are books of"),
        (lambda r: r["spread"]["status"]["subsetStatuses"][0].update(conditions=MARKED), "have the conditions"),
        (
            lambda r: r["spread"]["spec"].update(
                scheduleStrategy={"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}
            ),
            "have the conditions []",
        ),
        (lambda r: r["pods"].append(pod_of("s", "", cost="100")), "pods of no subset cost ['100']"),
        (lambda r: r["pods"].append(pod_of("s", "c")), "pods of no subset cost ['']"),
        (lambda r: r["pods"][0]["metadata"]["annotations"].pop(COST), "pods of subset a cost"),
        (lambda r: r["pods"].pop(), "say (1, -1) of subset b, not (0, -1)"),
    ],
)
def test_what_must_not_be_at_rest(change: Callable[[dict[str, Any]], object], text: str) -> None:
    assert [one for one in wrong(change) if text in one], wrong(change)
