"""Makes the writes of a plan: creation of an object, patches and deletion of exactly the one that was planned with (by
uid), and on exactly that version of it where the decision hangs on it."""

from datetime import datetime
from typing import TypedDict, Unpack

import msgspec

from flotilla_common.api.documents import merge_patch
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.moments import later
from flotilla_common.api.resources import Resource
from flotilla_common.control.draft import Waits
from flotilla_common.control.plan import Chain, Create, Delete, Event, Frozen, Intent, Json, Patch, PatchType


class Reported(TypedDict, total=False):
    """What writes may carry besides their intent and cause: see `Effect`."""

    phase: str
    revision: str
    pods: tuple[str, ...]
    on_success: Event | None
    on_failure: Event | tuple[Event, ...] | None


class StatusPlan(Frozen):
    """What becomes of a status; `patch` is None when nothing that matters differs from the stored one."""

    patch: Patch | None = None
    urgent: bool = False


def create_of(
    resource: Resource,
    body: Json,
    intent: Intent,
    cause: str,
    *,
    tells_if_taken: bool = True,
    **reported: Unpack[Reported],
) -> Create:
    """POST the object, under the name and into the namespace that it says."""
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "")
    return Create(
        resource=resource,
        namespace=namespace,
        name=name,
        intent=intent,
        cause=cause,
        body=body,
        tells_if_taken=tells_if_taken,
        **reported,
    )


def patch_of(
    resource: Resource,
    meta: ObjectMeta,
    intent: Intent,
    cause: str,
    *,
    body: Json,
    patch_type: PatchType = PatchType.MERGE,
    subresource: str = "",
    on_version: bool = False,
    **reported: Unpack[Reported],
) -> Patch:
    """PATCH the object. `on_version`: only if nobody has written it since."""
    return Patch(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version if on_version else "",
        intent=intent,
        cause=cause,
        body=body,
        patch_type=patch_type,
        subresource=subresource,
        **reported,
    )


def delete_of(
    resource: Resource,
    meta: ObjectMeta,
    intent: Intent,
    cause: str,
    *,
    on_version: bool = False,
    **reported: Unpack[Reported],
) -> Delete:
    """DELETE the object. `on_version`: only if nobody has written it since."""
    return Delete(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version if on_version else "",
        intent=intent,
        cause=cause,
        **reported,
    )


def delete_finished(
    resource: Resource, meta: ObjectMeta, *, ttl: int | None, since: datetime, now: datetime, waits: Waits
) -> Chain:
    """Delete an object that finished at `since`, once `ttl` seconds have passed; None keeps it for ever."""
    if ttl is None or not waits.passed(later(since, max(ttl, 0)), now):
        return ()
    return (delete_of(resource, meta, Intent.CLEAN_UP, f"completed {ttl} seconds ago"),)


def status_patch(
    resource: Resource, meta: ObjectMeta, before: Model, after: Model, *always: str, on_version: bool = False
) -> Patch | None:
    """The write of a status; none if it is the same as before. `always`: counts that it holds even when they have not
    changed, because the first write needs them; their names are the same in JSON. `on_version`: only if nobody has
    written the object since."""
    if before == after:
        return None
    patch = merge_patch(msgspec.to_builtins(before), msgspec.to_builtins(after))
    return write_status(resource, meta, patch | {name: getattr(after, name) for name in always}, on_version=on_version)


def write_status(
    resource: Resource, meta: ObjectMeta, status: Json, *, on_version: bool = True, **reported: Unpack[Reported]
) -> Patch:
    """Merge these members into the status of the object."""
    return patch_of(
        resource,
        meta,
        Intent.STATUS,
        "status",
        body={"status": status},
        subresource="status",
        on_version=on_version,
        **reported,
    )


def write_finalizer(resource: Resource, meta: ObjectMeta, finalizer: str, *, present: bool) -> Patch:
    """Add the finalizer to exactly this version of the object, or remove it."""
    others = [one for one in meta.finalizers if one != finalizer]
    body: Json = {"metadata": {"finalizers": [*others, finalizer] if present else others}}
    return patch_of(resource, meta, Intent.UPDATE, "finalizer", body=body, on_version=True)
