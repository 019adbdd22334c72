"""The promises of BroadcastJobs: each rule is checked with small histories that break it, or nearly do."""

from collections.abc import Callable
from typing import Any

import pytest

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, NAME_LABEL, UID_LABEL
from flotilla_common.api.resources import NODE, POD
from tests.unit.simulation.history_builder import OWNER, HistoryBuilder, Json

ROOM = {"cpu": "4", "pods": "110"}
DONE = {"phase": "completed", "conditions": [{"type": "Complete", "message": "done"}]}
FAILED = {"phase": "failed", "conditions": [{"type": "Failed", "message": "failed"}]}


class BroadcastHistoryBuilder(HistoryBuilder):
    """A job `web` on nodes n1, n2 and n3."""

    kind = BROADCAST_JOB
    owner: Json = OWNER | {"kind": BROADCAST_JOB.kind}

    def __init__(self, **spec: Any) -> None:
        containers = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
        super().__init__(top={"template": {"spec": {"containers": containers}}, **spec})
        for name in ("n1", "n2", "n3"):
            self.node(name)

    def node(self, name: str, *effects: str, cordoned: bool = False, room: Json = ROOM) -> None:
        """Write a node with one taint per effect."""
        taints = [{"key": "dedicated", "effect": effect} for effect in effects]
        spec = {"taints": taints, "unschedulable": cordoned}
        self.put(NODE, name, {"spec": spec, "status": {"allocatable": room}}, by="user")

    def pod(self, name: str, **change: Any) -> None:
        """Write a pod `n1-a` on node `n1`."""
        spec = {"nodeName": name.partition("-")[0], "restartPolicy": "Never", **change.pop("spec", {})}
        super().pod(name, state="", labels={NAME_LABEL: "web", UID_LABEL: "u"}, spec=spec, **change)

    def ends(self, name: str, phase: str = "Succeeded") -> None:
        """End a pod as its kubelet reports it."""
        self.pod(name, by="kubelet", phase=phase, ready=False)

    def gone(self, name: str) -> None:
        """Delete a pod as the user, and remove it."""
        self.delete(name, by="user")
        self.remove(POD, name, by="kubelet")

    def says(self, **status: Any) -> None:
        """Write the status of the job."""
        self.put(self.kind, "web", {**self.job, "status": status})

    def asks(self, **spec: Any) -> None:
        """Change the spec as the user."""
        self.put(self.kind, "web", {**self.job, "spec": self.job["spec"] | spec}, by="user")

    @property
    def job(self) -> Json:
        return self._stored[(self.kind, "web")]


Story = Callable[[BroadcastHistoryBuilder], object]


def three(history: BroadcastHistoryBuilder) -> None:
    for name in ("n1-a", "n2-a", "n3-a"):
        history.pod(name)


def all_done(history: BroadcastHistoryBuilder) -> None:
    three(history)
    for name in ("n1-a", "n2-a", "n3-a"):
        history.ends(name)
    history.says(**DONE)


def told(history: BroadcastHistoryBuilder) -> list[str]:
    return [breach.partition("): ")[2] for breach in history.breaches()]


@pytest.mark.parametrize(
    ("settings", "play", "expected"),
    [
        pytest.param({}, three, [], id="one on each node"),
        pytest.param({}, all_done, [], id="all done"),
        pytest.param(
            {},
            lambda history: (history.pod("n1-a"), history.ends("n1-a"), history.pod("n1-b")),
            ["makes a pod beside n1-a on n1"],
            id="beside one that has ended",
        ),
        pytest.param(
            {},
            lambda history: (history.pod("n1-a"), history.gone("n1-a"), history.pod("n1-b")),
            [],
            id="after one that a user deleted",
        ),
        pytest.param(
            {},
            lambda history: (history.node("n1", "NoSchedule"), history.pod("n1-a")),
            ["makes a pod for 'n1', which does not take it"],
            id="on a tainted node",
        ),
        pytest.param(
            {},
            lambda history: (history.node("n1", "NoSchedule"), history.pod("n1-a", after=0.01)),
            [],
            id="on a node that has just been tainted",
        ),
        pytest.param(
            {},
            lambda history: (history.node("n1", room={"cpu": "1", "pods": "110"}), history.pod("n1-a")),
            ["makes a pod for 'n1', which does not take it"],
            id="where there is no room",
        ),
        pytest.param({"parallelism": "50%"}, three, ["makes a pod, the 3th at work, 2 may be"], id="too many at once"),
        pytest.param(
            {"parallelism": 2},
            lambda history: (history.pod("n1-a"), history.pod("n2-a"), history.ends("n1-a"), history.pod("n3-a")),
            [],
            id="as many as may",
        ),
        pytest.param(
            {},
            lambda history: (history.asks(paused=True), history.pod("n1-a")),
            ["makes a pod for a job that is paused"],
            id="paused",
        ),
        pytest.param(
            {}, lambda history: (history.asks(paused=True), history.pod("n1-a", after=0.01)), [], id="just paused"
        ),
        pytest.param(
            {"failurePolicy": {"type": "Pause"}},
            lambda history: (history.pod("n1-a"), history.ends("n1-a", "Failed"), history.pod("n2-a")),
            ["makes a pod though one has failed"],
            id="after a failure",
        ),
        pytest.param(
            {"failurePolicy": {"type": "Continue"}},
            lambda history: (history.pod("n1-a"), history.ends("n1-a", "Failed"), history.pod("n2-a")),
            [],
            id="however pods end",
        ),
        pytest.param(
            {},
            lambda history: (all_done(history), history.node("n4"), history.pod("n4-a")),
            ["makes a pod for a job that is over"],
            id="after the end",
        ),
        pytest.param(
            {},
            lambda history: (history.pod("n1-a"), history.delete("n1-a")),
            ["deletes the pod of n1 without a reason"],
            id="taken away",
        ),
        pytest.param(
            {},
            lambda history: (history.pod("n1-a"), history.node("n1", cordoned=True), history.delete("n1-a")),
            [],
            id="taken away from a cordoned node",
        ),
        pytest.param(
            {},
            lambda history: (
                three(history),
                history.ends("n1-a", "Failed"),
                history.delete("n2-a"),
                history.says(**FAILED),
            ),
            [],
            id="failed",
        ),
        pytest.param(
            {},
            lambda history: (
                three(history),
                history.ends("n1-a", "Failed"),
                history.ends("n2-a"),
                history.delete("n2-a"),
            ),
            ["deletes the pod of n2 without a reason"],
            id="one that has succeeded goes with the failure",
        ),
        pytest.param(
            {},
            lambda history: (three(history), history.says(**FAILED)),
            ["fails without a reason"],
            id="failed for nothing",
        ),
        pytest.param(
            {},
            lambda history: (three(history), history.ends("n1-a"), history.ends("n3-a"), history.says(**DONE)),
            ["is over, though n2 is not done"],
            id="completed too early",
        ),
        pytest.param(
            {},
            lambda history: (all_done(history), history.says(**DONE, succeeded=2)),
            ["changes the status of a job that is over"],
            id="another status in the end",
        ),
        pytest.param(
            {"completionPolicy": {"ttlSecondsAfterFinished": 60}},
            lambda history: (all_done(history), history.remove(BROADCAST_JOB, "web")),
            ["deletes a job before its time has come"],
            id="deleted too early",
        ),
    ],
)
def test_broadcasts(settings: Json, play: Story, expected: list[str]) -> None:
    history = BroadcastHistoryBuilder(**settings)
    play(history)
    assert told(history) == expected
