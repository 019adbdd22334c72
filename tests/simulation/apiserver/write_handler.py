"""CREATE, UPDATE (of a PUT or a PATCH) and DELETE, step by step in the order of the real apiserver.

What a write does is decided on one version of the object and committed only if that is still the newest; admission may
take its time in between. A write that changes nothing is answered, but makes no version.
"""

from collections.abc import Callable, Sequence

import msgspec

from flotilla_common.api.documents import mapping, member
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import NAMESPACE
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.model import writes
from flotilla_common.model.store import cleaned, kept
from tests.simulation.apiserver import errors, quota
from tests.simulation.apiserver import metadata as rules
from tests.simulation.apiserver.admission import Admission, Attributes
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.store import Store, Stored

ATTEMPTS = 5
"""Attempts of an update whose object changes meanwhile."""

Change = Callable[[Json], Json]
"""Maps the stored document to the wanted one. Raises ApiError."""


class Reply(msgspec.Struct, frozen=True):
    """The answer to a write, and the version that it committed; 0 for none."""

    raw: bytes
    revision: int = 0


class Where(msgspec.Struct, frozen=True):
    """The target of a write, and who asks."""

    writer: str
    kind: Kind
    namespace: str
    name: str = ""
    subresource: str = ""
    dry_run: bool = False

    @property
    def place(self) -> tuple[str, str]:
        return self.namespace, self.name


class WriteHandler:
    """Writes of one apiserver."""

    def __init__(self, store: Store, clock: Clock, admission: Admission | None) -> None:
        self._store = store
        self._clock = clock
        self.admission = admission

    async def create(self, where: Where, document: Json) -> Reply:
        """POST. ApiError 400, 403, 404, 409, 422."""
        kind = where.kind
        metadata = mapping(document.get("metadata"))
        if metadata.get("resourceVersion"):
            raise errors.refusal(500, "", "resourceVersion should not be set on objects to be created")
        self._check_namespace(where, str(metadata.get("namespace") or where.namespace))
        name = str(metadata.get("name") or "")
        if not name and metadata.get("generateName"):
            name = f"{metadata['generateName'][:58]}{self._store.fresh_suffix()}"
        document = kind.decode(_typed(kind, document, self._fresh_metadata(where, metadata, name)), None)
        where = msgspec.structs.replace(where, name=name)
        document = await self._mutated(where, "CREATE", document, None)
        document = kind.prepare_create(document)
        faults = rules.create_faults(document["metadata"]) if name else [_NAMELESS]
        self._refuse(where, faults or kind.validate(document, None, ""))
        await self._validated(where, "CREATE", document, None)
        quota.check(self._store, where.kind, where.namespace, document)
        table = self._store.table(kind.resource)
        if where.place in table.objects:
            raise errors.already_exists(kind.where, name)
        if where.dry_run:
            return Reply(msgspec.json.encode(document))
        stored = self._store.put(table, where.place, document, where.writer)
        return Reply(stored.raw, stored.revision)

    async def update(self, where: Where, change: Change) -> Reply:
        """Handle PUT or PATCH. Raises ApiError 404, 409, 422, and the errors of `change`."""
        table = self._store.table(where.kind.resource)
        for _ in range(ATTEMPTS):
            stored = table.objects.get(where.place)
            if stored is None:
                raise errors.not_found(where.kind.where, where.name)
            document = await self._updated(where, stored, change(stored.document))
            if table.objects.get(where.place) is not stored:
                continue
            if where.dry_run:
                return Reply(msgspec.json.encode(document))
            return self._commit(where, stored, document)
        raise errors.conflict(where.kind.where, where.name)

    async def delete(self, where: Where, options: Json) -> Reply:
        """DELETE. ApiError 403, 404, 409."""
        table = self._store.table(where.kind.resource)
        stored = table.objects.get(where.place)
        if stored is None:
            raise errors.not_found(where.kind.where, where.name)
        _check_preconditions(where.kind, stored.document, options)
        await self._validated(where, "DELETE", None, stored.document)
        if table.objects.get(where.place) is not stored:
            return await self.delete(where, options)
        treatment = writes.decide(where.kind, stored.document, options, self._clock.now())
        revision = 0
        if treatment.marked is not None and not where.dry_run:
            stored = self._store.put(table, where.place, treatment.marked, where.writer)
            revision = stored.revision
        if not treatment.ends or where.dry_run:
            return Reply(stored.raw, revision)
        last = self._store.remove(table, where.place, stored.document, where.writer)
        return Reply(last.raw if where.kind.returns_deleted else _gone(where, last.document), last.revision)

    async def evict(self, where: Where, eviction: Json) -> Reply:
        """CREATE of an eviction: admission sees that, and nothing of the deletion that follows. ApiError 404."""
        await self._validated(where, "CREATE", eviction, None)
        return await self.delete(where, member(eviction, "deleteOptions"))

    def _commit(self, where: Where, stored: Stored, document: Json) -> Reply:
        table = self._store.table(where.kind.resource)
        if writes.ended(where.kind, document):
            last = self._store.remove(table, where.place, document, where.writer)
            return Reply(last.raw, last.revision)
        if document == stored.document:
            return Reply(stored.raw)
        after = self._store.put(table, where.place, document, where.writer)
        return Reply(after.raw, after.revision)

    async def _updated(self, where: Where, stored: Stored, wanted: Json) -> Json:
        """Return the document that the update results in."""
        kind, old = where.kind, stored.document
        metadata = mapping(wanted.get("metadata"))
        if metadata.get("name", where.name) != where.name:
            named = f"the name of the object ({metadata['name']}) does not match the name on the URL ({where.name})"
            raise errors.bad_request(named)
        document = kind.decode(_typed(kind, wanted, kept(metadata, old["metadata"])), old)
        document = await self._mutated(where, "UPDATE", document, old)
        self._check_version(where, stored, str(metadata.get("resourceVersion") or ""))
        document = kind.prepare_update(document, old, where.subresource)
        document = _with_metadata(document, {"resourceVersion": str(stored.revision)})
        if kind.changes_generation(document, old):
            document = _with_metadata(document, {"generation": old["metadata"].get("generation", 0) + 1})
        faults = rules.update_faults(document["metadata"], old["metadata"], metadata)
        self._refuse(where, faults + kind.validate(document, old, where.subresource))
        await self._validated(where, "UPDATE", document, old)
        return document

    def _check_namespace(self, where: Where, claimed: str) -> None:
        """Check that the object's namespace is that of the request, exists, and is not terminating."""
        if not where.kind.resource.namespaced:
            return
        if claimed != where.namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        found = self._store.table(NAMESPACE).objects.get(("", where.namespace))
        if found is None:
            raise errors.not_found("namespaces", where.namespace)
        if "deletionTimestamp" in found.document["metadata"]:
            message = f"namespace {where.namespace} is being terminated"
            cause: Json = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
            why = f"unable to create new content in namespace {where.namespace} because it is being terminated"
            raise errors.forbidden(where.kind.where, where.name, why, [cause])

    def _fresh_metadata(self, where: Where, metadata: Json, name: str) -> Json:
        result = cleaned(metadata)
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            result.pop(key, None)
        result["name"] = name
        if where.namespace:
            result["namespace"] = where.namespace
        result["uid"] = self._store.fresh_uid()
        result["creationTimestamp"] = rfc3339(self._clock.now())
        if where.kind.generations:
            result["generation"] = 1
        return result

    def _check_version(self, where: Where, stored: Stored, wanted: str) -> None:
        """Check that a resourceVersion in the write is the stored one."""
        if wanted in ("", str(stored.revision)):
            return
        if not wanted.isdecimal():
            raise errors.refusal(500, "", f'strconv.ParseUint: parsing "{wanted}": invalid syntax')
        raise errors.conflict(where.kind.where, where.name)

    def _refuse(self, where: Where, faults: Sequence[errors.FieldFault]) -> None:
        if faults:
            raise errors.invalid(where.kind.resource.kind, where.kind.resource.group, where.name, faults)

    async def _mutated(self, where: Where, operation: str, document: Json, old: Json | None) -> Json:
        admission = self.admission
        if admission is None or not admission.concerns(where.kind, operation, where.subresource):
            return document
        mutated = await admission.mutate(_attributes(where, operation, document, old))
        return document if mutated is document else where.kind.decode(mutated, old)

    async def _validated(self, where: Where, operation: str, document: Json | None, old: Json | None) -> None:
        admission = self.admission
        if admission is not None and admission.concerns(where.kind, operation, where.subresource):
            await admission.validate(_attributes(where, operation, document, old))


_PRECONDITIONS = (
    ("uid", "UID", "deleted and then recreated"),
    ("resourceVersion", "ResourceVersion", "modified"),
)


def _check_preconditions(kind: Kind, document: Json, options: Json) -> None:
    """Check the preconditions of a delete. Raises ApiError 409."""
    wanted, metadata = member(options, "preconditions"), document["metadata"]
    for key, told, happened in _PRECONDITIONS:
        if wanted.get(key) and wanted[key] != metadata[key]:
            asked, found = f"the {told} in the precondition ({wanted[key]})", f"the {told} in record ({metadata[key]})"
            why = f"{asked} does not match {found}. The object might have been {happened}"
            group = f".{kind.resource.group}" if kind.resource.group else ""
            raise errors.conflict(f"{kind.resource.kind}{group}", metadata["name"], why)


_NAMELESS = errors.required("metadata.name", "name or generateName is required")


def _attributes(where: Where, operation: str, document: Json | None, old: Json | None) -> Attributes:
    return Attributes(
        writer=where.writer,
        operation=operation,
        kind=where.kind,
        namespace=where.namespace,
        name=where.name,
        subresource=where.subresource,
        dry_run=where.dry_run,
        document=document,
        old=old,
    )


def _typed(kind: Kind, document: Json, metadata: Json) -> Json:
    """Return the document with its type first, then its metadata, as it is stored."""
    result: Json = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, "metadata": metadata}
    for key, value in document.items():
        result.setdefault(key, value)
    return result


def _with_metadata(document: Json, change: Json) -> Json:
    return document | {"metadata": document["metadata"] | change}


def _gone(where: Where, document: Json) -> bytes:
    """Return the Status by which most kinds confirm a delete."""
    resource = where.kind.resource
    details = {"name": where.name, "kind": resource.plural, "uid": document["metadata"]["uid"]}
    if resource.group:
        details["group"] = resource.group
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return msgspec.json.encode(status)
