"""The promises of PodProbeMarkers: each rule is held against small histories that break it, or nearly do."""

from collections.abc import Callable

import pytest

from flotilla_common.api.resources import POD
from tests.simulation.oracles.probe_results import TYPE, ProbeResults
from tests.unit.simulation.object_tape import Json, ObjectTape


class MarkTape(ObjectTape):
    """A history of the pod `a`, a second between two changes."""

    def __init__(self) -> None:
        super().__init__(ProbeResults())

    def pod(
        self, message: str, status: str = "True", *, by: str = "policy-0", name: str = "a", idle: bool | None = None
    ) -> None:
        """The pod shows this; its marks follow from it, unless `idle` says otherwise."""
        idle = status == "True" if idle is None else idle
        busy = status == "False" and bool(message)
        metadata: Json = {"labels": {"idle": "yes"} if idle else {}, "annotations": {"busy": "yes"} if busy else {}}
        conditions = [{"type": TYPE, "status": status, "message": message}]
        self.put(POD, name, {"metadata": metadata, "status": {"conditions": conditions}}, by=by, at=self.at + 1.0)


Story = Callable[[MarkTape], object]


def right(tape: MarkTape) -> None:
    tape.pod("", "False")
    tape.pod("1 players")
    tape.pod("2 players", "False")
    tape.pod("2 others", "False")
    tape.pod("3 players")


RIGHT: list[Story] = [
    right,
    lambda tape: (right(tape), tape.pod("", "False", name="b")),
    lambda tape: (right(tape), tape.pod("1 players", by="user")),
    lambda tape: (tape.pod("1 players"), tape.pod("1 players", by="kubelet")),
]
WRONG: list[tuple[Story, str]] = [
    (lambda tape: (right(tape), tape.pod("2 players", "False")), "shows 2 players after the result with number 3"),
    (lambda tape: (right(tape), tape.pod("", "False")), "shows nothing after the result with number 3"),
    (lambda tape: (tape.pod("1 players"), tape.pod("2 players", idle=False)), "has label idle False"),
    (lambda tape: (tape.pod("1 players"), tape.pod("2 players", "False", idle=True)), "has label idle True"),
    (lambda tape: (tape.pod("1 players"), tape.pod("1 players")), "is written, and shows what it showed before"),
]


@pytest.mark.parametrize("story", RIGHT)
def test_what_is_right(story: Story):
    tape = MarkTape()
    story(tape)
    assert tape.breaches == []


@pytest.mark.parametrize(("story", "problem"), WRONG)
def test_what_is_wrong(story: Story, problem: str):
    tape = MarkTape()
    story(tape)
    (found,) = tape.breaches
    assert problem in str(found)
