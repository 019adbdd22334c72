"""The oracle of records: small histories in which we drop records that we must keep, or nearly do."""

from collections.abc import Callable

import pytest

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.testkit.tables import cases
from tests.unit.simulation.history_builder import OWNER, US, Json
from tests.unit.simulation.set_history_builder import SetHistoryBuilder

TARGET = {"apiVersion": STATEFUL_SET.api_version, "kind": STATEFUL_SET.kind, "name": "web"}
CONTROLLED = {"metadata": {"ownerReferences": [OWNER | {"kind": STATEFUL_SET.kind}]}}
Story = Callable[["RecordHistoryBuilder"], object]


class RecordHistoryBuilder(SetHistoryBuilder):
    """A history of a StatefulSet with two pods and of the PersistentPodState that it requests."""

    def __init__(self) -> None:
        super().__init__(replicas=2)
        self.asks(True)
        self.record("web-0", "web-1")

    def asks(self, on: bool, *, after: float = 1.0) -> None:
        """Switch the records of the set on or off as the user."""
        document = self._stored[(self.kind, "web")]
        metadata: Json = document["metadata"] | {
            "annotations": {"kruise.io/auto-generate-persistent-pod-state": "true"} if on else {}
        }
        self.put(self.kind, "web", document | {"metadata": metadata}, by="user", after=after)

    def record(self, *pods: str, after: float = 1.0, owned: bool = True) -> None:
        """Write the record: the nodes of these pods, and no others."""
        states = {pod: {"nodeName": "node-1"} for pod in pods}
        body: Json = {"spec": {"targetRef": TARGET}, "status": {"podStates": states}}
        self.put(PERSISTENT_POD_STATE, "web", body | (CONTROLLED if owned else {}), after=after)

    def discard(self, *, by: str = US, after: float = 1.0) -> None:
        """Delete the PersistentPodState."""
        self.remove(PERSISTENT_POD_STATE, "web", by=by, after=after)


BROKEN: dict[str, tuple[Story, str]] = {
    "a wanted record dropped": (lambda t: t.record("web-0"), "drops the record of web-1, which web wants"),
    "dropped long before the set goes": (lambda t: (t.record(), t.end()), "drops the record of web-0"),
    "deleted though it is asked for": (lambda t: t.discard(), "deletes it"),
    "deleted long after it was asked for again": (lambda t: (t.asks(False), t.asks(True), t.discard()), "deletes it"),
    "somebody's own deleted": (
        lambda t: (t.record("web-0", "web-1", owned=False), t.asks(False), t.discard()),
        "deletes it",
    ),
}


@pytest.mark.parametrize(("story", "text"), cases(BROKEN))
def test_what_breaks_the_rule_is_found(story: Story, text: str) -> None:
    history = RecordHistoryBuilder()
    assert history.breaches() == []
    story(history)
    assert any(text in breach for breach in history.breaches()), history.breaches()


INNOCENT: dict[str, Story] = {
    "an unwanted record dropped": lambda t: (t.spec(replicas=1), t.record("web-0")),
    "dropped when the pod had just become wanted again": lambda t: (
        t.spec(replicas=1),
        t.spec(replicas=2),
        t.record("web-0", after=0.02),
    ),
    "all dropped with the set": lambda t: (t.end(), t.record()),
    "dropped beside a namesake that came a moment ago": lambda t: (
        t.remove(STATEFUL_SET, "web", by="user"),
        t.put(STATEFUL_SET, "web", CLEAN, by="user", uid="v"),
        t.record(after=0.02),
    ),
    "deleted when it is no longer asked for": lambda t: (t.asks(False), t.discard()),
    "deleted when it was asked for again a moment ago": lambda t: (t.asks(False), t.asks(True), t.discard(after=0.02)),
    "deleted by its user": lambda t: t.discard(by="user"),
}
CLEAN: Json = {"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "updateStrategy": {}}}


@pytest.mark.parametrize("story", INNOCENT.values(), ids=INNOCENT.keys())
def test_what_is_right_passes(story: Story) -> None:
    history = RecordHistoryBuilder()
    story(history)
    assert history.breaches() == []
