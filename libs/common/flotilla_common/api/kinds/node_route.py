"""Which node an object concerns, and how much of it the node's agent gets (docs/adr/0007)."""

from collections.abc import Callable

import msgspec

from flotilla_common.api.meta import metadata_of


class Copy(msgspec.Struct, frozen=True):
    """What a node gets of an object. Two copies with the same digest say the same."""

    body: bytes
    digest: int


def whole(body: bytes) -> Copy:
    """All of the object. Raises msgspec.DecodeError."""
    return Copy(body, hash(metadata_of(body).resource_version))


class NodeRoute(msgspec.Struct, frozen=True):
    """From an object, as it is published on kube.v1, to a node. Both raise msgspec.DecodeError."""

    node: Callable[[bytes], str]
    """The node that the object concerns, empty if none. Asked for every object."""
    copy: Callable[[bytes], Copy] = whole
    """What that node gets of it. Asked only when the node's agent reads."""
