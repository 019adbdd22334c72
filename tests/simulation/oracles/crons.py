"""AdvancedCronJobs: every run is started once, in time and under its name, or for a reason not at all
(advancedcronjob.md §4).

Nobody can start a run while nobody holds the lease. So time is counted in which somebody did: a run that has been due
for a while of that is missed, unless a later one was started in its place before.
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
from tests.simulation.oracles.scene import Scene, Step
from tests.simulation.oracles.stands import Told
from tests.simulation.oracles.tenure import Tenure

CHILDREN = (JOB, BROADCAST_JOB, IMAGE_LIST_PULL_JOB)
AT = "apps.kruise.io/scheduled-at"
PERIODS = {"* * * * *": 60, "*/2 * * * *": 120}
"""Of the schedules whose runs are reckoned here, in seconds. Of others it is only seen that no run comes twice."""

PROMPT = 5.0
"""Seconds within which a run is started that is due, if somebody is there."""


class Course:
    """One AdvancedCronJob so far."""

    def __init__(self) -> None:
        self.looks: Told[Json] = Told()
        self.runs: dict[int, str] = {}  # by the time at which they were due: the uid of the child
        self.children: dict[str, Told[Json | None]] = {}
        self.due: dict[int, float] = {}  # runs that nobody has started yet: how long somebody had held the lease then
        self.next = 0  # the next run that will be due


class Crons:
    """All of them, and when somebody held the lease."""

    hears_leases = True  # somebody must have held one for a run to be late

    def __init__(self) -> None:
        self._courses: dict[str, Course] = {}
        self._tenure = Tenure("flotilla-jobs-")
        self._foreign: set[str] = set()  # names that others have taken

    def __call__(self, scene: Scene, step: Step) -> Iterator[str]:
        version = step.version
        if version.resource == LEASE:
            self._tenure.take(version)
        elif version.resource == ADVANCED_CRON_JOB and version.after is not None:
            yield from self._changed(scene, step, version.after)
        elif version.resource in CHILDREN:
            course = self._courses.get(controller(version.before or version.after or {}))
            if course is not None:
                yield from self._child(scene, step, course)
            elif version.after is not None:
                self._foreign.add(version.name)
        for course in self._courses.values():
            yield from self._missed(scene, course)

    def _changed(self, scene: Scene, step: Step, document: Json) -> Iterator[str]:
        course = self._courses.setdefault(step.version.uid, Course())
        before, after = (_last(one) for one in (step.version.before, document))
        if step.ours and after < before:
            yield f"lastScheduleTime goes back by {before - after} s"
        old = course.looks.now if course.looks.values else None
        course.looks.tell(scene.at, document)
        if old is None or old["spec"] != document["spec"]:
            course.due.clear()
            course.next = _following(document, int(scene.now.timestamp()))

    def _child(self, scene: Scene, step: Step, course: Course) -> Iterator[str]:
        version = step.version
        if step.ours and version.before is None and version.after is not None:
            yield from _Start(scene, course, version.after).faults()
        elif step.ours and step.marked_deleted and version.before is not None:
            yield from _removed(scene, course, version.before)
        course.children.setdefault(version.uid, Told()).tell(scene.at, version.after)
        if version.before is None and version.after is not None:
            run = _run(version.after)
            course.runs[run] = version.uid
            course.due = {due: held for due, held in course.due.items() if due > run}
            course.next = max(course.next, _following(course.looks.now, run))
        elif version.after is None and version.writer == RESTORER:
            course.runs = {run: uid for run, uid in course.runs.items() if uid != version.uid}

    def _missed(self, scene: Scene, course: Course) -> Iterator[str]:
        """Runs that should have been started by now."""
        now, job, held = scene.now.timestamp(), course.looks.now, self._tenure.held(scene.at)
        if not _starts(job) or any(_is_going(told.now) for told in course.children.values() if _waits(job)):
            course.due.clear()
            course.next = max(course.next, _following(job, int(now)))
        while course.next and course.next <= now:
            if f"{job['metadata']['name']}-{course.next}" not in self._foreign:
                course.due[course.next] = held
            course.next = _following(job, course.next)
        for due, then in list(course.due.items()):
            if held - then > PROMPT + scene.blind:
                yield f"the run of {_clock(due)} has not been started"
                del course.due[due]
            elif now - due > job["spec"].get("startingDeadlineSeconds", now):
                del course.due[due]


class _Start:
    """What is to be said about a run that we start."""

    def __init__(self, scene: Scene, course: Course, child: Json) -> None:
        self._scene = scene
        self._course = course
        self._child = child
        self._run = _run(child)
        self._looks = list(course.looks.lately(scene.since))

    def faults(self) -> Iterator[str]:
        """What is wrong with it."""
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
        then = now - self._scene.blind
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
        """Of those that have not ended, as it has long been known."""
        policies = {str(one["spec"].get("concurrencyPolicy", "Allow")) for one in self._looks}
        for told in self._course.children.values():
            lately = list(told.lately(self._scene.since))
            names = [one["metadata"]["name"] for one in lately if one is not None]
            if policies == {"Forbid"} and told.now is not None and all(map(_is_going, lately)):
                yield f"starts a run beside {names[-1]}"
            elif policies == {"Replace"} and told.now is not None and all(map(_is_untouched, lately)):
                yield f"starts a run beside {names[-1]}, which is not deleted"


def _removed(scene: Scene, course: Course, child: Json) -> Iterator[str]:
    """We delete a child: one that is replaced, or one too many of the past."""
    specs = [one["spec"] for one in course.looks.lately(scene.since)]
    end = end_of(child)
    if end and "ttlSecondsAfterFinished" in member(child, "spec", "completionPolicy"):
        return  # its own controller does it
    if not end:
        if all(spec.get("concurrencyPolicy") != "Replace" for spec in specs):
            yield f"deletes {child['metadata']['name']}, which is at work"
        return
    key, default = {"successful": ("successfulJobsHistoryLimit", 3), "failed": ("failedJobsHistoryLimit", 1)}[end]
    there = [told.now for told in course.children.values() if told.now is not None and end_of(told.now) == end]
    alive = [one for one in there if "deletionTimestamp" not in one["metadata"]]
    if len(alive) <= min(spec.get(key, default) for spec in specs):
        yield f"deletes {child['metadata']['name']}, one of {len(alive)} that were {end}"


def end_of(child: Json) -> str:
    """`successful` or `failed`; empty while it goes on."""
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
    """Runs are started that are due."""
    return not job["spec"].get("paused") and "deletionTimestamp" not in job["metadata"]


def _waits(job: Json) -> bool:
    return job["spec"].get("concurrencyPolicy") == "Forbid"


def _run(child: Json) -> int:
    """When the child was due."""
    return int(datetime.fromisoformat(child["metadata"]["annotations"][AT]).timestamp())


def _last(job: Json | None) -> int:
    """When the last run was due that the status knows; 0 for none."""
    told = member(job or {}, "status").get("lastScheduleTime")
    return int(datetime.fromisoformat(told).timestamp()) if told else 0


def _following(job: Json, now: int) -> int:
    """The next run after that moment; 0 if it is not reckoned."""
    period = PERIODS.get(job["spec"]["schedule"], 0)
    return (now // period + 1) * period if period else 0


def _clock(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S}"
