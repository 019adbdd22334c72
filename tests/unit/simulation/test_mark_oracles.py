"""The promises of PodProbeMarkers: each rule is checked with small histories that break it, or nearly do."""

from collections.abc import Callable

import pytest

from flotilla_common.api.resources import POD
from tests.simulation.oracles.probe_results import TYPE, ProbeResults
from tests.unit.simulation.object_history_builder import Json, ObjectHistoryBuilder


class MarkHistoryBuilder(ObjectHistoryBuilder):
    """A history of the pod `a`, a second between two changes."""

    def __init__(self) -> None:
        super().__init__(ProbeResults())

    def pod(
        self, message: str, status: str = "True", *, by: str = "policy-0", name: str = "a", idle: bool | None = None
    ) -> None:
        """Write a pod with this condition and the marks that follow from it, unless `idle` overrides them."""
        idle = status == "True" if idle is None else idle
        busy = status == "False" and bool(message)
        metadata: Json = {"labels": {"idle": "yes"} if idle else {}, "annotations": {"busy": "yes"} if busy else {}}
        conditions = [{"type": TYPE, "status": status, "message": message}]
        self.put(POD, name, {"metadata": metadata, "status": {"conditions": conditions}}, by=by, at=self.at + 1.0)


Story = Callable[[MarkHistoryBuilder], object]


def right(history: MarkHistoryBuilder) -> None:
    history.pod("", "False")
    history.pod("1 players")
    history.pod("2 players", "False")
    history.pod("2 others", "False")
    history.pod("3 players")


RIGHT: list[Story] = [
    right,
    lambda history: (right(history), history.pod("", "False", name="b")),
    lambda history: (right(history), history.pod("1 players", by="user")),
    lambda history: (history.pod("1 players"), history.pod("1 players", by="kubelet")),
]
WRONG: list[tuple[Story, str]] = [
    (
        lambda history: (right(history), history.pod("2 players", "False")),
        "shows 2 players after the result with number 3",
    ),
    (lambda history: (right(history), history.pod("", "False")), "shows nothing after the result with number 3"),
    (lambda history: (history.pod("1 players"), history.pod("2 players", idle=False)), "has label idle False"),
    (lambda history: (history.pod("1 players"), history.pod("2 players", "False", idle=True)), "has label idle True"),
    (
        lambda history: (history.pod("1 players"), history.pod("1 players")),
        "is written, and shows what it showed before",
    ),
]


@pytest.mark.parametrize("story", RIGHT)
def test_what_is_right(story: Story):
    history = MarkHistoryBuilder()
    story(history)
    assert history.breaches == []


@pytest.mark.parametrize(("story", "problem"), WRONG)
def test_what_is_wrong(story: Story, problem: str):
    history = MarkHistoryBuilder()
    story(history)
    (found,) = history.breaches
    assert problem in str(found)
