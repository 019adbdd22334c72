"""The promises of AdvancedCronJobs: each rule is checked with small histories that break it, or nearly do."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.resources import JOB, LEASE, Resource
from tests.simulation.loop import EPOCH
from tests.simulation.oracles.crons import Crons
from tests.unit.simulation.object_history_builder import Json, ObjectHistoryBuilder


def time_of(seconds: float) -> str:
    return f"{EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


class CronHistoryBuilder(ObjectHistoryBuilder):
    """A history of the AdvancedCronJob `web`, created at midnight, which runs each minute.

    A replica holds the lease, and renews it each second.
    """

    def __init__(self, **spec: Any) -> None:
        super().__init__(Crons())
        self._spec: Json = {"schedule": "* * * * *", "concurrencyPolicy": "Allow", **spec}
        self.asks()

    def until(self, at: float, *, served: bool = True) -> None:
        """Let time pass; `served`: a replica holds the lease meanwhile."""
        while served and self.at + 1 < at:
            lease = {"spec": {"holderIdentity": "jobs-0-1", "leaseDurationSeconds": 3}}
            self._put(LEASE, "flotilla-jobs-0", lease, at=self.at + 1)
        self.at = at

    def asks(self, *, last: int | None = None, by: str = "user", **spec: Any) -> None:
        """Write members of the spec, and the status's last run."""
        self._spec |= spec
        status = {} if last is None else {"lastScheduleTime": time_of(last)}
        self._put(ADVANCED_CRON_JOB, "web", {"spec": dict(self._spec), "status": status}, by=by)

    def starts(self, due: int, name: str = "") -> None:
        """Start a run."""
        owner = {"kind": "AdvancedCronJob", "uid": "web", "controller": True}
        metadata = {"annotations": {"apps.kruise.io/scheduled-at": time_of(due)}, "ownerReferences": [owner]}
        name = name or f"web-{int(EPOCH.timestamp()) + due}"
        self._put(JOB, name, {"metadata": metadata, "kind": "Job"})

    def ends(self, due: int, how: str = "Complete") -> None:
        """End a child."""
        name = f"web-{int(EPOCH.timestamp()) + due}"
        self._put(JOB, name, self.held(JOB, name) | {"status": {"conditions": [{"type": how}]}}, by="jobcontroller")

    def removes(self, due: int, by: str = "jobs-0") -> None:
        """Remove a child."""
        self._put(JOB, f"web-{int(EPOCH.timestamp()) + due}", None, by=by)

    def _put(
        self, resource: Resource, name: str, body: Json | None, by: str = "jobs-0", at: float | None = None
    ) -> None:
        self.put(resource, name, body, by=by, at=self.at + 0.1 if at is None else at)


Story = Callable[[CronHistoryBuilder], object]


def first(history: CronHistoryBuilder) -> None:
    """Start the first run in time."""
    history.until(60)
    history.starts(60)


def both(history: CronHistoryBuilder) -> None:
    """Start the first and the second run in time."""
    first(history)
    history.until(120)
    history.starts(120)


@pytest.mark.parametrize(
    ("settings", "play", "expected"),
    [
        pytest.param({}, lambda history: (both(history), history.until(150)), [], id="each minute"),
        pytest.param(
            {}, lambda history: history.until(70), ["the run of 00:01:00 has not been started"], id="not started"
        ),
        pytest.param(
            {},
            lambda history: (
                history.until(30),
                history.until(170, served=False),
                history.starts(120),
                history.until(179),
            ),
            [],
            id="nobody was there",
        ),
        pytest.param(
            {},
            lambda history: (
                history.until(30),
                history.until(170, served=False),
                history.until(171),
                history.starts(60),
            ),
            ["starts the run of 00:01:00, though later ones are due"],
            id="not the latest",
        ),
        pytest.param(
            {"startingDeadlineSeconds": 10},
            lambda history: (history.until(30), history.until(100, served=False), history.until(110)),
            [],
            id="too late",
        ),
        pytest.param(
            {"startingDeadlineSeconds": 10},
            lambda history: (
                history.until(30),
                history.until(100, served=False),
                history.until(101),
                history.starts(60),
            ),
            ["starts the run of 00:01:00 after its deadline"],
            id="started too late",
        ),
        pytest.param(
            {},
            lambda history: (first(history), history.removes(60, by="user"), history.starts(60)),
            ["starts the run of 00:01:00 twice"],
            id="twice, though the first is gone",
        ),
        pytest.param(
            {},
            lambda history: (history.until(60), history.starts(60, name="web-x")),
            ["is called web-x, though it is the run of 00:01:00"],
            id="another name",
        ),
        pytest.param(
            {},
            lambda history: (first(history), history.starts(90)),
            ["starts a run of 00:01:30 at 00:01:00", "starts a run of 00:01:30, when none is due"],
            id="not due",
        ),
        pytest.param({"paused": True}, lambda history: history.until(100), [], id="paused"),
        pytest.param(
            {"paused": True},
            lambda history: (history.until(60), history.starts(60)),
            ["starts a run of what is paused"],
            id="started though paused",
        ),
        pytest.param(
            {"concurrencyPolicy": "Forbid"}, both, ["starts a run beside web-1767225660"], id="beside another"
        ),
        pytest.param(
            {"concurrencyPolicy": "Forbid"},
            lambda history: (first(history), history.until(150), history.ends(60), history.starts(120)),
            [],
            id="behind another",
        ),
        pytest.param(
            {"concurrencyPolicy": "Replace"},
            both,
            ["starts a run beside web-1767225660, which is not deleted"],
            id="not replaced",
        ),
        pytest.param(
            {"concurrencyPolicy": "Replace"},
            lambda history: (first(history), history.until(120), history.removes(60), history.starts(120)),
            [],
            id="replaced",
        ),
        pytest.param(
            {},
            lambda history: (first(history), history.removes(60)),
            ["deletes web-1767225660, which is at work"],
            id="taken away",
        ),
        pytest.param(
            {"failedJobsHistoryLimit": 1},
            lambda history: (first(history), history.ends(60, "Failed"), history.removes(60)),
            ["deletes web-1767225660, one of 1 that were failed"],
            id="forgotten",
        ),
        pytest.param(
            {"failedJobsHistoryLimit": 1},
            lambda history: (
                both(history),
                history.ends(60, "Failed"),
                history.ends(120, "Failed"),
                history.removes(60),
            ),
            [],
            id="one too many",
        ),
        pytest.param(
            {},
            lambda history: (both(history), history.asks(last=120, by="jobs-0"), history.asks(last=60, by="jobs-0")),
            ["lastScheduleTime goes back by 60 s"],
            id="time goes back",
        ),
    ],
)
def test_crons(settings: Json, play: Story, expected: list[str]) -> None:
    history = CronHistoryBuilder(**settings)
    play(history)
    assert history.breaches == expected
