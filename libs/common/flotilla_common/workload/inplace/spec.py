"""What one in-place update changes on a pod (common.md §9.3)."""

import msgspec

from flotilla_common.control.plan import Frozen, Intent, Json


class ContainerMeta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Labels and annotations that a container reads through its env."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class UpdateSpec(Frozen):
    """The difference between two templates, as far as it can be applied to a running pod. Shared: never change it."""

    revision: str = ""
    images: dict[str, str] = {}
    resources: dict[str, Json] = {}  # {container: {limits, requests}}, changed entries only
    metadata_patch: Json | None = None  # strategic merge patch of the metadata's members; None when metadata stays
    ref_metadata: dict[str, ContainerMeta] = {}
    env_from_metadata: bool = False

    @property
    def intent(self) -> Intent:
        """What the writes of the update are for."""
        return Intent.RESIZE if self.resources and not self.images else Intent.IN_PLACE_UPDATE
