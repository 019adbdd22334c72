"""A world of one AdvancedCronJob and its children, in which plans are executed at once.

Time passes when a test lets it: passes happen when the plan asked for one, when an object changes, and after a failure.
Tests end the children, too.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import JOB, Resource
from flotilla_common.control.plan import Action, Create, Outcome, OutcomeKind, Patch
from flotilla_common.model.writes import Write
from flotilla_jobs.advancedcronjob.controller import CONTROLLER, Gatherer
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot, Options
from tests.support import fake_clock
from tests.testkit.cluster import OK, ControllerCluster
from tests.testkit.documents import Json, metadata

PASSES = 10
"""More passes in a row than anything needs: a plan that never rests is a bug."""

BACK_OFF = 1.0
"""Seconds until a failed pass is tried again."""

DENIED = Outcome(kind=OutcomeKind.DENIED, message='admission webhook "v" denied the request: no')
CHILDREN = (JOB, BROADCAST_JOB, IMAGE_LIST_PULL_JOB)
TEMPLATES: Mapping[str, Json] = {
    "Job": {"jobTemplate": {"metadata": {}, "spec": {"template": {}}}},
    "BroadcastJob": {"broadcastJobTemplate": {"metadata": {}, "spec": {"template": {}}}},
    "ImageListPullJob": {"imageListPullJobTemplate": {"metadata": {}, "spec": {"images": ["nginx:1.25"]}}},
}


def at(clock: str) -> datetime:
    """Return a time on the day of all tests: `10:01` or `10:01:30`."""
    return datetime.fromisoformat(f"2026-03-04T{clock}").replace(tzinfo=UTC)


def stamp(clock: str) -> str:
    return rfc3339(at(clock))


def unix(clock: str) -> int:
    return int(at(clock).timestamp())


def cron_job(schedule: str = "*/1 * * * *", kind: str = "Job", name: str = "a", **spec: Any) -> Json:
    """Return an AdvancedCronJob as after admission, created at 10:00:30."""
    defaults = {"concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    return {
        "metadata": metadata(name, "ns", uid=f"uid-{name}", version=1, created=stamp("10:00:30")),
        "spec": {**defaults, "schedule": schedule, "template": TEMPLATES[kind], **spec},
    }


class World(ControllerCluster[AdvancedCronJobSnapshot, Gatherer]):
    """One AdvancedCronJob and its children."""

    def __init__(self, document: Json | None = None, *, start: str = "10:00:30", zone: str = "UTC") -> None:
        document = document or cron_job()
        super().__init__(CONTROLLER, document["metadata"]["name"], namespace="ns", options=Options(zone=zone))
        self.refuse = self._refusal
        self.verdict: Callable[[Action], Outcome] = lambda action: OK
        """The apiserver's answer to a write."""
        self.blind = False  # the tables do not receive children
        self.events: list[tuple[str, str]] = []
        self._failed_at = fake_clock.START
        self.set_clock(start)
        self.put(ADVANCED_CRON_JOB, document)
        self.passes()

    @property
    def job(self) -> Json:
        return self.held(ADVANCED_CRON_JOB, self.name)

    @property
    def status(self) -> Json:
        return self.job.get("status", {})

    @property
    def last_run(self) -> str:
        """Return the last run as `10:01:00`; empty before the first."""
        return self.status.get("lastScheduleTime", "")[11:19]

    @property
    def active(self) -> list[str]:
        """Return when the active children were due, by the status."""
        return [self.due(reference["name"]) for reference in self.status.get("active", [])]

    @property
    def started(self) -> list[str]:
        """Return the names of all children that were ever created."""
        return [write.action.name for write in self.writes if isinstance(write.action, Create)]

    @property
    def log(self) -> list[str]:
        """Return verb and name of the writes."""
        return [f"{write.action.verb} {write.action.name}" for write in self.writes]

    @property
    def runs(self) -> list[str]:
        """Return when all runs ever started were due."""
        return [self.due(name) for name in self.started]

    @property
    def here(self) -> list[str]:
        """Return when the existing children were due."""
        children = (self.objects.all(kind) for kind in CHILDREN)
        return sorted(self.due(child["metadata"]["name"]) for found in children for child in found)

    @property
    def codes(self) -> list[str]:
        return [reason.code for reason in self.last.reasons]

    @property
    def next_run(self) -> str:
        """Return when the next run is due by the plan, in UTC."""
        (text,) = [reason.message for reason in self.last.reasons if reason.code == "Waiting"]
        return text.removeprefix("the next run is due at ")

    def due(self, name: str) -> str:
        """Return when the run was due: `10:01:00` on the day, with the date on others."""
        moment = datetime.fromtimestamp(int(name.rpartition("-")[2]), UTC)
        return f"{moment:%H:%M:%S}" if moment.date() == at("10:00").date() else f"{moment:%m-%d %H:%M}"

    def set_clock(self, clock: str | datetime) -> None:
        """Set the clock, without any pass."""
        moment = at(clock) if isinstance(clock, str) else clock
        self.context.clock.time = (moment - fake_clock.START).total_seconds()

    def until(self, clock: str | datetime) -> None:
        """Let time pass: passes happen when plans asked for them, and after failures."""
        end = at(clock) if isinstance(clock, str) else clock
        while (wake := self._wake_at()) is not None and wake <= end:
            self.set_clock(max(wake, self.now))
            self.passes()
        self.set_clock(end)

    def down_until(self, clock: str | datetime) -> None:
        """Stop the service until then; its memory is lost."""
        self.set_clock(clock)
        self.restart()

    def restart(self) -> None:
        self.memory.clear()
        self.passes()

    def passes(self) -> None:
        """Plan until there is nothing more to write, or something failed."""
        for _ in range(PASSES):
            self.events += [(event.reason, event.message) for event in self.reconcile().events]
            self._failed_at = self.now
            if self.report.failed or not self.report.counts:
                return
        raise AssertionError(f"never settles: {self.log}")

    def change_spec(self, **spec: Any) -> None:
        """Change the spec as a user; None removes a member."""
        self.put(ADVANCED_CRON_JOB, merge(self.job, {"spec": spec}))
        self.passes()

    def child(self, due: str) -> tuple[Resource, Json]:
        """Return the kind and the child that was due then."""
        name = f"{self.name}-{unix(due)}"
        ((kind, found),) = [(kind, found) for kind in CHILDREN if (found := self.find(kind, name)) is not None]
        return kind, found

    def change(self, due: str, **members: Any) -> None:
        """Change a child from outside."""
        kind, child = self.child(due)
        self.put(kind, merge(child, members))
        self.passes()

    def end(self, due: str, how: str = "Complete") -> None:
        """End a Job or BroadcastJob."""
        self.change(due, status={"conditions": [{"type": how, "status": "True"}]})

    def delete(self, due: str) -> None:
        """Delete a child from outside."""
        self.objects.remove(*self.child(due))
        self.passes()

    def sees(self, resource: Resource, name: str) -> bool:
        return not self.blind or resource == ADVANCED_CRON_JOB

    def write(self, action: Action) -> Write:
        if isinstance(action, Patch):
            assert (action.subresource, action.uid) == ("status", self.job["metadata"]["uid"])
        return super().write(action)

    def _refusal(self, action: Action) -> Outcome | None:
        outcome = self.verdict(action)
        if outcome.kind is OutcomeKind.NOT_FOUND:
            self.vanish(action.resource, action.name)
        return None if outcome.ok else outcome

    def _wake_at(self) -> datetime | None:
        again = [self._failed_at + timedelta(seconds=BACK_OFF)] if self.report.failed else []
        return min([*again, *filter(None, [self.last.wake_at])], default=None)
