"""The admission interface, between reading a request and committing it."""

from typing import Protocol

import msgspec

from flotilla_common.control.plan import Json
from tests.simulation.apiserver.kinds.base import Kind


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a write that admission decides on."""

    writer: str
    operation: str  # CREATE, UPDATE, DELETE
    kind: Kind
    namespace: str
    name: str
    subresource: str
    dry_run: bool
    document: Json | None  # None for DELETE
    old: Json | None  # None for CREATE


class Admission(Protocol):
    """Changes and rejects writes: the webhook handlers of `apiserver.webhooks`, or those of a test."""

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        """Report whether admission handles such a write."""
        ...

    async def mutate(self, attributes: Attributes) -> Json:
        """Return the admitted document of a CREATE or UPDATE. Raises ApiError to reject it."""
        ...

    async def validate(self, attributes: Attributes) -> None:
        """Validate a write. Raises ApiError to reject it."""
        ...
