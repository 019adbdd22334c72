"""The usual shape of admission: fill in defaults, refuse what cannot be read, refuse the first fault."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.review import ALLOWED, Answer, Refused, Request, error, patched
from flotilla_common.api.documents import Json, without_nulls

T = TypeVar("T")


def decoded(document: Json, model: type[T]) -> T:
    """The document as the type says it; a member that is null is not there. Raises ValueError for a wrong type."""
    return msgspec.json.decode(msgspec.json.encode(without_nulls(document)), type=model)


def document_of(request: Request, decode: Callable[[Json], object]) -> Json:
    """The object of the request. Raises Refused for one that cannot be read."""
    if request.object is None:
        raise Refused(400, "there is no object in the request")
    try:
        decode(request.object)
    except ValueError as fault:
        raise Refused(400, str(fault)) from fault
    return request.object


def former_of(request: Request, decode: Callable[[Json], object]) -> Json | None:
    """Return the object that an update changes; None at any other operation, and for one that was stored past admission
    and cannot be read: such a one may be mended in any way."""
    if request.operation != "UPDATE" or request.old_object is None:
        return None
    try:
        decode(request.old_object)
    except ValueError:
        return None
    return request.old_object


def defaulted(request: Request, model: type[object], default: Callable[[Json], Json]) -> Answer:
    """Defaults as a patch. Raises Refused."""
    document = document_of(request, lambda it: decoded(it, model))
    return patched(operations(document, default(document)))


def judged(request: Request, model: type[T], problem_of: Callable[[T], str]) -> Answer:
    """The first fault (400), if there is one."""
    try:
        problem = problem_of(decoded(request.object or {}, model))
    except ValueError as fault:
        problem = str(fault)
    return error(400, problem) if problem else ALLOWED
