"""Work that ends: Jobs, BroadcastJobs, pulls of images, EphemeralJobs, restarts of containers, and AdvancedCronJobs."""

from collections.abc import Collection

from flotilla_common.api.documents import Json, mapping, mappings, member, sequence, text
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.resources import JOB
from flotilla_console.model.kinds.fields import conditions, flag, images_of, number, word
from flotilla_console.model.kinds.kind import ConsoleKind
from flotilla_console.model.reading import Numbers, Reading, Verdict

_FAILED = ("Failed", "FailureTarget", "JobFailed", "JobError")
_DONE = ("Complete", "JobSucceeded")


def job(spec: Json, status: Json) -> Reading:
    """Read a Job of Kubernetes."""
    wanted = number(spec, "completions", default=number(spec, "parallelism", default=1))
    ready = number(status, "succeeded")
    return Reading(
        numbers=Numbers(
            desired=wanted, total=number(status, "active") + ready, ready=ready, failed=number(status, "failed")
        ),
        paused=flag(spec, "suspend"),
        images=images_of(member(spec, "template")),
        trouble=_failure(status),
        finished=_ended(status, _DONE),
        details=(("Active", str(number(status, "active"))),),
    )


def broadcast_job(spec: Json, status: Json) -> Reading:
    """Read a BroadcastJob, which counts nodes."""
    return Reading(
        numbers=Numbers(
            desired=number(status, "desired"),
            total=number(status, "active") + number(status, "succeeded") + number(status, "failed"),
            ready=number(status, "succeeded"),
            failed=number(status, "failed"),
        ),
        noun="node",
        paused=flag(spec, "paused"),
        images=images_of(member(spec, "template")),
        trouble=_failure(status),
        finished=_ended(status, _DONE),
        details=_given(
            ("Phase", text(status.get("phase"))),
            ("Active", word(status, "active")),
            ("Parallelism", word(spec, "parallelism")),
            ("Completion policy", text(member(spec, "completionPolicy").get("type"))),
            ("Failure policy", text(member(spec, "failurePolicy").get("type"))),
        ),
    )


def image_pull(spec: Json, status: Json) -> Reading:
    """Read an ImagePullJob, which counts nodes."""
    failed = [text(name) for name in sequence(status.get("failedNodes"))]
    message = text(status.get("message"))
    trouble = f"pulling failed on {', '.join(filter(None, failed))}" if failed else message
    return Reading(
        numbers=_counts(status, total=number(status, "active") + number(status, "succeeded")),
        noun="node",
        images=tuple(filter(None, [text(spec.get("image"))])),
        trouble=Verdict(state="blocked", code="FailedOnNodes", text=trouble) if number(status, "failed") else None,
        finished=bool(status.get("completionTime")),
        details=_given(("Message", message), ("Parallelism", word(spec, "parallelism"))),
    )


def image_list_pull(spec: Json, status: Json) -> Reading:
    """Read an ImageListPullJob, which counts images."""
    failed = mappings(status.get("failedImageStatuses"))
    sentences = [f"{text(one.get('name'))}: {text(one.get('message'))}" for one in failed]
    images = [text(image) for image in sequence(spec.get("images"))]
    return Reading(
        numbers=Numbers(
            desired=number(status, "desired", default=len(images)),
            total=number(status, "active") + number(status, "completed"),
            ready=number(status, "succeeded"),
            failed=len(failed),
        ),
        noun="image",
        images=tuple(filter(None, images)),
        trouble=Verdict(state="blocked", code="FailedImages", text="; ".join(sentences)) if failed else None,
        finished=bool(status.get("completionTime")),
    )


def ephemeral_job(spec: Json, status: Json) -> Reading:
    """Read an EphemeralJob."""
    containers = mappings(member(spec, "template").get("ephemeralContainers"))
    return Reading(
        numbers=Numbers(
            desired=number(status, "match"),
            total=number(status, "running") + number(status, "succeeded") + number(status, "failed"),
            ready=number(status, "succeeded"),
            failed=number(status, "failed"),
        ),
        paused=flag(spec, "paused"),
        images=tuple(filter(None, (text(one.get("image")) for one in containers))),
        trouble=_failure(status),
        finished=bool(status.get("completionTime")),
        details=_given(("Phase", text(status.get("phase"))), ("Waiting", word(status, "waiting"))),
    )


def recreate_request(spec: Json, status: Json) -> Reading:
    """Read a ContainerRecreateRequest, which counts containers."""
    wanted = mappings(spec.get("containers"))
    phases = [text(one.get("phase")) for one in mappings(status.get("containerRecreateStates"))]
    failed, message = phases.count("Failed"), text(status.get("message"))
    return Reading(
        numbers=Numbers(desired=len(wanted), total=len(phases), ready=phases.count("Succeeded"), failed=failed),
        noun="container",
        trouble=Verdict(state="blocked", code="Failed", text=message or "restarting containers failed")
        if failed
        else None,
        finished=text(status.get("phase")) == "Completed",
        details=_given(("Pod", text(spec.get("podName"))), ("Phase", text(status.get("phase"))), ("Message", message)),
    )


def cron_job(spec: Json, status: Json) -> Reading:
    """Read an AdvancedCronJob. Between two runs it is at rest."""
    active = mappings(status.get("active"))
    templates = mapping(spec.get("template")).values()
    jobs = [member(mapping(template), "spec") for template in templates]
    return Reading(
        numbers=Numbers(desired=len(active), total=len(active)),
        noun="run",
        paused=flag(spec, "paused"),
        images=tuple(image for one in jobs for image in images_of(member(one, "template"))),
        details=_given(
            ("Schedule", text(spec.get("schedule"))),
            ("Time zone", text(spec.get("timeZone"))),
            ("Kind of its jobs", text(status.get("type"))),
            ("Active", ", ".join(filter(None, (text(one.get("name")) for one in active)))),
            ("Last run due", text(status.get("lastScheduleTime"))),
        ),
    )


def _counts(status: Json, *, total: int) -> Numbers:
    return Numbers(
        desired=number(status, "desired"),
        total=total,
        ready=number(status, "succeeded"),
        failed=number(status, "failed"),
    )


def _failure(status: Json) -> Verdict | None:
    for kind, value, reason, message in conditions(status):
        if kind in _FAILED and value == "True":
            return Verdict(state="blocked", code=reason or kind, text=message or reason or kind)
    return None


def _ended(status: Json, kinds: Collection[str]) -> bool:
    return any(kind in kinds and value == "True" for kind, value, _, _ in conditions(status))


def _given(*details: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((label, value) for label, value in details if value)


KINDS = (
    ConsoleKind(resource=JOB, read=job, has_pods=True),
    ConsoleKind(resource=BROADCAST_JOB, read=broadcast_job, has_pods=True),
    ConsoleKind(resource=ADVANCED_CRON_JOB, read=cron_job, has_pods=True),
    ConsoleKind(resource=IMAGE_PULL_JOB, read=image_pull),
    ConsoleKind(resource=IMAGE_LIST_PULL_JOB, read=image_list_pull),
    ConsoleKind(resource=EPHEMERAL_JOB, read=ephemeral_job),
    ConsoleKind(resource=RECREATE_REQUEST, read=recreate_request),
)
