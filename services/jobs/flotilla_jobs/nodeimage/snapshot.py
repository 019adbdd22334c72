"""The input of a NodeImage's plan."""

from datetime import timedelta

import msgspec

from flotilla_common.api.core import Node
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage, NodeImageStatus
from flotilla_common.control.plan import ObjectRef


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that planning depends on."""

    creation_delay: timedelta = timedelta(seconds=30)  # how long a node is ready before it gets its NodeImage
    secrets_namespace: str = "kruise-daemon-config"  # where copies of pull secrets are stored


class NodeImageSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One node, its NodeImage, and the state of the jobs and secrets that the NodeImage names."""

    name: str
    node: Node | None = None
    image: NodeImage | None = None
    report: NodeImageStatus | None = None  # the agent's newest report that is not written yet
    lost_owners: frozenset[str] = frozenset()  # uids of ImagePullJobs that are confirmed deleted
    running_owners: frozenset[str] = frozenset()  # uids of uncompleted jobs that are not endless
    lost_secrets: frozenset[tuple[str, str]] = frozenset()  # (namespace, name), confirmed deleted
    options: Options = Options()

    @property
    def subject(self) -> ObjectRef:
        """The NodeImage, even if it does not exist yet."""
        if self.image is None:
            return ObjectRef(NODE_IMAGE, "", self.name)
        return ObjectRef.of(NODE_IMAGE, self.image.metadata)
