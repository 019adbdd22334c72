"""The usual shape of admission: fill in defaults, refuse what cannot be read, refuse the first fault."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, patched
from flotilla_common.api.documents import Json, is_object
from flotilla_common.api.kinds.kind import Kind

T = TypeVar("T")


def decoded(document: Json, model: type[T]) -> T:
    """The document as the type says it; a member that is null is not there. Raises ValueError for a wrong type."""
    return msgspec.convert(_without_nulls(document), model)


def undecodable(kind: Kind, document: Json, decode: Callable[[Json], object]) -> str:
    """Why the document cannot be read as an object of the kind; empty if it can."""
    version = document.get("apiVersion")
    if version not in kind.api_versions:
        return f"unsupported version {version}"
    try:
        decode(document)
    except ValueError as fault:
        return str(fault)
    return ""


def defaulted(kind: Kind, request: Request, model: type[object], default: Callable[[Json], Json]) -> Answer:
    """Defaults as a patch; 400 for what cannot be read."""
    document = request.object or {}
    if problem := undecodable(kind, document, lambda it: decoded(it, model)):
        return error(400, problem)
    return patched(operations(document, default(document)))


def judged(request: Request, model: type[T], problem_of: Callable[[T], str]) -> Answer:
    """The first fault (400), if there is one."""
    try:
        problem = problem_of(decoded(request.object or {}, model))
    except ValueError as fault:
        problem = str(fault)
    return error(400, problem) if problem else ALLOWED


def _without_nulls(document: Json) -> Json:
    present = {key: value for key, value in document.items() if value is not None}
    return present | {key: _without_nulls(value) for key, value in present.items() if is_object(value)}
