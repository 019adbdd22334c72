"""The jobs of a list: one per image, all created from the same template (imagepull.md §7).

A label of a job holds the template's hash. A job with another hash may come from the reference, or from an older
version of Flotilla: it stays if its template is equivalent.
"""

import hashlib
from collections.abc import Sequence

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.imagepulljob.types import (
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_TIMEOUT_SECONDS,
    IMAGE_PULL_JOB,
    ImagePullJob,
    NodeSelector,
    PullPolicy,
    PullTemplate,
)
from flotilla_common.workload.ownership import owner_reference
from flotilla_jobs.imagelistpull.snapshot import ListJobSnapshot
from flotilla_jobs.naming import free_name


def template_of(spec: PullTemplate) -> PullTemplate:
    """Return the template of jobs with admission's defaults, so that equivalent templates are equal."""
    policy = spec.pull_policy or PullPolicy()
    selector = spec.selector
    return PullTemplate(
        pull_secrets=spec.pull_secrets,
        selector=None if selector is not None and selector == NodeSelector() else selector,
        pod_selector=spec.pod_selector,
        parallelism=spec.parallelism,
        pull_policy=PullPolicy(
            timeout_seconds=DEFAULT_TIMEOUT_SECONDS if policy.timeout_seconds is None else policy.timeout_seconds,
            backoff_limit=DEFAULT_BACKOFF_LIMIT if policy.backoff_limit is None else policy.backoff_limit,
        ),
        completion_policy=spec.completion_policy,
        sandbox_config=spec.sandbox_config,
        image_pull_policy=spec.image_pull_policy or "IfNotPresent",
    )


def template_hash(spec: PullTemplate) -> str:
    """Return ten hexadecimal digits that identify the template, valid as a label value."""
    text = msgspec.json.encode(template_of(spec), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:10]


class Children(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a list by the action that they need."""

    kept: Sequence[ImagePullJob]  # at most one per image of the list
    missing: Sequence[str]  # images without a job
    surplus: Sequence[ImagePullJob]

    @classmethod
    def of(cls, snapshot: ListJobSnapshot, wanted_hash: str) -> "Children":
        """Sort the jobs: the older of two for one image is kept."""
        images = list(dict.fromkeys(snapshot.job.spec.images))
        template = template_of(snapshot.job.spec)
        kept: dict[str, ImagePullJob] = {}
        surplus: list[ImagePullJob] = []
        for child in snapshot.children:
            image = child.spec.image
            fits = child.metadata.labels.get(REVISION_LABEL) == wanted_hash or template_of(child.spec) == template
            if fits and image in images and image not in kept:
                kept[image] = child
            else:
                surplus.append(child)
        return cls(kept=list(kept.values()), missing=[image for image in images if image not in kept], surplus=surplus)


def child_body(snapshot: ListJobSnapshot, image: str, wanted_hash: str) -> Json:
    """Return the body of a new job for one image."""
    meta = snapshot.job.metadata
    return {
        **IMAGE_PULL_JOB.type_meta,
        "metadata": {
            "name": free_name(meta.name, f"{meta.uid}/{image}/{wanted_hash}/", snapshot.taken),
            "namespace": meta.namespace,
            "labels": {REVISION_LABEL: wanted_hash},
            "ownerReferences": [owner_reference(IMAGE_LIST_PULL_JOB, meta)],
        },
        "spec": {"image": image, **_spec(snapshot)},
    }


def _spec(snapshot: ListJobSnapshot) -> Json:
    """Return the template as the list has it. The completion policy is required, even without admission."""
    spec: Json = msgspec.to_builtins(snapshot.job.spec)
    completion = snapshot.job.spec.completion_policy
    del spec["images"]
    return spec | {"completionPolicy": {**msgspec.to_builtins(completion), "type": completion.type}}
