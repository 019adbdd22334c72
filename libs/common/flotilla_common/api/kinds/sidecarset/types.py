"""SidecarSet in its hub and storage version, apps.kruise.io/v1beta1 (sidecarset.md §2).

Injected content stays raw JSON: a sidecar's container goes into pods and revisions as the user wrote it. Decisions read
it through cached properties of `SidecarSet`.
"""

import msgspec

from flotilla_common.api.keys import BASE_ANNOTATION, CANARY_ANNOTATION
from flotilla_common.api.meta import IntOrString, LabelSelector, Model, ObjectMeta, struct_cached_property
from flotilla_common.api.resources import Resource
from flotilla_common.api.workload import PriorityStrategy, ScatterTerm

SIDECAR_SET = Resource("apps.kruise.io", "v1beta1", "sidecarsets", "SidecarSet", namespaced=False)

NOT_UPDATE = "NotUpdate"
HOT_UPGRADE = "HotUpgrade"
ENABLED = "enabled"
BEFORE_APP, AFTER_APP = "BeforeAppContainer", "AfterAppContainer"
PARTIAL = "Partial"
RETAIN, OVERWRITE, MERGE_PATCH_JSON = "Retain", "Overwrite", "MergePatchJson"


class UpgradeStrategy(Model):
    upgrade_type: str = ""  # ColdUpgrade, HotUpgrade
    hot_upgrade_empty_image: str = ""


class Sidecar(Model):
    """An injected container, with the members that updates need."""

    name: str = ""
    image: str = ""
    restart_policy: str = ""  # Always on an init container makes it a native sidecar
    upgrade_strategy: UpgradeStrategy = UpgradeStrategy()

    @property
    def hot(self) -> bool:
        """Report whether it is injected as two containers, one of which idles."""
        return self.upgrade_strategy.upgrade_type == HOT_UPGRADE

    @property
    def native(self) -> bool:
        """Report whether the init container keeps running beside the pod's containers."""
        return self.restart_policy == "Always"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its containers in pods."""
        return (f"{self.name}-1", f"{self.name}-2") if self.hot else (self.name,)


class RevisionChoice(Model):
    """The revision to inject instead of the newest spec."""

    revision_name: str | None = None
    custom_version: str | None = None
    policy: str = ""  # Always, Partial; empty is Always


class InjectionStrategy(Model):
    paused: bool = False
    revision: RevisionChoice | None = None


class SidecarSetUpdateStrategy(Model):
    type: str = ""  # RollingUpdate, NotUpdate; anything else acts like RollingUpdate
    paused: bool = False
    selector: LabelSelector | None = None
    partition: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    priority_strategy: PriorityStrategy | None = None
    scatter_strategy: list[ScatterTerm] = []


class PatchPodMetadata(Model):
    annotations: dict[str, str] = {}
    patch_policy: str = ""  # Retain, Overwrite, MergePatchJson; empty is Retain


class SidecarSetSpec(Model):
    selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    containers: msgspec.Raw = msgspec.Raw(b"null")
    init_containers: msgspec.Raw = msgspec.Raw(b"null")
    volumes: msgspec.Raw = msgspec.Raw(b"null")
    image_pull_secrets: msgspec.Raw = msgspec.Raw(b"null")
    update_strategy: SidecarSetUpdateStrategy = SidecarSetUpdateStrategy()
    injection_strategy: InjectionStrategy = InjectionStrategy()
    patch_pod_metadata: list[PatchPodMetadata] = []
    revision_history_limit: int | None = None
    custom_version: str = ""


class SidecarSetStatus(Model):
    observed_generation: int = 0
    matched_pods: int = 0
    updated_pods: int = 0
    ready_pods: int = 0
    updated_ready_pods: int = 0
    latest_revision: str = ""
    collision_count: int | None = None


class SidecarSet(Model, dict=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: SidecarSetSpec = SidecarSetSpec()
    status: SidecarSetStatus = SidecarSetStatus()

    @struct_cached_property
    def sidecars(self) -> list[Sidecar]:
        """Return the decoded `spec.containers`. Raises ValueError if unreadable."""
        return _sidecars(self.spec.containers) or []

    @struct_cached_property
    def init_sidecars(self) -> list[Sidecar]:
        """Return the decoded `spec.initContainers`. Raises ValueError if unreadable."""
        return _sidecars(self.spec.init_containers) or []

    @property
    def base(self) -> str:
        """Return the SidecarSet that this one is a canary of; empty if it is not a canary."""
        annotations = self.metadata.annotations
        return annotations.get(BASE_ANNOTATION, "") if annotations.get(CANARY_ANNOTATION) == "true" else ""


_sidecars = msgspec.json.Decoder(list[Sidecar] | None).decode
