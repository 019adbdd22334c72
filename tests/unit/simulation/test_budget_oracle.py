"""The oracle of budgets: small histories that break a rule, or nearly do.

One pod too many is taken, or a share of the budget is lost.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET, RELATED_BUDGET
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from tests.simulation.loop import EPOCH
from tests.simulation.oracles.budgets import Budgets, final_problems
from tests.unit.simulation.object_history_builder import Json, ObjectHistoryBuilder

US, USER, KUBELET = "policy-0", "user", "kubelet"
COUNTED = {"observedGeneration": 1, "totalReplicas": 3, "desiredAvailable": 2, "currentAvailable": 3}
Story = Callable[["BudgetHistoryBuilder"], object]


def pod_of(name: str, *, ready: bool = True, **metadata: Any) -> Json:
    labels = {"app": "web"}
    meta: Json = {"name": name, "namespace": "shop", "labels": labels, "annotations": {RELATED_BUDGET: "pub"}}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": meta | metadata, "status": {"phase": "Running", "conditions": conditions}}


class BudgetHistoryBuilder(ObjectHistoryBuilder):
    """A history of three pods, one of which may be unavailable. A second passes before each change."""

    def __init__(self) -> None:
        super().__init__(Budgets())
        self.target(3)
        for name in ("a", "b", "c"):
            self.pod(name, by=KUBELET)
        self.budget(COUNTED)

    def target(self, replicas: int) -> None:
        """Set the replicas of the workload."""
        self.put(CLONE_SET, "web", {"spec": {"replicas": replicas}}, by=USER, at=self.at + 1)

    def budget(self, status: Json, *, by: str = USER, after: float = 1.0, **spec: Any) -> None:
        """Write the budget."""
        body = {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}} | spec, "status": status}
        self.put(POD_UNAVAILABLE_BUDGET, "pub", body | {"metadata": {"generation": 1}}, by=by, at=self.at + after)

    def counts(self, after: float = 1.0, **status: Any) -> None:
        """Count, as the controller does."""
        self.budget(COUNTED | status, by=US, after=after)

    def pod(self, name: str, *, by: str = USER, after: float = 1.0, **members: Any) -> None:
        """Write the pod."""
        self.put(POD, name, pod_of(name, **members), by=by, at=self.at + after)

    def delete(self, *names: str, after: float = 1.0) -> None:
        """Delete pods as a user, which takes its time."""
        for name in names:
            self.pod(name, after=after, deletionTimestamp="2026-01-01T00:01:00Z")

    def take(self, name: str = "a", field: str = "disruptedPods") -> None:
        """Admit a request, as the webhook does."""
        now = rfc3339(EPOCH + timedelta(seconds=self.at))
        self.budget(COUNTED | {field: {name: now}}, by="webhook-0")


STORIES: dict[str, tuple[Story, str]] = {
    "one goes": (lambda t: t.delete("a"), ""),
    "two go": (lambda t: t.delete("a", "b"), "takes b, though 2 of 2"),
    "one goes that is not ready": (
        lambda t: (t.delete("a"), t.pod("b", by=KUBELET, ready=False), t.pod("b", by=US, ready=False), t.delete("b")),
        "",
    ),
    "we put one out of service": (lambda t: (t.delete("a"), t.pod("b", by="cloneset-0", ready=False)), "takes b"),
    "one fails, and nobody knows yet": (lambda t: (t.pod("a", by=KUBELET, ready=False), t.delete("b")), ""),
    "one has failed for long": (lambda t: (t.pod("a", by=KUBELET, ready=False), t.delete("b", after=6)), "takes b"),
    "scaled in": (lambda t: (t.target(2), t.delete("a", "b")), ""),
    "scaled in further than it was": (lambda t: (t.target(2), t.delete("a", "b", "c")), "takes c"),
    "counted by a view of yesterday": (lambda t: t.counts(desiredAvailable=1), "wants 1 pods to be available, and 2"),
    "counted a moment after the change": (lambda t: (t.target(2), t.counts(desiredAvailable=2, after=0.01)), ""),
    "forgotten": (lambda t: (t.take(), t.counts()), "forgets after"),
    "forgotten at the end": (lambda t: (t.take(), t.counts(after=21)), ""),
    "gone": (lambda t: (t.take(), t.delete("a"), t.counts()), ""),
    "an update, forgotten": (lambda t: (t.take(field="unavailablePods"), t.counts(after=8)), "forgets after"),
    "kept": (
        lambda t: (t.take(), t.counts(disruptedPods=t.held(POD_UNAVAILABLE_BUDGET, "pub")["status"]["disruptedPods"])),
        "",
    ),
    "kept for ever": (
        lambda t: (
            t.take(),
            t.counts(35, disruptedPods=t.held(POD_UNAVAILABLE_BUDGET, "pub")["status"]["disruptedPods"]),
        ),
        "keeps what was taken for a",
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_story(name: str) -> None:
    story, breach = STORIES[name]
    history = BudgetHistoryBuilder()
    assert history.breaches == []
    story(history)
    assert len(history.breaches) == (1 if breach else 0), history.breaches
    assert not breach or breach in history.breaches[0]


@pytest.mark.parametrize(
    ("status", "is_right"),
    [
        pytest.param(COUNTED | {"unavailableAllowed": 1}, True, id="as it must be"),
        pytest.param(COUNTED | {"unavailableAllowed": 0}, False, id="less than there is"),
        pytest.param(COUNTED | {"unavailableAllowed": 1, "disruptedPods": {"a": "x"}}, False, id="somebody has it"),
    ],
)
def test_the_end(status: Json, is_right: bool) -> None:
    pods = [pod_of(name) for name in ("a", "b", "c")]
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    budget: Json = {"metadata": {"generation": 1, "namespace": "shop"}, "spec": spec, "status": status}
    assert (list(final_problems(budget, pods, 3)) == []) is is_right
