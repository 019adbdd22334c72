"""Admission requests and answers (webhooks.md §1).

Objects stay raw documents, and changes of them are RFC 6902 operations. A refusal has one of two shapes that clients
can tell apart: an *error* carries a code and a message, a *denial* also has `reason: Forbidden`.
"""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.changes import differences
from flotilla_common.api.documents import Json, JsonValue, member, text


class Operation(msgspec.Struct, frozen=True):
    """One operation: add, remove or replace; `value` is meaningless for a removal."""

    op: str
    path: str
    value: JsonValue = None

    def document(self) -> Json:
        """Return the operation as it is sent."""
        bare: Json = {"op": self.op, "path": self.path}
        return bare if self.op == "remove" else bare | {"value": self.value}


def operations(before: JsonValue, after: JsonValue) -> list[Operation]:
    """Return the operations that turn `before` into `after`, in order; empty for equal documents."""
    return [Operation(one.op, "".join(map(_step, one.path)), one.value) for one in differences(before, after)]


def _step(key: str | int) -> str:
    """Return one step of a JSON pointer."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


class Named(msgspec.Struct, frozen=True):
    """A group, version, and the kind or resource in it."""

    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""


class User(msgspec.Struct, frozen=True):
    """The user who sent the request."""

    username: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """A request of the apiserver. `object` and `old_object` are in the version of the client's request."""

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
    """The answer to a request. kubectl prints `warnings` to the user who wrote the object."""

    allowed: bool = True
    code: int = 200
    message: str = ""
    reason: str = ""
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()


ALLOWED = Answer()


def error(code: int, message: str) -> Answer:
    """Return a refusal with a code of its own and without a reason."""
    return Answer(allowed=False, code=code, message=message)


def denied(message: str) -> Answer:
    """Return a refusal as Forbidden."""
    return Answer(allowed=False, code=403, message=message, reason="Forbidden")


class Refused(Exception):
    """Ends a request with a refusal."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = error(code, message)


def patched(patch: Sequence[Operation]) -> Answer:
    """Return an answer that allows the request with these changes, if any."""
    return Answer(patch=patch) if patch else ALLOWED


def identity(document: Json, request: Request) -> tuple[str, str]:
    """Return namespace and name of the object: its own first, as a request for a collection has none."""
    metadata = member(document, "metadata")
    return text(metadata.get("namespace")) or request.namespace, text(metadata.get("name")) or request.name
