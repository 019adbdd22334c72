"""What the plan for a NodeImage is made from, and what a pass is told besides objects."""

from datetime import timedelta

import msgspec

from flotilla_common.api.core import Node
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage, NodeImageStatus
from flotilla_common.control.subject import Subject


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that change decisions."""

    creation_delay: timedelta = timedelta(seconds=30)  # how long a node is ready before it gets its NodeImage
    secrets_namespace: str = "kruise-daemon-config"  # where copies of pull secrets lie


class NodeImageSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One node, its NodeImage, and what is known of those that the NodeImage names."""

    name: str
    node: Node | None = None
    image: NodeImage | None = None
    report: NodeImageStatus | None = None  # the newest one of the node's agent that is not written yet
    lost_owners: frozenset[str] = frozenset()  # uids of ImagePullJobs that surely do not exist
    running_owners: frozenset[str] = frozenset()  # uids of jobs that end some day and have not ended
    lost_secrets: frozenset[tuple[str, str]] = frozenset()  # (namespace, name) that surely do not exist
    options: Options = Options()

    @property
    def subject(self) -> Subject:
        """The NodeImage, also while there is none."""
        if self.image is None:
            return Subject(NODE_IMAGE, "", self.name)
        return Subject.of(NODE_IMAGE, self.image.metadata)
