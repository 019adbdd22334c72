"""AdvancedCronJobs: each run is started once, in time and under its name, or has to be skipped (advancedcronjob.md §4).

No run can start while no replica holds the lease, so only time with a holder counts: a run that has been due for some
seconds of it is missed, unless a later one was started in its place.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from flotilla_common.api.documents import mappings, member
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.resources import JOB, LEASE
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.store import RESTORER
from tests.simulation.oracles.copies import controller
from tests.simulation.oracles.lease_history import LeaseHistory
from tests.simulation.oracles.node_history import Timeline
from tests.simulation.oracles.view import Commit, View

CHILDREN = (JOB, BROADCAST_JOB, IMAGE_LIST_PULL_JOB)
AT = "apps.kruise.io/scheduled-at"
PERIODS = {"* * * * *": 60, "*/2 * * * *": 120}
"""The periods of the schedules whose times are computed here, in seconds. Of others only double runs are found."""

PROMPT = 5.0
"""Seconds within which a due run is started while a replica holds the lease."""


class CronHistory:
    """The history of one AdvancedCronJob."""

    def __init__(self) -> None:
        self.looks: Timeline[Json] = Timeline()
        self.runs: dict[int, str] = {}  # by the time at which they were due: the uid of the child
        self.children: dict[str, Timeline[Json | None]] = {}
        self.due: dict[int, float] = {}  # runs that nobody has started yet: how long somebody had held the lease then
        self.next = 0  # the next run that will be due


class Crons:
    """The rule for AdvancedCronJobs: the history of each, and how long the lease was held."""

    checks_leases = True  # somebody must have held one for a run to be late

    def __init__(self) -> None:
        self._histories: dict[str, CronHistory] = {}
        self._tenure = LeaseHistory("flotilla-jobs-")
        self._foreign: set[str] = set()  # names that others have taken

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.resource == LEASE:
            self._tenure.take(version)
        elif version.resource == ADVANCED_CRON_JOB and version.after is not None:
            yield from self._changed(view, commit, version.after)
        elif version.resource in CHILDREN:
            history = self._histories.get(controller(version.before or version.after or {}))
            if history is not None:
                yield from self._child(view, commit, history)
            elif version.after is not None:
                self._foreign.add(version.name)
        for history in self._histories.values():
            yield from self._missed(view, history)

    def _changed(self, view: View, commit: Commit, document: Json) -> Iterator[str]:
        history = self._histories.setdefault(commit.version.uid, CronHistory())
        before, after = (_last(one) for one in (commit.version.before, document))
        if commit.ours and after < before:
            yield f"lastScheduleTime goes back by {before - after} s"
        old = history.looks.now if history.looks.values else None
        history.looks.record(view.at, document)
        if old is None or old["spec"] != document["spec"]:
            history.due.clear()
            history.next = _following(document, int(view.now.timestamp()))

    def _child(self, view: View, commit: Commit, history: CronHistory) -> Iterator[str]:
        version = commit.version
        if commit.ours and version.before is None and version.after is not None:
            yield from _Start(view, history, version.after).faults()
        elif commit.ours and commit.marked_deleted and version.before is not None:
            yield from _removed(view, history, version.before)
        history.children.setdefault(version.uid, Timeline()).record(view.at, version.after)
        if version.before is None and version.after is not None:
            run = _run(version.after)
            history.runs[run] = version.uid
            history.due = {due: held for due, held in history.due.items() if due > run}
            history.next = max(history.next, _following(history.looks.now, run))
        elif version.after is None and version.writer == RESTORER:
            history.runs = {run: uid for run, uid in history.runs.items() if uid != version.uid}

    def _missed(self, view: View, history: CronHistory) -> Iterator[str]:
        """Yield runs that should have been started by now."""
        now, job, held = view.now.timestamp(), history.looks.now, self._tenure.held(view.at)
        if not _starts(job) or any(_is_going(told.now) for told in history.children.values() if _waits(job)):
            history.due.clear()
            history.next = max(history.next, _following(job, int(now)))
        while history.next and history.next <= now:
            if f"{job['metadata']['name']}-{history.next}" not in self._foreign:
                history.due[history.next] = held
            history.next = _following(job, history.next)
        for due, then in list(history.due.items()):
            if held - then > PROMPT + view.lag:
                yield f"the run of {_clock(due)} has not been started"
                del history.due[due]
            elif now - due > job["spec"].get("startingDeadlineSeconds", now):
                del history.due[due]


class _Start:
    """A check of a run that we start."""

    def __init__(self, view: View, history: CronHistory, child: Json) -> None:
        self._scene = view
        self._course = history
        self._child = child
        self._run = _run(child)
        self._looks = list(history.looks.lately(view.since))

    def faults(self) -> Iterator[str]:
        """Yield the breaches of the start."""
        job, run, name = self._course.looks.now, self._run, self._child["metadata"]["name"]
        if name != f"{job['metadata']['name']}-{run}":
            yield f"is called {name}, though it is the run of {_clock(run)}"
        if run in self._course.runs:
            yield f"starts the run of {_clock(run)} twice"
        if all("deletionTimestamp" in one["metadata"] for one in self._looks):
            yield "starts a run of what is being deleted"
        if all(one["spec"].get("paused") for one in self._looks):
            yield "starts a run of what is paused"
        yield from self._untimely()
        yield from self._beside()

    def _untimely(self) -> Iterator[str]:
        run, now = self._run, self._scene.now.timestamp()
        then = now - self._scene.lag
        created = datetime.fromisoformat(self._course.looks.now["metadata"]["creationTimestamp"]).timestamp()
        if not created < run <= now:
            yield f"starts a run of {_clock(run)} at {_clock(int(now))}"
        known = [one for one in self._looks if one["spec"]["schedule"] in PERIODS]
        periods = [PERIODS[one["spec"]["schedule"]] for one in known]
        if len(known) == len(self._looks):
            if all(run % period for period in periods):
                yield f"starts a run of {_clock(run)}, when none is due"
            if all(run + period < then - 1 for period in periods):
                yield f"starts the run of {_clock(run)}, though later ones are due"
        deadlines = [one["spec"].get("startingDeadlineSeconds", now) for one in self._looks]
        if then - run > max(deadlines) + 1:
            yield f"starts the run of {_clock(run)} after its deadline"

    def _beside(self) -> Iterator[str]:
        """Return the runs that have not ended, as seen after the visibility lag."""
        policies = {str(one["spec"].get("concurrencyPolicy", "Allow")) for one in self._looks}
        for told in self._course.children.values():
            lately = list(told.lately(self._scene.since))
            names = [one["metadata"]["name"] for one in lately if one is not None]
            if policies == {"Forbid"} and told.now is not None and all(map(_is_going, lately)):
                yield f"starts a run beside {names[-1]}"
            elif policies == {"Replace"} and told.now is not None and all(map(_is_untouched, lately)):
                yield f"starts a run beside {names[-1]}, which is not deleted"


def _removed(view: View, history: CronHistory, child: Json) -> Iterator[str]:
    """Check the deletion of a child: it is replaced, or exceeds a history limit."""
    specs = [one["spec"] for one in history.looks.lately(view.since)]
    end = end_of(child)
    if end and "ttlSecondsAfterFinished" in member(child, "spec", "completionPolicy"):
        return  # its own controller does it
    if not end:
        if all(spec.get("concurrencyPolicy") != "Replace" for spec in specs):
            yield f"deletes {child['metadata']['name']}, which is at work"
        return
    key, default = {"successful": ("successfulJobsHistoryLimit", 3), "failed": ("failedJobsHistoryLimit", 1)}[end]
    there = [told.now for told in history.children.values() if told.now is not None and end_of(told.now) == end]
    alive = [one for one in there if "deletionTimestamp" not in one["metadata"]]
    if len(alive) <= min(spec.get(key, default) for spec in specs):
        yield f"deletes {child['metadata']['name']}, one of {len(alive)} that were {end}"


def end_of(child: Json) -> str:
    """Return `successful` or `failed`; empty while the child is active."""
    status = member(child, "status")
    if child["kind"] == IMAGE_LIST_PULL_JOB.kind:
        done = status.get("succeeded", 0) == status.get("desired", 0)
        return ("successful" if done else "failed") if "completionTime" in status else ""
    ends = {"Complete": "successful", "Failed": "failed"}
    found = (ends[one["type"]] for one in mappings(status.get("conditions")) if one["type"] in ends)
    return next(found, "")


def _is_going(child: Json | None) -> bool:
    return child is not None and not end_of(child)


def _is_untouched(child: Json | None) -> bool:
    return _is_going(child) and "deletionTimestamp" not in (child or {})["metadata"]


def _starts(job: Json) -> bool:
    """Report whether due runs are started."""
    return not job["spec"].get("paused") and "deletionTimestamp" not in job["metadata"]


def _waits(job: Json) -> bool:
    return job["spec"].get("concurrencyPolicy") == "Forbid"


def _run(child: Json) -> int:
    """Return when the child was due."""
    return int(datetime.fromisoformat(child["metadata"]["annotations"][AT]).timestamp())


def _last(job: Json | None) -> int:
    """Return when the last run of the status was due; 0 for none."""
    told = member(job or {}, "status").get("lastScheduleTime")
    return int(datetime.fromisoformat(told).timestamp()) if told else 0


def _following(job: Json, now: int) -> int:
    """Return the next run after a time; 0 if the schedule is not computed here."""
    period = PERIODS.get(job["spec"]["schedule"], 0)
    return (now // period + 1) * period if period else 0


def _clock(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}"
