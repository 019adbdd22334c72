"""Where admission plugs in: between reading a request and committing it."""

from typing import Protocol

import msgspec

from flotilla_common.control.plan import Json
from tests.simulation.apiserver.kinds.base import Kind


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """What admission decides about."""

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
    """Changes and refuses writes; the webhook handlers of `apiserver.webhooks`, or whatever a test needs."""

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        """Whether such a write is asked about at all."""
        ...

    async def mutate(self, attributes: Attributes) -> Json:
        """The document of a CREATE or UPDATE as it shall be. Raises ApiError to refuse."""
        ...

    async def validate(self, attributes: Attributes) -> None:
        """Raises ApiError to refuse."""
        ...
