"""The spec of one SidecarSet to inject: its newest or a restored one."""

import msgspec

from flotilla_common.api.documents import Json, mappings, member, strings, text, typed
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.types import PatchPodMetadata


class Source(msgspec.Struct, frozen=True):
    """One SidecarSet, as it is injected into one pod."""

    document: Json
    revision: str = ""
    """The name of its ControllerRevision, "" if there is none."""

    @property
    def name(self) -> str:
        """The name of the SidecarSet."""
        return text(member(self.document, "metadata").get("name"))

    @property
    def containers(self) -> list[Json]:
        """The containers to inject, as the user wrote them."""
        return mappings(member(self.document, "spec").get("containers"))

    @property
    def init_containers(self) -> list[Json]:
        """The init containers to inject."""
        return mappings(member(self.document, "spec").get("initContainers"))

    @property
    def volumes(self) -> dict[str, Json]:
        """The volumes by name."""
        return {text(one.get("name")): one for one in mappings(member(self.document, "spec").get("volumes"))}

    @property
    def pull_secrets(self) -> list[Json]:
        """The secrets to pull their images with."""
        return mappings(member(self.document, "spec").get("imagePullSecrets"))

    @property
    def pod_metadata(self) -> list[PatchPodMetadata]:
        """The metadata that it puts on pods. Raises ValueError if they cannot be parsed."""
        entries = mappings(member(self.document, "spec").get("patchPodMetadata"))
        return typed(entries, list[PatchPodMetadata])

    @property
    def listed(self) -> list[str]:
        """The sidecars that pods record: its containers and its native sidecars."""
        native = [one for one in self.init_containers if is_native(one)]
        return sorted(text(one.get("name")) for one in (*self.containers, *native))

    @property
    def hashes(self) -> tuple[str, str]:
        """The hash of its containers, and the same without images."""
        annotations = strings(member(self.document, "metadata").get("annotations"))
        return annotations.get(SIDECAR_SET_HASH, ""), annotations.get(SIDECAR_SET_HASH_WITHOUT_IMAGE, "")


def is_native(container: Json) -> bool:
    """Report whether the init container keeps running beside the pod's containers."""
    return container.get("restartPolicy") == "Always"
