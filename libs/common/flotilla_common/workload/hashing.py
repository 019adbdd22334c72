"""Hashes that end up in names, labels and annotations (common.md §7.2, §7.6, §9.8)."""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.core import Container


def revision_data(template: bytes | msgspec.Raw) -> bytes:
    """`data` of a revision of this template: canonical, members sorted, as it is hashed and compared. Cached."""
    raise NotImplementedError


def revision_hash(data: bytes, collision_count: int | None) -> str:
    """The hash at the end of a revision's name."""
    raise NotImplementedError


def claim_templates_hash(templates: Sequence[msgspec.Raw]) -> str:
    """The annotation's value for these volumeClaimTemplates; empty when there are none (common.md §7.6)."""
    raise NotImplementedError


def object_hash(document: bytes) -> int:
    """FNV-1a over the printed bytes of a JSON document (common.md §9.8)."""
    raise NotImplementedError


def plain_hash(container: Container) -> int:
    """The kubelet's (1.31 and newer) hash of a container."""
    raise NotImplementedError


def env_hash(container: Container, labels: Mapping[str, str], annotations: Mapping[str, str]) -> int:
    """The expected hash of what a container reads from its pod's metadata through env."""
    raise NotImplementedError
