"""NodeImage in its storage version, v1beta1: the images that one node should pull, and their progress.

See imagepull.md §2.1. The jobs service writes the spec; the status is the report of the node's agent, computed from the
states of its tags. An entry of the status counts only while its `version` is that of the tag in the spec.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from flotilla_common.api.meta import Model, Moment, ObjectMeta
from flotilla_common.api.resources import Resource

NODE_IMAGE = Resource("apps.kruise.io", "v1beta1", "nodeimages", "NodeImage", namespaced=False)

WAITING, PULLING, SUCCEEDED, FAILED = "Waiting", "Pulling", "Succeeded", "Failed"
BATCH = "batch"
"""The mode of references to copies that the jobs service made."""

FAKE_LABEL = "apps.kruise.io/fake-nodeimage"
"""The label of a NodeImage that exists without a Node."""


class JobReference(Model):
    """A core ObjectReference to a job that needs a tag."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class SecretReference(Model):
    """A pull secret. `mode` is empty or `batch`; references are compared without it."""

    namespace: str = ""
    name: str = ""
    mode: str = ""

    def same(self, other: "SecretReference") -> bool:
        """Report whether both name the same secret."""
        return (self.namespace, self.name) == (other.namespace, other.name)


class SandboxConfig(Model):
    """Metadata for the runtime, sent with the pull request."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class TagPullPolicy(Model):
    """Limits of one tag, in seconds and in retries."""

    timeout_seconds: int | None = None
    backoff_limit: int | None = None
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None


class ImageTag(Model):
    """One pull task; a higher `version` is a new round."""

    tag: str = ""
    created_at: Moment | None = None
    version: int = 0
    image_pull_policy: str = ""
    owner_references: list[JobReference] = []
    pull_policy: TagPullPolicy | None = None

    def owned_by(self, uid: str) -> bool:
        """Report whether the job with that uid needs the tag."""
        return any(owner.uid == uid for owner in self.owner_references)


class ImageSpec(Model):
    """The tags of one image, and their common settings."""

    pull_secrets: list[SecretReference] = []
    tags: list[ImageTag] = []
    sandbox_config: SandboxConfig | None = None

    def tag(self, name: str) -> ImageTag | None:
        """Return the task of that tag, or None."""
        return next((tag for tag in self.tags if tag.tag == name), None)


class NodeImageSpec(Model):
    images: dict[str, ImageSpec] = {}


class TagStatus(Model):
    """The progress of one task. `completion_time` is set in the two final phases, and only there."""

    tag: str = ""
    phase: str = ""
    progress: int = 0
    start_time: Moment | None = None
    completion_time: Moment | None = None
    version: int = 0
    image_id: str = msgspec.field(default="", name="imageID")
    message: str = ""


class ImageStatus(Model):
    tags: list[TagStatus] = []

    def tag(self, name: str) -> TagStatus | None:
        """Return the entry of that tag in any version, or None."""
        return next((tag for tag in self.tags if tag.tag == name), None)


class NodeImageStatus(Model):
    """Counts of tags by phase, and the entries behind them.

    `desired` is None until an agent has written a status: an agent without work writes 0 once, to show that it exists.
    """

    desired: int | None = None
    succeeded: int = 0
    failed: int = 0
    pulling: int = 0
    waiting: int = 0
    image_statuses: dict[str, ImageStatus] = {}


class NodeImage(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeImageSpec = NodeImageSpec()
    status: NodeImageStatus = NodeImageStatus()

    def task(self, image: str, tag: str) -> ImageTag | None:
        """Return the pull task of an image's tag, or None."""
        spec = self.spec.images.get(image)
        return spec.tag(tag) if spec is not None else None

    def entry(self, image: str, tag: str) -> TagStatus | None:
        """Return the status entry of an image's tag in any version, or None."""
        status = self.status.image_statuses.get(image)
        return status.tag(tag) if status is not None else None


Name = tuple[str, str]
"""Image and tag."""


def tasks(images: Mapping[str, ImageSpec]) -> Iterator[tuple[str, ImageTag]]:
    """Yield all tags of a spec, each with its image."""
    for name, spec in images.items():
        for tag in spec.tags:
            yield name, tag


def counted(images: Mapping[str, ImageSpec], known: Mapping[Name, TagStatus]) -> NodeImageStatus:
    """Return the entries of tags in the spec, sorted, and the counts of those with the spec's version by phase."""
    wanted = {(name, tag.tag): tag.version for name, tag in tasks(images)}
    kept: dict[str, ImageStatus] = {}
    numbers = Counter[str]()
    for name, tag in sorted(known.keys() & wanted.keys()):
        entry = known[name, tag]
        kept.setdefault(name, ImageStatus(tags=[])).tags.append(entry)
        numbers[entry.phase] += entry.version == wanted[name, tag]
    return NodeImageStatus(
        desired=len(wanted),
        succeeded=numbers[SUCCEEDED],
        failed=numbers[FAILED],
        pulling=numbers[PULLING],
        waiting=numbers[WAITING],
        image_statuses=kept,
    )
