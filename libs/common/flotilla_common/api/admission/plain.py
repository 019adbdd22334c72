"""Common admission handlers: apply defaults, and refuse with the first fault or with all at once."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from flotilla_common.api.admission.fields import Fault, aggregate
from flotilla_common.api.admission.review import ALLOWED, Answer, Refused, Request, error, identity, operations, patched
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json, without_nulls
from flotilla_common.api.errors import ApiError, Unreachable

T = TypeVar("T")

Read = Callable[[Json], object]
"""Decodes a document. Raises ValueError if it cannot be read."""


class Write(msgspec.Struct, frozen=True):
    """A creation or an update under admission."""

    document: Json
    old: Json | None  # None for a creation, and for an unreadable object, which may be fixed in any way
    namespace: str
    name: str


class Judgement(msgspec.Struct, frozen=True):
    """The faults of a write, and the warnings for its author if there are none."""

    faults: Sequence[Fault] = ()
    warnings: Sequence[str] = ()
    code: int = 422  # the HTTP code of faults


def decoded(document: Json, model: type[T]) -> T:
    """Decode the document into the type; a member that is null is absent. Raises ValueError for a wrong type."""
    return msgspec.json.decode(msgspec.json.encode(without_nulls(document)), type=model)


def write_of(request: Request, read: Read) -> Write:
    """Return the write of the request. Raises Refused for an object that cannot be read."""
    document = document_of(request, read)
    return Write(document, former_of(request, read), *identity(document, request))


def in_hub(write: Write, to_hub: Callable[[Json], Json]) -> Write:
    """Return the write with its documents in v1beta1. Raises ValueError for documents that cannot be converted."""
    old = to_hub(write.old) if write.old is not None else None
    return msgspec.structs.replace(write, document=to_hub(write.document), old=old)


def document_of(request: Request, read: Read) -> Json:
    """Return the object of the request. Raises Refused for one that cannot be read."""
    if request.object is None:
        raise Refused(400, "the request has no object")
    try:
        read(request.object)
    except ValueError as fault:
        raise Refused(400, str(fault)) from fault
    return request.object


def former_of(request: Request, read: Read) -> Json | None:
    """Return the object that an update changes, or None: an unreadable one may be replaced by any other."""
    if request.operation != "UPDATE" or request.old_object is None:
        return None
    try:
        read(request.old_object)
    except ValueError:
        return None
    return request.old_object


def defaulted(request: Request, read: Read, default: Callable[[Write], Json]) -> Answer:
    """Answer with defaults as a patch, in the version of the request. Raises Refused."""
    write = write_of(request, read)
    return patched(operations(write.document, default(write)))


async def judged(
    request: Request, tools: Tools, read: Read, judge: Callable[[Write, Tools], Awaitable[Judgement]]
) -> Answer:
    """Answer with all field errors at once, or with warnings; for a deletion, with its protection. Raises Refused."""
    if request.operation == "DELETE":
        return await tools.deletion_protection(request)
    write = write_of(request, read)
    try:
        judgement = await judge(write, tools)
    except (ApiError, Unreachable) as failure:
        return error(500, f"cannot check the {write.document.get('kind')}: {failure}")
    if judgement.faults:
        return error(judgement.code, aggregate(judgement.faults))
    return Answer(warnings=judgement.warnings)


def judged_at_first(request: Request, model: type[T], problem_of: Callable[[T], str]) -> Answer:
    """Answer with the first fault (400), if there is one."""
    try:
        problem = problem_of(decoded(request.object or {}, model))
    except ValueError as fault:
        problem = str(fault)
    return error(400, problem) if problem else ALLOWED
