"""Makes the writes of a plan for objects that exist: patches and deletions of exactly that object (by uid), on exactly
the version that was planned with where the decision hangs on it."""

from datetime import datetime, timedelta

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Chain, Delete, Event, Json, Patch, PatchType
from flotilla_common.control.waits import Waits


def patch_of(
    resource: Resource,
    meta: ObjectMeta,
    *,
    cause: str,
    body: Json,
    phase: str = "",
    patch_type: PatchType = PatchType.MERGE,
    subresource: str = "",
    on_version: bool = False,
    on_success: Event | None = None,
    on_failure: Event | None = None,
) -> Patch:
    """PATCH the object. `on_version`: only if nobody has written it since."""
    return Patch(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version if on_version else "",
        cause=cause,
        phase=phase,
        body=body,
        patch_type=patch_type,
        subresource=subresource,
        on_success=on_success,
        on_failure=on_failure,
    )


def delete_of(
    resource: Resource,
    meta: ObjectMeta,
    *,
    cause: str,
    phase: str = "",
    on_version: bool = False,
    on_success: Event | None = None,
    on_failure: Event | None = None,
) -> Delete:
    """DELETE the object. `on_version`: only if nobody has written it since."""
    return Delete(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version if on_version else "",
        cause=cause,
        phase=phase,
        on_success=on_success,
        on_failure=on_failure,
    )


def delete_finished(
    resource: Resource,
    meta: ObjectMeta,
    *,
    ttl: int | None,
    since: datetime,
    now: datetime,
    waits: Waits,
    cause: str = "",
) -> Chain:
    """Delete an object that finished at `since`, once `ttl` seconds have passed; None keeps it for ever."""
    if ttl is None or not waits.passed(since + timedelta(seconds=max(ttl, 0)), now):
        return ()
    return (delete_of(resource, meta, cause=cause or f"completed {ttl} seconds ago"),)
