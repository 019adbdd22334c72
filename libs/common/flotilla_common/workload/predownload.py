"""Pulls images ahead of in-place updates (common.md §12): one ImagePullJob per changed image of a new revision.

A label on the revision records that this was done, or is not worthwhile; so it happens once, even if the jobs
fail. Each kind decides when it is worthwhile, and when the update is over.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.documents import mapping, mappings, member, strings, text
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.meta import IntOrString, LabelSelector, ObjectMeta
from flotilla_common.api.resources import REVISION, Resource
from flotilla_common.control.plan import Create, Event, Frozen, Intent, Json
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import create_of, delete_of, patch_of
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.revision_codec import RevisionCodec, short_hash

TIMEOUT_SECONDS, BACKOFF_LIMIT, TTL_SECONDS = 300, 1, 600


class ImagePulls(Frozen):
    """The images that a workload needs on its nodes, and the parameters of pulling them."""

    resource: Resource
    metadata: ObjectMeta  # the workload's
    selector: LabelSelector  # over its pods
    codec: RevisionCodec
    update: ControllerRevision
    old: Sequence[ControllerRevision]  # the revisions of pods that will be updated
    parallelism: IntOrString | None = None  # nodes at a time; None is one
    timeout_seconds: int | None = None  # for one try; None is the default


def plan_ahead(
    pulls: ImagePulls, jobs: Iterable[ImagePullJob], builder: PlanBuilder, is_worth_it: Callable[[], bool | None]
) -> None:
    """Create the jobs of a new revision, or record that they are not worthwhile; delete them after the update.

    `is_worth_it` is called while that is not decided; it returns None if it is too early to decide.
    """
    if all(revision.metadata.name == pulls.update.metadata.name for revision in pulls.old):
        plan_removal(jobs, builder)
        return
    if is_decided(pulls.update) or (worth := is_worth_it()) is None:
        return
    if worth:
        plan_pulls(pulls, builder)
    else:
        plan_no_pulls(pulls.update, builder)


def is_decided(revision: ControllerRevision) -> bool:
    """Return whether the images of the revision are pulled ahead, or were decided not to be."""
    labels = revision.metadata.labels
    return keys.PULLED_AHEAD in labels or keys.NOT_PULLED_AHEAD in labels


def plan_pulls(pulls: ImagePulls, builder: PlanBuilder) -> None:
    """Create the jobs, and record it on the revision."""
    template = _template(pulls.codec, pulls.update)
    before = [dict(_images(_template(pulls.codec, revision))) for revision in pulls.old]
    wanted = [
        (container, image)
        for container, image in _images(template)
        if not before or any(images.get(container) != image for images in before)
    ]
    builder.stage([(_job(pulls, template, container, image),) for container, image in wanted], stop_on_failure=False)
    _mark(pulls.update, keys.PULLED_AHEAD, builder)


def plan_no_pulls(update: ControllerRevision, builder: PlanBuilder) -> None:
    """Record on the revision that pulling its images ahead is not worthwhile."""
    _mark(update, keys.NOT_PULLED_AHEAD, builder)


def plan_removal(jobs: Iterable[ImagePullJob], builder: PlanBuilder) -> None:
    """Delete the workload's jobs: the update is over."""
    cause = "the update is done"
    deletes = [delete_of(IMAGE_PULL_JOB, job.metadata, Intent.CLEAN_UP, cause) for job in jobs]
    builder.stage([(delete,) for delete in deletes], stop_on_failure=False)


def _job(pulls: ImagePulls, template: Json, container: str, image: str) -> Create:
    revision = pulls.update.metadata.name
    name = f"{revision}-{container}"
    metadata = mapping(template.get("metadata"))
    labels = strings(metadata.get("labels")) | {keys.REVISION_HASH_LABEL: short_hash(revision)}
    body: Json = {
        **IMAGE_PULL_JOB.type_meta,
        "metadata": {
            "name": name,
            "namespace": pulls.metadata.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(pulls.resource, pulls.metadata)],
        },
        "spec": {
            "image": image,
            "podSelector": _old_pods(pulls.selector, revision),
            "sandboxConfig": {"annotations": strings(metadata.get("annotations")), "labels": labels},
            **_limits(pulls),
            **_secrets(template),
        },
    }
    return create_of(
        IMAGE_PULL_JOB,
        body,
        Intent.IMAGE_PULL,
        f"pull {image} before pods are updated",
        revision=revision,
        tells_if_taken=False,
        on_success=Event("CreatedImagePullJob", f"created ImagePullJob {name} for image: {image}"),
        on_failure=Event("FailedCreateImagePullJob", f"failed to create ImagePullJob {name}: "),
    )


def _old_pods(pods: LabelSelector, revision: str) -> Json:
    """Select the workload's pods that are not on the revision, under either form of its label."""
    selector: Json = msgspec.to_builtins(pods)
    others = {"key": keys.REVISION_LABEL, "operator": "NotIn", "values": [revision, short_hash(revision)]}
    return selector | {"matchExpressions": [*selector.get("matchExpressions", []), others]}


def _limits(pulls: ImagePulls) -> Json:
    timeout = TIMEOUT_SECONDS if pulls.timeout_seconds is None else pulls.timeout_seconds
    return {
        "parallelism": 1 if pulls.parallelism is None else pulls.parallelism,
        "pullPolicy": {"backoffLimit": BACKOFF_LIMIT, "timeoutSeconds": timeout},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": TTL_SECONDS},
    }


def _secrets(template: Json) -> Json:
    references = mappings(member(template, "spec").get("imagePullSecrets"))
    names = [name for name in (text(one.get("name")) for one in references) if name]
    return {"pullSecrets": names} if names else {}


def _template(codec: RevisionCodec, revision: ControllerRevision) -> Json:
    return member(mapping(read_json(codec.data_of(revision) or b"{}", object)), "spec", "template")


def _images(template: Json) -> Iterable[tuple[str, str]]:
    containers = mappings(member(template, "spec").get("containers"))
    return [(text(one.get("name")), text(one.get("image"))) for one in containers]


def _mark(revision: ControllerRevision, label: str, builder: PlanBuilder) -> None:
    body: Json = {"metadata": {"labels": {label: "true"}}}
    cause = "image pulls of the revision were decided"
    patch = patch_of(REVISION, revision.metadata, Intent.REVISION, cause, body=body)
    builder.stage([(patch,)], stop_on_failure=False)
