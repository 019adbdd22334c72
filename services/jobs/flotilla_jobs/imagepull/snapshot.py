"""The input of an ImagePullJob's plan."""

from collections.abc import Container, Mapping, Sequence

import msgspec

from flotilla_common.api.core import Secret
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.control.plan import ObjectRef


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that planning depends on."""

    default_ttl: int = 300  # seconds that finished tags stay beyond the TTL of their job
    secrets_namespace: str = "kruise-daemon-config"


class PullJobSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A job, the NodeImages of its nodes, and the secrets that it names."""

    job: ImagePullJob
    nodes: Sequence[NodeImage] = ()  # by name
    order: Mapping[str, int] = {}  # places of nodes in the update order of the workload that made the job
    sources: Mapping[str, Secret | None] = {}  # pull secrets by name: None is absent, an unread one is missing
    copies: Sequence[Secret] = ()  # copies of these sources, and copies that refer to the job; by name
    taken: Container[str] = ()  # names of all secrets beside the copies
    of_running_list: bool = False  # the job belongs to an ImageListPullJob that is not completed
    problem: str = ""  # why the nodes cannot be found
    options: Options = Options()

    @property
    def subject(self) -> ObjectRef:
        """The job as the subject of events and bus records."""
        return ObjectRef.of(IMAGE_PULL_JOB, self.job.metadata)
