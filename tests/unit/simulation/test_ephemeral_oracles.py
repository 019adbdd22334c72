"""The promises of EphemeralJobs: each rule is checked with small histories that break it, or nearly do."""

from collections.abc import Callable
from typing import Any

import pytest

from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from flotilla_common.api.resources import POD, Resource
from tests.simulation.oracles.ephemerals import Ephemerals
from tests.unit.simulation.object_history_builder import Json, ObjectHistoryBuilder

OVER = {"phase": "Succeeded", "completionTime": "2026-01-01T00:00:03Z"}


class EphemeralHistoryBuilder(ObjectHistoryBuilder):
    """A history of the job `web` and of pods, a second between two changes."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(Ephemerals())
        self._spec: Json = {"selector": {"matchLabels": {"app": "web"}}, **spec}
        self.job()

    def job(self, *, by: str = "user", after: float = 1.0, status: Json | None = None, **spec: Any) -> None:
        """Write members of the job's spec, and its status."""
        self._spec |= spec
        self._put(EPHEMERAL_JOB, "web", {"spec": dict(self._spec), "status": status or {}}, by, after)

    def pod(self, name: str, *, app: str = "web", by: str = "user", code: int | None = None, **jobs: str) -> None:
        """Write a pod with ephemeral containers (name=uid of the job) that run, or ended with `code`."""
        containers = [{"name": one, "env": [{"name": "KRUISE_EJOB_ID", "value": uid}]} for one, uid in jobs.items()]
        state: Json = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
        body: Json = {"metadata": {"labels": {"app": app}}, "spec": {"ephemeralContainers": containers}}
        body["status"] = {
            "phase": "Running",
            "ephemeralContainerStatuses": [{"name": one, "state": state} for one in jobs],
        }
        self._put(POD, name, body, by, 1.0)

    def inject(self, name: str, container: str = "dbg") -> None:
        """Add the job's container to those of a pod."""
        held = self.held(POD, name)
        new = {"name": container, "env": [{"name": "KRUISE_EJOB_ID", "value": "web"}]}
        found = [*held["spec"]["ephemeralContainers"], new]
        self._put(POD, name, held | {"spec": {"ephemeralContainers": found}}, "jobs-0", 1.0)

    def gone(self, *, by: str = "jobs-0") -> None:
        """Delete the job."""
        self._put(EPHEMERAL_JOB, "web", None, by, 1.0)

    def _put(self, resource: Resource, name: str, body: Json | None, by: str, after: float) -> None:
        self.put(resource, name, body, by=by, at=self.at + after)


Story = Callable[[EphemeralHistoryBuilder], object]


def two(history: EphemeralHistoryBuilder) -> None:
    """Write two pods, the first with a container of the job."""
    history.pod("a")
    history.pod("b")
    history.inject("a")


@pytest.mark.parametrize(
    ("settings", "play", "expected"),
    [
        pytest.param(
            {},
            lambda history: (two(history), history.pod("a", code=0, dbg="web"), history.inject("b")),
            [],
            id="in turn",
        ),
        pytest.param(
            {},
            lambda history: (two(history), history.inject("b")),
            ["is the 2th pod at work, 1 may be"],
            id="two at once",
        ),
        pytest.param(
            {"parallelism": 2}, lambda history: (two(history), history.inject("b")), [], id="two at once may be"
        ),
        pytest.param(
            {"parallelism": 2, "replicas": 1},
            lambda history: (two(history), history.inject("b")),
            ["is the 2th pod of the job, which wants 1"],
            id="one too many",
        ),
        pytest.param(
            {"parallelism": 2},
            lambda history: (two(history), history.inject("a", "more")),
            ["gets containers of one job twice"],
            id="twice",
        ),
        pytest.param(
            {},
            lambda history: (history.pod("c", app="other"), history.inject("c")),
            ["gets containers of a job that does not choose it"],
            id="not chosen",
        ),
        pytest.param(
            {},
            lambda history: (history.pod("a"), history.job(paused=True), history.inject("a")),
            ["gets containers of a job that is paused"],
            id="paused",
        ),
        pytest.param(
            {},
            lambda history: (history.pod("a"), history.job(by="jobs-0", status=OVER), history.inject("a")),
            ["gets containers of a job that is over"],
            id="over",
        ),
        pytest.param(
            {},
            lambda history: (history.pod("a"), history.gone(by="user"), history.inject("a")),
            ["gets containers of a job that does not exist"],
            id="gone",
        ),
        pytest.param({}, lambda history: history.pod("a", by="kubelet", dbg="another"), [], id="of somebody else"),
        pytest.param(
            {},
            lambda history: (
                history.job(by="jobs-0", status=OVER),
                history.job(by="jobs-0", status=OVER | {"failed": 1}),
            ),
            ["changes the status of a job that is over"],
            id="another status in the end",
        ),
        pytest.param(
            {"ttlSecondsAfterFinished": 60},
            lambda history: (history.job(by="jobs-0", status=OVER), history.gone()),
            ["deletes a job before its time has come"],
            id="deleted too early",
        ),
        pytest.param(
            {"ttlSecondsAfterFinished": 0},
            lambda history: (history.job(by="jobs-0", status=OVER), history.gone()),
            [],
            id="deleted in time",
        ),
    ],
)
def test_ephemerals(settings: Json, play: Story, expected: list[str]) -> None:
    history = EphemeralHistoryBuilder(**settings)
    play(history)
    assert history.breaches == expected
