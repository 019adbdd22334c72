"""Images pulled ahead of in-place updates (common.md §12): one ImagePullJob per changed image of a new revision.

A label on the revision says that this was done, or that it is not worth it; so it happens once, whatever becomes of the
jobs. When all pods are on the revision, the jobs go.
"""

from collections.abc import Iterable, Mapping

import msgspec

from flotilla_cloneset.cloneset.bodies import owner_reference
from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.draft import Draft
from flotilla_cloneset.cloneset.podupdate import RECREATE
from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.documents import mapping, mappings, strings, text
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.numbers import lenient_value
from flotilla_common.api.resources import REVISION
from flotilla_common.api.rollout import InPlaceUpdateStrategy
from flotilla_common.control.plan import Chain, Create, Delete, Event, Json, Patch, PatchType
from flotilla_common.workload.inplace import calculate
from flotilla_common.workload.revisions import canonical_data, short_hash

FEW = 3
"""Up to so many pods are updated sooner than a job is made."""

TIMEOUT_SECONDS, BACKOFF_LIMIT, TTL_SECONDS = 300, 1, 600


def plan_predownload(context: PlanContext, draft: Draft) -> None:
    """Nothing unless the snapshot says which jobs there are: then image pulls ahead are switched on."""
    jobs = context.snapshot.pull_jobs
    if jobs is None or context.revisions.writes:
        return
    update, current = context.revisions.update, context.revisions.current
    if update.metadata.name == current.metadata.name:
        draft.stage([(_deleted(job),) for job in jobs], stop_on_failure=False)
        return
    labels = update.metadata.labels
    if keys.PULLED_AHEAD in labels or keys.NOT_PULLED_AHEAD in labels or not _is_time(context):
        return
    if not _is_worth_it(context):
        draft.stage([(_marked(update, keys.NOT_PULLED_AHEAD),)], stop_on_failure=False)
        return
    draft.stage(list(_created(context)), stop_on_failure=False)
    draft.stage([(_marked(update, keys.PULLED_AHEAD),)], stop_on_failure=False)


def _settings(context: PlanContext) -> InPlaceUpdateStrategy:
    return context.rolling.in_place_update_strategy or InPlaceUpdateStrategy()


def _is_time(context: PlanContext) -> bool:
    """Enough pods of the new revision are ready: a revision that does not even start is not worth pulling."""
    status = context.snapshot.cloneset.status
    ready = status.updated_ready_replicas if status.update_revision == context.revisions.update.metadata.name else 0
    return (_settings(context).image_pre_download_min_updated_ready_pods or 0) <= ready


def _is_worth_it(context: PlanContext) -> bool:
    """Pods are updated in place, in several rounds."""
    want, spec = context.targets, context.snapshot.cloneset.spec
    if spec.update_strategy.rolling_update is None or context.rolling.pod_update_policy == RECREATE:
        return False
    if spec.replicas <= FEW:
        return False
    if want.partition == 0 and _all_at_once(context):
        return False
    revisions = context.revisions
    return calculate(revisions.current, revisions.update, gates=context.snapshot.gates) is not None


def _all_at_once(context: PlanContext) -> bool:
    """The update takes all pods at once; the default of maxUnavailable does not."""
    limit, replicas = context.rolling.max_unavailable, context.snapshot.cloneset.spec.replicas
    try:
        return limit is not None and lenient_value(limit, replicas, round_up=False) >= replicas
    except ValueError:
        return False  # the reason is given where the number is used


def _created(context: PlanContext) -> Iterable[Chain]:
    template = _template(context.revisions.update)
    before = dict(_images(_template(context.revisions.current)))
    for container, image in _images(template):
        if before.get(container) != image:
            yield (_job(context, template, container, image),)


def _job(context: PlanContext, template: Json, container: str, image: str) -> Create:
    cloneset = context.snapshot.cloneset
    revision = context.revisions.update.metadata.name
    name = f"{revision}-{container}"
    metadata = mapping(template.get("metadata"))
    labels = strings(metadata.get("labels")) | {keys.REVISION_HASH_LABEL: short_hash(revision)}
    body: Json = {
        "apiVersion": IMAGE_PULL_JOB.api_version,
        "kind": IMAGE_PULL_JOB.kind,
        "metadata": {
            "name": name,
            "namespace": cloneset.metadata.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(cloneset)],
        },
        "spec": {
            "image": image,
            "podSelector": _old_pods(context, revision),
            "sandboxConfig": {"annotations": strings(metadata.get("annotations")), "labels": labels},
            **_limits(_settings(context)),
            **_secrets(template),
        },
    }
    return Create(
        resource=IMAGE_PULL_JOB,
        namespace=cloneset.metadata.namespace,
        name=name,
        cause=f"pull {image} before pods are updated",
        body=body,
        on_success=Event(reason="CreatedImagePullJob", message=f"created ImagePullJob {name} for image: {image}"),
        on_failure=Event(reason="FailedCreateImagePullJob", message=f"failed to create ImagePullJob {name}: "),
    )


def _old_pods(context: PlanContext, revision: str) -> Json:
    """The set's pods that are not on the revision, under either form of its label."""
    selector: Json = msgspec.to_builtins(context.snapshot.cloneset.spec.selector)
    others = {"key": keys.REVISION_LABEL, "operator": "NotIn", "values": [revision, short_hash(revision)]}
    return selector | {"matchExpressions": [*selector.get("matchExpressions", []), others]}


def _limits(settings: InPlaceUpdateStrategy) -> Json:
    timeout = settings.image_pre_download_timeout_seconds
    parallelism = settings.image_pre_download_parallelism
    return {
        "parallelism": 1 if parallelism is None else parallelism,
        "pullPolicy": {
            "backoffLimit": BACKOFF_LIMIT,
            "timeoutSeconds": TIMEOUT_SECONDS if timeout is None else timeout,
        },
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": TTL_SECONDS},
    }


def _secrets(template: Json) -> Json:
    references = mappings(mapping(template.get("spec")).get("imagePullSecrets"))
    names = [name for name in (text(one.get("name")) for one in references) if name]
    return {"pullSecrets": names} if names else {}


def _template(revision: ControllerRevision) -> Json:
    data: Mapping[str, Json] = msgspec.json.decode(canonical_data(revision) or b"{}")
    return mapping(mapping(data.get("spec")).get("template"))


def _images(template: Json) -> Iterable[tuple[str, str]]:
    containers = mappings(mapping(template.get("spec")).get("containers"))
    return [(text(one.get("name")), text(one.get("image"))) for one in containers]


def _marked(revision: ControllerRevision, label: str) -> Patch:
    meta = revision.metadata
    return Patch(
        resource=REVISION,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        cause="images of the revision were seen to",
        body={"metadata": {"labels": {label: "true"}}},
        patch_type=PatchType.MERGE,
    )


def _deleted(job: ImagePullJob) -> Delete:
    meta = job.metadata
    return Delete(
        resource=IMAGE_PULL_JOB, namespace=meta.namespace, name=meta.name, uid=meta.uid, cause="the update is done"
    )
