"""Creates, changes and deletes copies (resourcedistribution.md §5.4).

Every change and every deletion is on exactly the version read: an object of another owner that took the name meanwhile
is never changed.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from flotilla_common.api.documents import Json, mappings, member, sequence, strings
from flotilla_common.api.keys import DISTRIBUTED_AT, DISTRIBUTED_FROM, DISTRIBUTED_HASH
from flotilla_common.api.kinds.resourcedistribution.types import (
    CREATE_FAILED,
    DELETE_FAILED,
    RESOURCE_DISTRIBUTION,
    UPDATE_FAILED,
    ResourceDistribution,
)
from flotilla_common.api.meta import controller_of
from flotilla_common.control.plan import Chain, Create, Delete, Intent, Patch
from flotilla_common.control.writes import create_of, delete_of, patch_of
from flotilla_common.workload.ownership import owner_reference
from flotilla_sidecar.resourcedistribution.content import Copy


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


def _metadata(distribution: ResourceDistribution, now: datetime, held: Sequence[str] = ()) -> Json:
    """Return the metadata of a copy, without its name. `held`: its existing finalizers."""
    meta, given = distribution.metadata, member(distribution.source.document, "metadata")
    ours = {
        DISTRIBUTED_FROM: meta.name,
        DISTRIBUTED_HASH: hash_of(distribution.spec.resource),
        DISTRIBUTED_AT: _written(now),
    }
    others = [owner for owner in mappings(given.get("ownerReferences")) if owner.get("uid") != meta.uid]
    labels, finalizers = strings(given.get("labels")), list(dict.fromkeys([*held, *sequence(given.get("finalizers"))]))
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
