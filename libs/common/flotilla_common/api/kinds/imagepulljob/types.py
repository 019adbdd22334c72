"""ImagePullJob in its storage version, apps.kruise.io/v1beta1, and types that ImageListPullJob shares.

See imagepull.md §2.2.
"""

from flotilla_common.api.batch import CompletionPolicy
from flotilla_common.api.kinds.nodeimage.types import SandboxConfig
from flotilla_common.api.meta import IntOrString, LabelSelector, Model, Moment, ObjectMeta, struct_cached_property
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import Selector

IMAGE_PULL_JOB = Resource("apps.kruise.io", "v1beta1", "imagepulljobs", "ImagePullJob")

FINALIZER = "apps.kruise.io/deletion-protection"
"""The finalizer that keeps a job until its copies of secrets are released."""

DEFAULT_TIMEOUT_SECONDS, DEFAULT_BACKOFF_LIMIT = 600, 3


class NodeSelector(LabelSelector):
    """A selection of nodes by name or by label; without either, all nodes."""

    names: list[str] = []


class PullPolicy(Model):
    """Limits of one node: seconds per attempt, and retries."""

    timeout_seconds: int | None = None
    backoff_limit: int | None = None


class PullTemplate(Model):
    """The spec fields that both kinds of jobs share."""

    pull_secrets: list[str] = []
    selector: NodeSelector | None = None
    pod_selector: LabelSelector | None = None
    parallelism: IntOrString | None = None
    pull_policy: PullPolicy | None = None
    completion_policy: CompletionPolicy = CompletionPolicy()
    sandbox_config: SandboxConfig | None = None
    image_pull_policy: str = ""


class ImagePullJobSpec(PullTemplate):
    image: str = ""


class ImagePullJobStatus(Model):
    """The status of an ImagePullJob; all counts are nodes."""

    start_time: Moment | None = None
    completion_time: Moment | None = None
    desired: int = 0
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    message: str = ""
    failed_nodes: list[str] = []


class ImagePullJob(Model, dict=True):
    """A job with its selectors, compiled once per version and matched against every changed node or pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ImagePullJobSpec = ImagePullJobSpec()
    status: ImagePullJobStatus = ImagePullJobStatus()

    @struct_cached_property
    def node_query(self) -> Selector:
        """Return the compiled node selector. Raises ValueError if it is invalid."""
        return Selector.compile(self.spec.selector or NodeSelector())

    @struct_cached_property
    def pod_query(self) -> Selector:
        """Return the compiled pod selector. Raises ValueError if it is invalid."""
        return Selector.compile(self.spec.pod_selector or LabelSelector())
