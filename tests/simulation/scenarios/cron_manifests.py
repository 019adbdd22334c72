"""AdvancedCronJobs in short form, and their final state.

The world begins at midnight: `1:00` is the first minute that is due.
"""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import msgspec

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import JOB, POD, Resource
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.cluster.kubelet import EXITS_ANNOTATION
from tests.simulation.loop import EPOCH
from tests.simulation.oracles.crons import end_of
from tests.simulation.scenarios.broadcastjob import EVERY, job_template
from tests.simulation.scenarios.manifests import spec
from tests.simulation.scenarios.pull_manifests import ONE
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import (
    NAMESPACE_NAME,
    ChangePod,
    Create,
    Remove,
    Sleep,
    Stage,
    Stalled,
    Step,
    until,
)

SERVICE = "jobs"


def cron(template: Json, *, schedule: str = "* * * * *", policy: str = "Allow", **spec: object) -> Json:
    """Return an AdvancedCronJob `web`."""
    metadata = {"name": "web", "namespace": NAMESPACE_NAME}
    body = {"schedule": schedule, "concurrencyPolicy": policy, "template": template, **spec}
    kind, version = ADVANCED_CRON_JOB.kind, ADVANCED_CRON_JOB.api_version
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": body}


def jobs(exits: int | None = 0) -> Json:
    """Return a template of Jobs whose pods end with this code, or run until a step ends them."""
    return {"jobTemplate": {"spec": {"backoffLimit": 0, "template": job_template(exits)}}}


def broadcasts(exits: int | None = 0, **spec: object) -> Json:
    """BroadcastJobs."""
    return {"broadcastJobTemplate": {"spec": {"template": job_template(exits), **spec}}}


def pulls() -> Json:
    """Return a template that pulls an image on the first node."""
    spec = {"images": [ONE], "selector": {"names": ["node-1"]}, "completionPolicy": {"type": "Always"}}
    return {"imageListPullJobTemplate": {"spec": spec}}


def moment(at: str) -> float:
    """Fake seconds at that minute and second."""
    minutes, _, seconds = at.partition(":")
    return 60.0 * int(minutes) + int(seconds)


def run_of(at: str) -> str:
    """Return the name of the child that was due at this time."""
    return f"web-{int(EPOCH.timestamp() + moment(at))}"


class Until(Step):
    """Wait until the clock of the world shows this time; if it is later already, not at all."""

    at: str

    async def play(self, stage: Stage) -> None:
        passed = (stage.world.clock.now() - EPOCH).total_seconds()
        await Sleep(seconds=max(moment(self.at) - passed, 0)).play(stage)


class WaitRun(Step):
    """Wait until the status has a run that was due at this time, or later; for the `first`, no earlier one."""

    at: str
    first: bool = False

    async def play(self, stage: Stage) -> None:
        wanted = rfc3339(EPOCH + timedelta(seconds=moment(self.at)))

        def reached() -> bool:
            found = stage.current.get(ADVANCED_CRON_JOB, NAMESPACE_NAME, "web") or {}
            last = found.get("status", {}).get("lastScheduleTime", "")
            if self.first and "" < last < wanted:
                raise Stalled(f"a run of {last} was started, none before {wanted} may be")
            return last >= wanted

        await until(stage, reached, str(self))


def ended(at: str) -> ChangePod:
    """End the pod of a Job."""
    exits = {EXITS_ANNOTATION: msgspec.json.encode({"main": 0}).decode()}
    return ChangePod(patch={"metadata": {"annotations": exits}}, owner=run_of(at))


def removed(at: str) -> Remove:
    """Let a user delete a Job."""
    return Remove(name=run_of(at), kind=JOB.kind)


PAUSED, RESUMED = spec(paused=True), spec(paused=False)


class Ran(Frozen):
    """Exactly these children are there, by when they were due, and how they ended; and the status says so."""

    runs: dict[str, str] = {}  # "successful", "failed"; empty: at work
    last: str = ""  # when the last run was due that was started
    kind: str = JOB.kind
    exists: bool = True
    foreign: int = 0  # children of nobody

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        found = [
            one for kind in (JOB, BROADCAST_JOB, IMAGE_LIST_PULL_JOB) for one in stage.current.all(kind, NAMESPACE_NAME)
        ]
        own = [one for one in found if one["metadata"].get("ownerReferences")]
        runs = {one["metadata"]["name"]: (one["kind"], end_of(one)) for one in own}
        if runs != (wanted := {run_of(at): (self.kind, end) for at, end in self.runs.items()}):
            yield f"the runs are {runs}, not {wanted}"
        if len(found) - len(own) != self.foreign:
            yield f"{len(found) - len(own)} children have no owner, not {self.foreign}"
        metadata = [one["metadata"] for one in stage.current.all(POD, NAMESPACE_NAME)]
        if loose := [one["name"] for one in metadata if not one.get("ownerReferences")]:
            yield f"nobody owns {loose}"
        document = stage.current.get(kind, NAMESPACE_NAME, name)
        if (document is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        status: Json = (document or {}).get("status", {})
        last = rfc3339(EPOCH + timedelta(seconds=moment(self.last))) if self.last else None
        if status.get("lastScheduleTime") != last:
            yield f"the last run was due at {status.get('lastScheduleTime')}, not at {last}"
        active = sorted(one["name"] for one in status.get("active", ()))
        if document is not None and active != sorted(run_of(at) for at, end in self.runs.items() if not end):
            yield f"the status says that {active} are at work"


def given(document: Json, at: str = "0:50") -> tuple[Step, ...]:
    """Create the object some time before."""
    return Create(document=document), Until(at=at)


scheduled = partial(Scenario, kind=ADVANCED_CRON_JOB.kind, services=(SERVICE,), every=EVERY, exact=False, timed=True)
"""A scenario about the AdvancedCronJob `web`."""
