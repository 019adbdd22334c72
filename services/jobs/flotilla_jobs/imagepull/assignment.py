"""Asks nodes to pull, by writing the job's tag into their NodeImages (imagepull.md §5.5)."""

import zlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.documents import merge_patch
from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagepulljob.types import (
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_TIMEOUT_SECONDS,
    IMAGE_PULL_JOB,
    ImagePullJob,
    PullPolicy,
    PullTemplate,
)
from flotilla_common.api.kinds.nodeimage.types import (
    NODE_IMAGE,
    ImageSpec,
    ImageTag,
    JobReference,
    NodeImage,
    SecretReference,
    TagPullPolicy,
)
from flotilla_common.control.plan import Chain, Intent
from flotilla_common.control.writes import patch_of

LONGEST_OF_NEVER = 1800
"""Seconds that a node has for one round of a job that never ends, unless one attempt may take longer."""

DAY = 86_400
"""Seconds between two rounds of a job that never ends, about once a day on each node."""

_INT32 = (1 << 31) - 1


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A job's request to pull, to be written into NodeImages."""

    job: ImagePullJob
    image: ImageName
    secrets: Sequence[SecretReference]
    default_ttl: int  # seconds
    now: datetime

    def write_to(self, node: NodeImage) -> Chain:
        """Return the write into one NodeImage, empty if it already has everything."""
        current = node.spec.images.get(self.image.name, ImageSpec())
        wanted = self._image_spec(node, current)
        if wanted is None:
            return ()
        patch = merge_patch(msgspec.to_builtins(current), msgspec.to_builtins(wanted))
        body = {"spec": {"images": {self.image.name: patch}}}
        cause = f"pull {self.image}"
        return (patch_of(NODE_IMAGE, node.metadata, Intent.IMAGE_PULL, cause, body=body, on_version=True),)

    def _image_spec(self, node: NodeImage, current: ImageSpec) -> ImageSpec | None:
        missing = [secret for secret in self.secrets if not any(secret.same(other) for other in current.pull_secrets)]
        tag = current.tag(self.image.tag)
        tags = list(current.tags)
        if tag is None:
            tags.append(self._new_tag(node))
        elif not tag.owned_by(self.job.metadata.uid):
            tags[tags.index(tag)] = self._next_round(tag)
        elif not missing:
            return None
        return ImageSpec(
            pull_secrets=[*current.pull_secrets, *missing],
            tags=sorted(tags, key=lambda each: each.tag),
            sandbox_config=self.job.spec.sandbox_config,
        )

    def _next_round(self, tag: ImageTag) -> ImageTag:
        """Return the tag in its next version, owned by one more job; the limits of the first job stay."""
        return msgspec.structs.replace(
            tag,
            version=tag.version + 1,
            owner_references=[*tag.owner_references, self._owner()],
            created_at=self.now.replace(microsecond=0),
            image_pull_policy=self.job.spec.image_pull_policy,
        )

    def _new_tag(self, node: NodeImage) -> ImageTag:
        """Return a new tag, with a version above the one in the node's status."""
        entry = node.entry(self.image.name, self.image.tag)
        # The number differs from node to node, so that not all tags expire at once.
        spread = zlib.crc32(f"{self.job.metadata.uid}/{node.metadata.name}/{self.image}".encode())
        return ImageTag(
            tag=self.image.tag,
            created_at=self.now.replace(microsecond=0),
            version=0 if entry is None else entry.version + 1,
            image_pull_policy=self.job.spec.image_pull_policy,
            owner_references=[self._owner()],
            pull_policy=_limits(self.job.spec, self.default_ttl, spread),
        )

    def _owner(self) -> JobReference:
        meta = self.job.metadata
        return JobReference(
            api_version=IMAGE_PULL_JOB.api_version,
            kind=IMAGE_PULL_JOB.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
        )


def _limits(spec: PullTemplate, default_ttl: int, spread: int) -> TagPullPolicy:
    policy, completion = spec.pull_policy or PullPolicy(), spec.completion_policy
    timeout = DEFAULT_TIMEOUT_SECONDS if policy.timeout_seconds is None else policy.timeout_seconds
    retries = DEFAULT_BACKOFF_LIMIT if policy.backoff_limit is None else policy.backoff_limit
    if spec.completion_policy.ends:
        deadline = completion.active_deadline_seconds
        choices = (completion.ttl_seconds_after_finished, deadline, timeout * retries)
        ttl = next(choice for choice in choices if choice is not None) + default_ttl + spread % 300
    else:
        deadline = max(LONGEST_OF_NEVER, timeout)
        ttl = DAY + spread % 1200 - 600
    return TagPullPolicy(
        timeout_seconds=policy.timeout_seconds,
        backoff_limit=policy.backoff_limit,
        active_deadline_seconds=deadline,
        ttl_seconds_after_finished=min(ttl, _INT32),
    )
