"""Executes the steps of a plan, one after the other."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_cli.adopt import backup
from flotilla_cli.adopt.discover import each
from flotilla_cli.adopt.steps import (
    Available,
    Delay,
    LeaseFree,
    MigrationStep,
    PodsGone,
    PolicyEnforced,
    Rewritten,
    Until,
    Write,
    WriteVerb,
)
from flotilla_cli.install.apply import FIELD_MANAGER, InstallError
from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import NODE, POD
from flotilla_common.clock import Clock
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.installation.crds import resource_of
from flotilla_insight.installation.objects import Place, get, is_true
from flotilla_insight.openkruise import STANDSTILL, held_by

PATIENCE_SECONDS = 180.0
"""Limit for pods to end or to become ready, and for a lease to expire, in seconds."""

FORGETTING_SECONDS = 15.0
"""Limit for apiservers to notice the removal of a policy. Each of them looks every second."""

OVERDUE_SECONDS = 30.0
"""Seconds after which a pod that should have ended on an unreachable node is no longer waited for."""

_APPLY = "application/apply-patch+yaml"
_LOOK_SECONDS = 0.2


async def carry_out(api: Api, clock: Clock, steps: Sequence[MigrationStep], report: Callable[[str], None]) -> None:
    """Execute the steps in order; `report` gets a line after each. Raises InstallError, Unreachable."""
    for step in steps:
        for write in step.writes:
            await _insist(api, clock, write)
        for until in step.until:
            await _wait(api, clock, until)
        report(step.what)


async def _insist(api: Api, clock: Clock, write: Write) -> None:
    """Send a write, repeated while an apiserver still applies a removed policy."""
    deadline = clock.monotonic() + FORGETTING_SECONDS
    while True:
        try:
            await _do(api, write)
        except ApiError as error:
            if STANDSTILL not in error.message or clock.monotonic() > deadline:
                raise InstallError(f"{write.place}: {error.message}") from error
        else:
            return
        await clock.sleep(_LOOK_SECONDS)


async def _do(api: Api, write: Write) -> None:
    place, body = write.place, msgspec.json.encode(write.body)
    match write.verb:
        case WriteVerb.PATCH:
            await api.patch(place.resource, place.namespace, place.name, body, PatchType.MERGE)
        case WriteVerb.STATUS:
            await api.patch(place.resource, place.namespace, place.name, body, PatchType.MERGE, subresource="status")
        case WriteVerb.APPLY:
            params = {"fieldManager": FIELD_MANAGER, "force": "true"}
            await api.patch(place.resource, place.namespace, place.name, body, _APPLY, params=params)
        case WriteVerb.RESTORE:
            await _restore(api, write)
        case WriteVerb.DELETE:
            await found_or_none(api.delete(place.resource, place.namespace, place.name))


async def _restore(api: Api, write: Write) -> None:
    place, live = write.place, await get(api, write.place)
    body = msgspec.json.encode(backup.restored(write.body, live))
    if live is None:
        await api.create(place.resource, place.namespace, body)
    elif not backup.is_as_before(write.body, live):
        await api.replace(place.resource, place.namespace, place.name, body)


async def _wait(api: Api, clock: Clock, until: Until) -> None:
    match until:
        case Rewritten(definition):
            await _rewrite(api, definition)
        case Delay(seconds):
            await clock.sleep(seconds)
        case PodsGone() | LeaseFree() | Available() | PolicyEnforced():
            await _wait_for(api, clock, until)


async def _wait_for(api: Api, clock: Clock, until: PodsGone | LeaseFree | Available | PolicyEnforced) -> None:
    deadline = clock.monotonic() + PATIENCE_SECONDS
    while why := await _missing(api, clock, until):
        if clock.monotonic() > deadline:
            raise InstallError(f"after {PATIENCE_SECONDS:.0f} s {why}. Fix this and re-run the command")
        await clock.sleep(_LOOK_SECONDS)


async def _rewrite(api: Api, definition: Json) -> None:
    """Write each object with an empty patch, which is stored only if it is in another version."""
    for place in await each(api, resource_of(definition)):
        try:
            await api.patch(place.resource, place.namespace, place.name, b"{}", PatchType.MERGE)
        except ApiError as error:
            if error.code != 404:
                raise InstallError(f"{place}: {error.message}") from error


async def _missing(api: Api, clock: Clock, until: PodsGone | LeaseFree | Available | PolicyEnforced) -> str:
    """Return what is still missing; empty if nothing is."""
    match until:
        case PodsGone(owner):
            left = await _pods(api, clock.now(), owner)
            return f"pods of {owner} are left: {', '.join(left)}" if left else ""
        case LeaseFree(lease):
            holder = held_by(await get(api, lease) or {}, clock.now())
            return f"{holder} holds {lease}: a manager of OpenKruise still runs somewhere" if holder else ""
        case Available(deployment):
            live = await get(api, deployment) or {}
            wanted, there = member(live, "spec").get("replicas", 1), member(live, "status").get("availableReplicas", 0)
            return f"only {there} of {wanted} pods of {deployment} are available" if there < wanted else ""
        case PolicyEnforced(write, policy):
            taken = await _is_taken(api, write, policy)
            return f"the apiserver does not apply policy {policy} yet" if taken else ""


async def _is_taken(api: Api, write: Write, policy: str) -> bool:
    """Report whether the apiserver would accept a merge patch, by a dry run."""
    place, body = write.place, msgspec.json.encode(write.body)
    try:
        await api.patch(place.resource, place.namespace, place.name, body, PatchType.MERGE, params={"dryRun": "All"})
    except ApiError as error:
        if policy in error.message:
            return False
        raise InstallError(f"{place}: {error.message}") from error
    return True


async def _pods(api: Api, now: datetime, owner: Place) -> list[str]:
    """Return the pods of a Deployment or DaemonSet that may still work.

    They are found by owner, because Flotilla's may have the same labels.
    """
    found: list[str] = []
    for raw in (await api.list(POD, owner.namespace)).items:
        pod = msgspec.json.decode(raw)
        references = mappings(member(pod, "metadata").get("ownerReferences"))
        owned = any(
            owner.name in (text(one.get("name")), text(one.get("name")).rpartition("-")[0]) for one in references
        )
        if owned and not await _is_lost(api, now, pod):
            found.append(text(member(pod, "metadata").get("name")))
    return found


async def _is_lost(api: Api, now: datetime, pod: Json) -> bool:
    """Report whether the pod is terminating on a node that is not ready.

    Its kubelet ends it before anything else when it comes back; until then a dead node must not block the others.
    """
    ends = text(member(pod, "metadata").get("deletionTimestamp"))
    if not ends or now < datetime.fromisoformat(ends) + timedelta(seconds=OVERDUE_SECONDS):
        return False
    node = await get(api, Place(NODE, "", text(member(pod, "spec").get("nodeName"))))
    return not is_true(node or {}, "Ready")
