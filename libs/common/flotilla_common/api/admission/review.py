"""An admission request and its answer (webhooks.md §1).

Objects stay raw documents. A refusal has one of two shapes that clients can tell apart: an *error* carries a code and a
message, a *denial* also says `reason: Forbidden`.
"""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.admission.patch import Operation
from flotilla_common.api.documents import Json, member, text


class Named(msgspec.Struct, frozen=True):
    """A group, version, and the kind or resource in it."""

    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""


class User(msgspec.Struct, frozen=True):
    """Who asks."""

    username: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """What the apiserver asks about. `object` and `old_object` are in the version of the client's request."""

    uid: str
    operation: str = ""
    kind: Named = Named()
    resource: Named = Named()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: User = User()
    object: Json | None = None
    old_object: Json | None = None
    dry_run: bool = False
    options: Json | None = None  # of the write; they name its field manager


class Answer(msgspec.Struct, frozen=True):
    """What we say to it. `warnings` are shown to whoever wrote the object; kubectl prints them."""

    allowed: bool = True
    code: int = 200
    message: str = ""
    reason: str = ""
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()


ALLOWED = Answer()


def error(code: int, message: str) -> Answer:
    """Refused, with a code of its own and without a reason."""
    return Answer(allowed=False, code=code, message=message)


def denied(message: str) -> Answer:
    """Refused as Forbidden."""
    return Answer(allowed=False, code=403, message=message, reason="Forbidden")


class Refused(Exception):
    """Ends a request where it is found out that it cannot be allowed."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = error(code, message)


def patched(patch: Sequence[Operation]) -> Answer:
    """Allowed with changes; without any, simply allowed."""
    return Answer(patch=patch) if patch else ALLOWED


def identity(document: Json, request: Request) -> tuple[str, str]:
    """Namespace and name of the object: its own, because a request for a collection names none."""
    metadata = member(document, "metadata")
    return text(metadata.get("namespace")) or request.namespace, text(metadata.get("name")) or request.name
