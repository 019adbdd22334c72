"""Validation of an AdvancedCronJob (advancedcronjob.md §3.2, §3.3).

The rules read the raw document that the apiserver will store. The apiserver validates the pod template; its faults are
passed in. Further restrictions of Jobs and BroadcastJobs apply when one is created. Clients written in Go leave out
empty members and write absent ones, so templates are compared by meaning.
"""

import copy
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, forbidden, invalid, job_name_faults
from flotilla_common.api.admission.handlers import decoded
from flotilla_common.api.batch import ALWAYS
from flotilla_common.api.documents import Json, JsonValue, is_object, mapping, member, text
from flotilla_common.api.kinds.advancedcronjob.schedule import Schedule, zone_named
from flotilla_common.api.kinds.advancedcronjob.types import FORBID, REPLACE, AdvancedCronJob, to_hub
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.api.kinds.imagelistpulljob.api import MOST_IMAGES
from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob, ImageListPullJobSpec
from flotilla_common.api.kinds.imagepulljob.api import duplicates, image_problem, selection_problem
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.podtemplate import canonical_template

JOB, BROADCAST, IMAGES = "jobTemplate", "broadcastJobTemplate", "imageListPullJobTemplate"
ALL = (JOB, BROADCAST, IMAGES)
OF_PODS = (JOB, BROADCAST)
"""The templates with a pod template; they never change."""


class _JobSpec(Model):
    template: dict[str, Any] = {}


class _JobTemplate(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: _JobSpec = _JobSpec()


_TYPES: dict[str, type[Model]] = {JOB: _JobTemplate, BROADCAST: BroadcastJob, IMAGES: ImageListPullJob}


def given(spec: Json) -> list[str]:
    """Return the names of the templates that are set."""
    templates = member(spec, "template")
    return [name for name in ALL if templates.get(name) is not None]


def check_templates(spec: Json) -> None:
    """Raise ValueError if a template cannot be read."""
    for name in given(spec):
        try:
            decoded(member(spec, "template", name), _TYPES[name])
        except ValueError as fault:
            raise ValueError(f"spec.template.{name}: {fault}") from fault


def pod_template(spec: Json) -> tuple[str, Json] | None:
    """Return path and value of the pod template; None if the chosen template has none."""
    name = next((name for name in OF_PODS if name in given(spec)), None)
    if name is None:
        return None
    template = member(spec, "template", name, "spec").get("template")
    return f"spec.template.{name}.spec.template", template if is_object(template) else {}


def restart_policy(pod: Json) -> object:
    """Return the restart policy of a pod template."""
    return mapping(pod.get("spec")).get("restartPolicy")


_MUTABLE = (
    "schedule",
    "timeZone",
    "startingDeadlineSeconds",
    "concurrencyPolicy",
    "paused",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
    IMAGES,
)
_QUOTED = ", ".join(f"'{name}'" for name in _MUTABLE)
_IMMUTABLE = f"updates to advancedcronjob spec for fields other than {_QUOTED} are forbidden"

LONGEST_DEADLINE = 86400
"""The longest deadline in seconds: a day."""

_PATH = f"spec.template.{IMAGES}.spec"

_NUMBERS = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
_ONE_OF = f"one of {', '.join(ALL[:-1])} and {ALL[-1]}"


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads has a wrong type."""
    hub = to_hub(document)
    decoded(hub, AdvancedCronJob)
    check_templates(mapping(hub.get("spec")))


def validate(document: Json, name: str, old: Json | None = None, template: Iterable[Fault] = ()) -> list[Fault]:
    """Return all faults, including those of its pod `template` and of forbidden changes to `old`."""
    spec = mapping(document.get("spec"))
    changes = change_faults(spec, mapping(old.get("spec"))) if old is not None else ()
    return [*job_name_faults(name), *_spec_faults(spec, template), *changes]


def _spec_faults(spec: Json, template: Iterable[Fault]) -> Iterator[Fault]:
    yield from _schedule_faults(text(spec.get("schedule")), zoned=spec.get("timeZone") is not None)
    if spec.get("timeZone") is not None and (problem := _zone_problem(text(spec["timeZone"]))):
        yield invalid("spec.timeZone", spec["timeZone"], problem)
    for number in _NUMBERS:
        if (spec.get(number) or 0) < 0:
            yield invalid(f"spec.{number}", spec[number], NON_NEGATIVE)
    chosen = given(spec)
    if not chosen:
        yield forbidden("spec.template", f"spec must have one template: {_ONE_OF}")
    elif len(chosen) > 1:
        yield forbidden("spec.template", f"spec can have only one template: {_ONE_OF}")
    yield from template
    if IMAGES in chosen:
        yield from _policy_faults(spec)
        yield from pull_faults(spec)


def _schedule_faults(schedule: str, *, zoned: bool) -> Iterator[Fault]:
    if not schedule:
        yield invalid("spec.schedule", schedule, "schedule cannot be empty, please provide valid cron schedule")
    try:
        Schedule.parse(schedule, None)
    except ValueError as problem:
        yield invalid("spec.schedule", schedule, str(problem))
    if zoned and "TZ" in schedule:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield invalid("spec.schedule", schedule, detail)


def _zone_problem(zone: str) -> str:
    if not zone:
        return "timeZone must be nil or non-empty string"
    if zone.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    try:
        zone_named(zone)
    except ValueError as problem:
        return str(problem)
    return ""


def _policy_faults(spec: Json) -> Iterator[Fault]:
    """Yield the fault of the concurrency policy. Its odd path is the reference's: clients may rely on it."""
    policy = spec.get("concurrencyPolicy")
    if policy not in (REPLACE, FORBID):
        detail = "concurrencyPolicy should be Replace or Forbid with imageListPullJobTemplate"
        yield invalid("spec.spec.concurrencyPolicy", policy, detail)


def pull_faults(spec: Json) -> Iterator[Fault]:
    """Yield the first fault of an AdvancedCronJob's template of ImageListPullJobs, if any."""
    document = member(spec, "template", IMAGES, "spec")
    pulls = decoded(document, ImageListPullJobSpec)
    problems = {
        "selector": selection_problem(pulls),
        "images": _images_problem(pulls.images),
        "completionPolicy": _completion_problem(pulls),
    }
    faults = (invalid(f"{_PATH}.{name}", document.get(name), problem) for name, problem in problems.items() if problem)
    yield from islice(faults, 1)


def _images_problem(images: list[str]) -> str:
    if not images:
        return "image can not be empty"
    if len(images) > MOST_IMAGES:
        return f"the maximum number of images cannot > {MOST_IMAGES}"
    if duplicates(images):
        return "images cannot have duplicate values"
    return next((problem for image in images if (problem := image_problem(image))), "")


def _completion_problem(spec: ImageListPullJobSpec) -> str:
    policy, limits = spec.completion_policy, spec.pull_policy
    deadline = policy.active_deadline_seconds
    timeout = limits.timeout_seconds if limits is not None else None
    if policy.type != ALWAYS:
        return f"type must be {ALWAYS}"
    if deadline is not None and deadline > LONGEST_DEADLINE:
        return f"activeDeadlineSeconds must be less than or equal to {LONGEST_DEADLINE}"
    if deadline is not None and timeout is not None and deadline < timeout:
        return "activeDeadlineSeconds must be greater than or equal to pullPolicy.timeoutSeconds"
    return "" if policy.ttl_seconds_after_finished is None else "ttlSecondsAfterFinished is not supported"


def change_faults(spec: Json, old: Json) -> Iterator[Fault]:
    """Yield the fault of a change to immutable fields."""
    new, before = mapping(spec.get("template")), mapping(old.get("template"))
    switched = (new.get(IMAGES) is None) != (before.get(IMAGES) is None)
    if switched or any(_meaning(new.get(name)) != _meaning(before.get(name)) for name in OF_PODS):
        yield forbidden("spec", _IMMUTABLE)


def _meaning(template: JsonValue) -> JsonValue:
    if not is_object(template):
        return None
    rest = copy.deepcopy(template)
    pod = member(rest, "spec").pop("template", None)
    return {"job": _without_empty(rest), "pod": _canonical(pod)}


def _canonical(pod: JsonValue) -> JsonValue:
    try:
        return canonical_template(msgspec.json.encode(pod))
    except ValueError:  # an invalid template only equals itself
        return pod


def _without_empty(value: JsonValue) -> JsonValue:
    """Remove members without meaning. A number of 0 has a meaning, except in restartLimit."""
    if not is_object(value):
        return value
    kept = {key: _without_empty(item) for key, item in value.items()}
    return {
        key: item
        for key, item in kept.items()
        if item not in (None, False, "", [], {}) or (item == 0 and item is not False and key != "restartLimit")
    }
