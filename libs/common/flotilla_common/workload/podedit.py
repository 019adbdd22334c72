"""Collects what changes on one pod, and turns it into as few writes as possible (DESIGN §1)."""

from collections.abc import Iterable, Mapping

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Condition
from flotilla_common.control.plan import Chain, Json, Notice


class PodEdit:
    """The pod as it will be. Reading gives the edited values; the pod itself is never touched."""

    def __init__(self, pod: Pod, cause: str, *, phase: str = "update") -> None:
        self.pod = pod

    @property
    def changed(self) -> bool:
        """Anything to write."""
        raise NotImplementedError

    def label(self, key: str) -> str | None:
        """The label's value after the edit."""
        raise NotImplementedError

    def annotation(self, key: str) -> str | None:
        """The annotation's value after the edit."""
        raise NotImplementedError

    def condition(self, kind: str) -> Condition | None:
        """The condition after the edit."""
        raise NotImplementedError

    def set_labels(self, labels: Mapping[str, str | None]) -> None:
        """Set labels; None removes one."""
        raise NotImplementedError

    def set_annotations(self, annotations: Mapping[str, str | None]) -> None:
        """Set annotations; None removes one."""
        raise NotImplementedError

    def add_finalizers(self, finalizers: Iterable[str]) -> None:
        """Append finalizers that are not there yet."""
        raise NotImplementedError

    def set_condition(self, condition: Condition) -> None:
        """Set a condition."""
        raise NotImplementedError

    def set_image(self, container: str, image: str) -> None:
        """Change the image of a container."""
        raise NotImplementedError

    def set_resources(self, container: str, resources: Json) -> None:
        """Change some of a container's resources: {limits: {name: quantity}, requests: …}."""
        raise NotImplementedError

    def merge_metadata(self, patch: Json) -> None:
        """Apply a strategic merge patch of the template's metadata."""
        raise NotImplementedError

    def chain(
        self,
        *,
        resource_version: str = "",
        on_success: Notice | None = None,
        on_failure: Notice | None = None,
    ) -> Chain:
        """The writes: pods/status with all conditions, labels and annotations if a condition changes, else one patch.

        `resource_version` makes the first write conditional (later ones then follow it); the notices go with the last.
        """
        raise NotImplementedError
