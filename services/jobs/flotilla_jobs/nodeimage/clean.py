"""What no longer belongs into a NodeImage's spec (imagepull.md §4.3)."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import (
    BATCH,
    ImageSpec,
    ImageTag,
    JobReference,
    NodeImage,
    SecretReference,
)
from flotilla_common.api.meta import group_of
from flotilla_common.api.moments import later
from flotilla_common.control.draft import Waits
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot


class Cleaner(msgspec.Struct, frozen=True):
    """Cleans one spec."""

    snapshot: NodeImageSnapshot
    image: NodeImage
    now: datetime
    waits: Waits  # gets the time when something in the spec expires next

    def images(self) -> Mapping[str, ImageSpec]:
        """The images that stay. One without tags goes, and its pull secrets with it."""
        cleaned = {name: self._cleaned(name, spec) for name, spec in self.image.spec.images.items()}
        return {name: spec for name, spec in cleaned.items() if spec.tags}

    def _cleaned(self, name: str, spec: ImageSpec) -> ImageSpec:
        tags = [tag for tag in (self._kept(name, tag) for tag in spec.tags) if tag is not None]
        secrets = [reference for reference in spec.pull_secrets if not self._is_lost(reference)]
        return msgspec.structs.replace(spec, tags=tags, pull_secrets=secrets)

    def _kept(self, name: str, tag: ImageTag) -> ImageTag | None:
        if tag.created_at is None:
            return None
        owners = [owner for owner in tag.owner_references if not self._is_orphaned(owner)]
        if tag.owner_references and not owners:
            return None
        if self._expired(name, tag):
            return None
        return tag if owners == tag.owner_references else msgspec.structs.replace(tag, owner_references=owners)

    def _is_orphaned(self, owner: JobReference) -> bool:
        ours = group_of(owner.api_version) == IMAGE_PULL_JOB.group and owner.kind == IMAGE_PULL_JOB.kind
        return ours and owner.uid in self.snapshot.lost_owners

    def _expired(self, name: str, tag: ImageTag) -> bool:
        """Its time after completion is over. A job that is still at work keeps it, or the nodes that were done first
        would pull again (imagepull.md §13.15)."""
        ttl = tag.pull_policy.ttl_seconds_after_finished if tag.pull_policy is not None else None
        entry = self.image.entry(name, tag.tag)
        if ttl is None or entry is None or entry.version != tag.version or entry.completion_time is None:
            return False
        if any(owner.uid in self.snapshot.running_owners for owner in tag.owner_references):
            return False
        return self.waits.passed(later(entry.completion_time, ttl), self.now)

    def _is_lost(self, reference: SecretReference) -> bool:
        """Copies that we made are kept as long as the image is: they come and go with their jobs."""
        return reference.mode != BATCH and (reference.namespace, reference.name) in self.snapshot.lost_secrets
