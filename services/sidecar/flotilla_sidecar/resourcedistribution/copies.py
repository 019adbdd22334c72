"""Compares copies of Secrets and ConfigMaps with their source, and creates, changes and deletes them.

See resourcedistribution.md §5.3 and §5.4. The content is everything but metadata and status. Only digests are kept of
existing objects. So a large copy in a thousand namespaces costs little memory, and other users' secrets of the same
name are not kept in memory at all. The source is compared in the form that the apiserver stores: `stringData`, an
omitted type and base64 in several lines are no difference.

Every change and every deletion is on exactly the version read: an object of another owner that took the name meanwhile
is never changed.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from flotilla_common.api.documents import Json, mapping, mappings, member, sequence, strings, text
from flotilla_common.api.keys import DISTRIBUTED_AT, DISTRIBUTED_FROM, DISTRIBUTED_HASH
from flotilla_common.api.kinds.resourcedistribution.types import (
    CREATE_FAILED,
    DELETE_FAILED,
    RESOURCE_DISTRIBUTION,
    UPDATE_FAILED,
    ResourceDistribution,
    Source,
)
from flotilla_common.api.meta import Model, ObjectMeta, controller_of
from flotilla_common.api.resources import SECRET
from flotilla_common.control.plan import Chain, Create, Delete, Intent, Patch
from flotilla_common.control.writes import create_of, delete_of, patch_of
from flotilla_common.workload.ownership import owner_reference

OPAQUE = "Opaque"
"""The default type of a Secret."""


Values = dict[str, str | None]


class Copy(Model):
    """An existing Secret or ConfigMap: its owner, and digests of its content."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: Values | None = None
    binary_data: Values | None = None
    immutable: bool | None = None
    digested: bool = False

    def __post_init__(self) -> None:
        """Replace all values by digests, and drop the metadata that may repeat them."""
        if self.digested:
            return
        bare = msgspec.structs.replace(self.metadata, labels={}, annotations={}, managed_fields=[])
        msgspec.structs.force_setattr(self, "digested", True)
        msgspec.structs.force_setattr(self, "metadata", bare)
        msgspec.structs.force_setattr(self, "data", _digested(self.data))
        msgspec.structs.force_setattr(self, "binary_data", _digested(self.binary_data))


class Part(msgspec.Struct, frozen=True):
    """The values of one member, and their digests."""

    values: Json
    digests: Mapping[str, str]


class Content(msgspec.Struct, frozen=True):
    """The desired content of a copy, in the form that the apiserver stores."""

    type: str
    data: Part
    binary_data: Part
    immutable: bool


def content_of(source: Source) -> Content:
    """Return the desired content of copies of the source."""
    document, data = source.document, mapping(source.document.get("data"))
    immutable = document.get("immutable") is True
    if source.resource != SECRET:
        plain = {key: _not_null(value) for key, value in data.items()}
        return Content("", _part(plain), _part(_binary(document.get("binaryData"))), immutable)
    written = {key: _encoded(_not_null(value)) for key, value in mapping(document.get("stringData")).items()}
    return Content(text(document.get("type")) or OPAQUE, _part(_binary(data) | written), _part({}), immutable)


def change(copy: Copy, wanted: Content) -> Json:
    """Return the merge patch that gives the copy the desired content; empty if it has it."""
    patch: Json = {
        "data": _changed(copy.data or {}, wanted.data),
        "binaryData": _changed(copy.binary_data or {}, wanted.binary_data),
    }
    patch = {member: values for member, values in patch.items() if values}
    if copy.type != wanted.type:
        patch["type"] = wanted.type or None
    if bool(copy.immutable) != wanted.immutable:
        patch["immutable"] = wanted.immutable or None
    return patch


def _changed(stored: Mapping[str, str | None], wanted: Part) -> Json:
    if stored == wanted.digests:
        return {}
    new = {key: value for key, value in wanted.values.items() if stored.get(key) != wanted.digests[key]}
    return new | dict.fromkeys(stored.keys() - wanted.values.keys())


def _part(values: Json) -> Part:
    return Part(values, {key: _digest(value) for key, value in values.items()})


def _digested(values: Values | None) -> Values:
    return {key: _digest(_not_null(value)) for key, value in (values or {}).items()}


def _digest(value: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()


def _binary(values: object) -> Json:
    """Return base64 values in canonical form. Invalid base64 is left for the apiserver to reject."""
    return {key: _canonical(_not_null(value)) for key, value in mapping(values).items()}


def _canonical(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        read = base64.b64decode(value.translate(_LINE_ENDS), validate=True)
    except (binascii.Error, ValueError):
        return value
    return base64.b64encode(read).decode()


_LINE_ENDS = dict.fromkeys(map(ord, "\r\n"))


def _encoded(value: object) -> object:
    return base64.b64encode(value.encode()).decode() if isinstance(value, str) else value


def _not_null(value: object) -> object:
    """Return an empty string for null, as the apiserver stores it."""
    return "" if value is None else value


def is_ours(copy: Copy, distribution: ResourceDistribution) -> bool:
    """Report whether the ResourceDistribution controls the object. Looking like a copy is not enough."""
    owner, meta = controller_of(copy.metadata), distribution.metadata
    if owner is None:
        return False
    if owner.uid and meta.uid:
        return owner.uid == meta.uid
    return (owner.kind, owner.name) == (RESOURCE_DISTRIBUTION.kind, meta.name)


def phase(failure: str, namespace: str) -> str:
    """Return the phase of a write: the condition of its failure, and its namespace."""
    return f"{failure} {namespace}"


def creation(distribution: ResourceDistribution, namespace: str, now: datetime) -> Create:
    """Create the copy of a namespace."""
    source = distribution.source
    metadata = {"name": source.name, "namespace": namespace} | _metadata(distribution, now)
    body = {key: value for key, value in source.document.items() if key != "status"} | {"metadata": metadata}
    where = phase(CREATE_FAILED, namespace)
    return create_of(source.resource, body, Intent.CREATE, "distribute", phase=where)


def update(distribution: ResourceDistribution, copy: Copy, content: Json, now: datetime) -> Patch:
    """Correct the content of the copy. Other writers' additions to its metadata stay, except owners."""
    metadata = _metadata(distribution, now, copy.metadata.finalizers)
    where = copy.metadata.namespace
    return patch_of(
        distribution.source.resource,
        copy.metadata,
        Intent.UPDATE,
        "its content differs",
        body=content | {"metadata": metadata},
        on_version=True,
        phase=phase(UPDATE_FAILED, where),
    )


def replacement(distribution: ResourceDistribution, copy: Copy, now: datetime) -> Chain:
    """Delete and recreate the copy, since the type of a Secret cannot be changed.

    If finalizers hold the old copy, the new one is created when it is gone.
    """
    where = copy.metadata.namespace
    old = delete_of(
        distribution.source.resource,
        copy.metadata,
        Intent.REPLACE,
        "its type differs, and cannot be changed",
        on_version=True,
        phase=phase(UPDATE_FAILED, where),
    )
    return (old,) if copy.metadata.finalizers else (old, creation(distribution, where, now))


def removal(distribution: ResourceDistribution, copy: Copy) -> Delete:
    """Delete the copy of a namespace that is no longer a target."""
    where = phase(DELETE_FAILED, copy.metadata.namespace)
    return delete_of(
        distribution.source.resource,
        copy.metadata,
        Intent.DELETE,
        "no longer a target",
        on_version=True,
        phase=where,
    )


def hash_of(resource: bytes | msgspec.Raw) -> str:
    """Return the hash of the resource's bytes as the apiserver shows them."""
    return hashlib.sha256(bytes(resource)).hexdigest()


def _metadata(distribution: ResourceDistribution, now: datetime, finalizers: Sequence[str] = ()) -> Json:
    """Return the metadata of a copy, without its name. `finalizers`: its existing finalizers."""
    meta, given = distribution.metadata, member(distribution.source.document, "metadata")
    ours = {
        DISTRIBUTED_FROM: meta.name,
        DISTRIBUTED_HASH: hash_of(distribution.spec.resource),
        DISTRIBUTED_AT: _written(now),
    }
    others = [owner for owner in mappings(given.get("ownerReferences")) if owner.get("uid") != meta.uid]
    labels = strings(given.get("labels"))
    finalizers = list(dict.fromkeys([*finalizers, *sequence(given.get("finalizers"))]))
    return {
        "annotations": strings(given.get("annotations")) | ours,
        "ownerReferences": [*others, owner_reference(RESOURCE_DISTRIBUTION, meta)],
        **({"labels": labels} if labels else {}),
        **({"finalizers": finalizers} if finalizers else {}),
    }


def _written(now: datetime) -> str:
    """Return the time as earlier releases wrote it: Go's own form, without trailing zeros."""
    moment = now.astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}".rstrip("0").rstrip(".") + " +0000 UTC"
