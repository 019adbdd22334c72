"""Admission handlers: their interface to gates, time and apiserver, and their common steps.

Most apply defaults, or refuse with the first fault or with all at once. The webhook service implements the interface.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec

from flotilla_common.api.admission.fields import Fault, aggregate
from flotilla_common.api.admission.review import ALLOWED, Answer, Refused, Request, error, identity, operations, patched
from flotilla_common.api.documents import Json, member, strings, without_nulls
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import CONFIG_MAP, Resource
from flotilla_common.gates import Gates


class Verdict(msgspec.Struct, frozen=True):
    """The faults of a pod template, and the paths of its members that the cluster does not support."""

    faults: list[Fault] = []
    dropped: list[str] = []


class Tools(Protocol):
    """Reads for admission: from the apiserver, never from a cache. They may raise ApiError and Unreachable."""

    @property
    def gates(self) -> Gates:
        """Return the feature gates."""
        ...

    def now(self) -> datetime:
        """Return the time of the request."""
        ...

    @property
    def namespace(self) -> str:
        """Return the system's own namespace."""
        ...

    async def read(self, resource: Resource, namespace: str, name: str) -> bytes:
        """Return an object as it is stored."""
        ...

    async def read_all(self, resource: Resource, namespace: str = "") -> Sequence[bytes | msgspec.Raw]:
        """Return all objects of a namespace, or of all, as they are stored."""
        ...

    async def metadata_of(self, resource: Resource, namespace: str, names: Collection[str]) -> Mapping[str, ObjectMeta]:
        """Return the metadata of those of these objects that exist, by name, with one LIST of metadata."""
        ...

    async def template_verdict(self, namespace: str, template: Json, claims: list[Json]) -> Verdict:
        """Return the apiserver's verdict on a pod template (docs/adr/0002). Claim templates count as volumes."""
        ...

    async def try_create(self, resource: Resource, namespace: str, document: Json) -> None:
        """Check with a dry run that the apiserver accepts an object: nothing is stored."""
        ...

    async def deletion_protection(self, request: Request) -> Answer:
        """Answer whether a workload may be deleted (deletionprotection.md)."""
        ...


Handler = Callable[[Request, Tools], Awaitable[Answer]]
"""Answers the requests of one webhook of one kind. May raise Refused."""


async def configuration(tools: Tools) -> dict[str, str]:
    """Return the data of ConfigMap `kruise-configuration`; empty without it. Raises ApiError, Unreachable.

    Administrators change it at runtime, so it is read for each request.
    """
    stored = await found_or_none(tools.read(CONFIG_MAP, tools.namespace, CONFIGURATION))
    return {} if stored is None else strings(member(msgspec.json.decode(stored, type=Json), "data"))


T = TypeVar("T")

Read = Callable[[Json], object]
"""Decodes a document. Raises ValueError if it cannot be read."""


class Write(msgspec.Struct, frozen=True):
    """A creation or an update under admission."""

    document: Json
    old: Json | None  # None for a creation, and for an unreadable object, which may be fixed in any way
    namespace: str
    name: str


class Findings(msgspec.Struct, frozen=True):
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


async def review(
    request: Request, tools: Tools, read: Read, check: Callable[[Write, Tools], Awaitable[Findings]]
) -> Answer:
    """Answer with all field errors at once, or with warnings; for a deletion, with its protection. Raises Refused."""
    if request.operation == "DELETE":
        return await tools.deletion_protection(request)
    write = write_of(request, read)
    try:
        findings = await check(write, tools)
    except (ApiError, Unreachable) as failure:
        return error(500, f"cannot check the {write.document.get('kind')}: {failure}")
    if findings.faults:
        return error(findings.code, aggregate(findings.faults))
    return Answer(warnings=findings.warnings)


def review_first(request: Request, model: type[T], problem_of: Callable[[T], str]) -> Answer:
    """Answer with the first fault (400), if there is one."""
    try:
        problem = problem_of(decoded(request.object or {}, model))
    except ValueError as fault:
        problem = str(fault)
    return error(400, problem) if problem else ALLOWED
