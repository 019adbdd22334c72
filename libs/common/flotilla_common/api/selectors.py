"""Label selectors: validation, matching, and the canonical string that Kubernetes prints (cloneset.md §5.1)."""

from collections.abc import Mapping

from flotilla_common.api.meta import LabelSelector


class Selector:
    """A compiled label query. An empty one matches everything."""

    @classmethod
    def compile(cls, selector: LabelSelector) -> "Selector":
        """Raises ValueError that names the field and the reason for an invalid key, value or operator."""
        raise NotImplementedError

    @property
    def empty(self) -> bool:
        """No requirement at all."""
        raise NotImplementedError

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all requirements hold."""
        raise NotImplementedError

    def __str__(self) -> str:
        raise NotImplementedError
