"""AdvancedCronJobs for tests with kubectl, and the runs that they start.

Minutes are too long for tests: schedules here are `@every` few seconds, counted from the object's creation and then
from run to run. When a test has seen enough it sets the schedule to `YEARLY`, and no more runs fall due.
"""

from datetime import datetime

from flotilla_common.api.kinds.advancedcronjob.types import SCHEDULED_AT
from tests.support.broadcast import BODY, COMPLETES
from tests.support.workspace import Workspace, moment
from tests.testkit.documents import Json

NAME = "nightly"
YEARLY = "@yearly"
KINDS = {"jobTemplate": "Job", "broadcastJobTemplate": "BroadcastJob", "imageListPullJobTemplate": "ImageListPullJob"}


def jobs(*, ends: bool = False, annotations: Json | None = None, **spec: object) -> Json:
    """Return a template of built-in Jobs. `ends`: their pods succeed on fake nodes, soon after they have started."""
    template = {"spec": {"template": (COMPLETES if ends else {}) | {"spec": BODY}, **spec}}
    return {"jobTemplate": template | ({"metadata": {"annotations": annotations}} if annotations else {})}


def broadcasts(*, ends: bool = False, pod: Json | None = None, **spec: object) -> Json:
    """Return a template of BroadcastJobs. `pod`: more of their pods' spec."""
    template = (COMPLETES if ends else {}) | {"spec": BODY | (pod or {})}
    return {"broadcastJobTemplate": {"spec": {"template": template, **spec}}}


def lists(*images: str) -> Json:
    """Return a template of ImageListPullJobs that select no node."""
    selector = {"matchLabels": {"nobody": "has-it"}}
    spec = {"images": list(images), "selector": selector, "completionPolicy": {"type": "Always"}}
    return {"imageListPullJobTemplate": {"spec": spec}}


def cronjob(
    template: Json, schedule: str = "@every 1s", *, name: str = NAME, version: str = "v1beta1", **spec: object
) -> Json:
    """Return an AdvancedCronJob."""
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "AdvancedCronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "template": template, **spec},
    }


def runs(space: Workspace, kind: str = "Job", name: str = NAME) -> dict[str, Json]:
    """Return the existing runs of an AdvancedCronJob, by name, from the earliest on."""
    return {one["metadata"]["name"]: one for one in sorted(_own(space.objects(kind), name), key=due)}


def listed(space: Workspace, name: str, word: str) -> list[str]:
    """Return the runs of an AdvancedCronJob by time, as the apiserver lists them. `word`: kubectl's for their kind."""
    return [one["metadata"]["name"] for one in sorted(_own(space.read(word)["items"], name), key=due)]


def _own(items: list[Json], name: str) -> list[Json]:
    return [one for one in items if any(owner["name"] == name for owner in one["metadata"].get("ownerReferences", ()))]


def ever(space: Workspace, kind: str = "Job", since: int = 0) -> list[str]:
    """Return the names of all runs ever created, in order of creation."""
    return [event.object["metadata"]["name"] for event in space.history(since, kind) if event.type == "ADDED"]


def due(run: Json) -> datetime:
    """Return when a run was due."""
    return moment(run["metadata"]["annotations"][SCHEDULED_AT])


def begun(space: Workspace, count: int, kind: str = "Job") -> dict[str, Json]:
    """Wait until this many runs have been created, deleted ones included; return the existing ones."""
    space.until(lambda: len(ever(space, kind)) >= count)
    return runs(space, kind)


def stop(space: Workspace, name: str = NAME) -> Json:
    """Stop the schedule; return the object once its service has seen the change."""
    version = space.patch({"spec": {"schedule": YEARLY}}, name)["metadata"]["resourceVersion"]
    space.until(lambda: int(space.clone(name)["metadata"]["resourceVersion"]) >= int(version))
    return space.clone(name)


def active(space: Workspace, name: str = NAME) -> list[str]:
    """Return the names of the runs that the status lists as active."""
    return [one["name"] for one in space.clone(name).get("status", {}).get("active", ())]
