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
from flotilla_common.control.executor import Report
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Action, Create, Delete, Outcome, OutcomeKind, Patch, Plan
from flotilla_common.control.watches import Watch
from flotilla_common.model.writes import patched
from flotilla_jobs.advancedcronjob.controller import BROADCAST_JOBS, CRON_JOBS, JOBS, LISTS, Gatherer
from flotilla_jobs.advancedcronjob.plan import plan
from flotilla_jobs.advancedcronjob.snapshot import Options
from tests.support import fake_clock
from tests.support.controller_context import FakeContext
from tests.testkit.documents import Json, decoded

PASSES = 10
"""More passes in a row than anything needs: a plan that never rests is a bug."""

BACK_OFF = 1.0
"""Seconds until a failed pass is tried again."""

OK = Outcome(kind=OutcomeKind.OK)
DENIED = Outcome(kind=OutcomeKind.DENIED, message='admission webhook "v" denied the request: no')
DONE = (OutcomeKind.OK, OutcomeKind.NOT_FOUND)
WATCHES: Mapping[Resource, Watch[Any]] = {
    ADVANCED_CRON_JOB: CRON_JOBS,
    JOB: JOBS,
    BROADCAST_JOB: BROADCAST_JOBS,
    IMAGE_LIST_PULL_JOB: LISTS,
}
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
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": stamp("10:00:30")}
    return {
        "metadata": metadata | {"resourceVersion": "1"},
        "spec": {**defaults, "schedule": schedule, "template": TEMPLATES[kind], **spec},
    }


class World:
    """Objects as documents, the service's tables, and the executed actions."""

    def __init__(self, document: Json | None = None, *, start: str = "10:00:30", zone: str = "UTC") -> None:
        self.context = FakeContext()
        self.gatherer = Gatherer(self.context, Options(zone=zone))
        self.documents: dict[tuple[str, str], Json] = {}
        self.verdict: Callable[[Action], Outcome] = lambda action: OK
        """The apiserver's answer to a write."""
        self.blind = False  # the tables do not receive children
        self.started: list[str] = []  # names of all children that were ever created
        self.log: list[str] = []  # writes that succeeded: verb and name
        self.events: list[tuple[str, str]] = []
        self.last = Plan()
        self._memory = Memory()
        self._failed = False
        self._failed_at = fake_clock.START
        self._version = 100
        self.set_clock(start)
        self.put(ADVANCED_CRON_JOB, document or cron_job())
        self.passes()

    @property
    def now(self) -> datetime:
        return self.context.clock.now()

    @property
    def name(self) -> str:
        return next(name for kind, name in self.documents if kind == ADVANCED_CRON_JOB.kind)

    @property
    def job(self) -> Json:
        return self.documents[ADVANCED_CRON_JOB.kind, self.name]

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
    def runs(self) -> list[str]:
        """Return when all runs ever started were due."""
        return [self.due(name) for name in self.started]

    @property
    def here(self) -> list[str]:
        """Return when the existing children were due."""
        return sorted(self.due(name) for kind, name in self.documents if kind != ADVANCED_CRON_JOB.kind)

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
        self._memory, self._failed = Memory(), False
        self.passes()

    def passes(self) -> None:
        """Plan until there is nothing more to write, or something failed."""
        for _ in range(PASSES):
            report = self._pass()
            if self._failed or not report.counts:
                return
        raise AssertionError(f"never settles: {self.log}")

    def edit(self, **spec: Any) -> None:
        """Change the spec as a user; None removes a member."""
        self.put(ADVANCED_CRON_JOB, merge(self.job, {"spec": spec}))
        self.passes()

    def change(self, due: str, **members: Any) -> None:
        """Change a child from outside."""
        (key,) = [key for key in self.documents if key[1] == f"{self.name}-{unix(due)}"]
        kind = next(resource for resource in WATCHES if resource.kind == key[0])
        self.put(kind, merge(self.documents[key], members))
        self.passes()

    def end(self, due: str, how: str = "Complete") -> None:
        """End a Job or BroadcastJob."""
        self.change(due, status={"conditions": [{"type": how, "status": "True"}]})

    def delete(self, due: str) -> None:
        """Delete a child from outside."""
        (key,) = [key for key in self.documents if key[1] == f"{self.name}-{unix(due)}"]
        self._remove(*key)
        self.passes()

    def put(self, resource: Resource, document: Json) -> None:
        """Store the object in the apiserver, and in the tables."""
        self._version += 1
        metadata = document["metadata"]
        metadata = {"namespace": "ns", "uid": f"uid-{self._version}", **metadata, "resourceVersion": str(self._version)}
        document = {**document, "metadata": metadata}
        self.documents[resource.kind, metadata["name"]] = document
        if not self.blind or resource == ADVANCED_CRON_JOB:
            watch = WATCHES[resource]
            self.context.put(watch, decoded(document, watch.type))

    def _pass(self) -> Report:
        snapshot = self.gatherer.gather(("ns", self.name), self._memory)
        assert snapshot is not None
        self.last = plan(snapshot, self.now)
        self.events += [(event.reason, event.message) for event in self.last.events]
        report = Report()
        for stage in self.last.stages:
            outcomes = [self._write(action, report) for (action,) in stage.chains]
            if stage.stop_on_failure and any(outcome.kind not in DONE for outcome in outcomes):
                break
        refused = tuple(report.refused.values())
        self._memory = Memory(failures=report.failures, refused=refused, notes=self.last.notes)
        self._failed = report.failed
        self._failed_at = self.now
        return report

    def _write(self, action: Action, report: Report) -> Outcome:
        outcome = self.verdict(action)
        if outcome.ok:
            outcome = self._carry_out(action)
        elif outcome.kind is OutcomeKind.NOT_FOUND:  # the executor looks
            self._remove(action.resource.kind, action.name)
        report.add(action, outcome)
        return outcome

    def _carry_out(self, action: Action) -> Outcome:
        key = (action.resource.kind, action.name)
        if isinstance(action, Create):
            if key in self.documents:
                return self._already_exists(action)
            self.started.append(action.name)
            self.put(action.resource, action.body)
        elif isinstance(action, Delete):
            if key not in self.documents:
                return Outcome(kind=OutcomeKind.NOT_FOUND)
            assert self.documents[key]["metadata"]["uid"] == action.uid
            self._remove(*key)
        else:
            self._patch(action)
        self.log.append(f"{action.verb} {action.name}")
        return OK

    def _already_exists(self, action: Create) -> Outcome:
        """Return the executor's outcome: the object is read, and one of ours is a success."""
        found, blind = self.documents[action.resource.kind, action.name], self.blind
        self.blind = False
        self.put(action.resource, found)
        self.blind = blind
        owners = found["metadata"].get("ownerReferences", [])
        ours = [one["uid"] for one in owners] == [one["uid"] for one in action.body["metadata"]["ownerReferences"]]
        return OK if ours else Outcome(kind=OutcomeKind.ALREADY_EXISTS, message=f"{action.name} already exists")

    def _patch(self, action: Patch) -> None:
        assert action.subresource == "status"
        assert action.uid == self.job["metadata"]["uid"]
        self.put(action.resource, patched(self.job, action))

    def _remove(self, kind: str, name: str) -> None:
        uid = self.documents.pop((kind, name))["metadata"]["uid"]
        resource = next(resource for resource in WATCHES if resource.kind == kind)
        self.context.table(WATCHES[resource]).remove("ns", name, uid)

    def _wake_at(self) -> datetime | None:
        again = [self._failed_at + timedelta(seconds=BACK_OFF)] if self._failed else []
        return min([*again, *filter(None, [self.last.wake_at])], default=None)
