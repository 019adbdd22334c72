"""Works out whether a service plans the object.

It must hold the lease of the object's shard, and have planned the current spec.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.meta import ObjectMeta, rfc3339
from flotilla_common.api.resources import LEASE
from flotilla_common.control.leases import Lease
from flotilla_common.control.shards import NUMBER_LABEL, ROLE_LABEL, SERVICE_LABEL, shard_of
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.published import Why

SLACK = timedelta(seconds=5)
"""Tolerance for clocks: a lease counts as expired this long after its end."""


class Planning(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the object's service."""

    service: str
    nobody: str = ""  # why no service plans it; empty if one does, or if that is not known
    behind: str = ""  # how the record lags behind the object; empty if it does not


async def leases_of(api: Api, service: str) -> Sequence[Lease] | None:
    """Return the leases of the service's shards; None if they may not be read. Raises Unreachable."""
    selector = f"{SERVICE_LABEL}={service},{ROLE_LABEL}=shard"
    try:
        page = await api.list(LEASE, label_selector=selector)
    except ApiError:
        return None
    return [msgspec.json.decode(item, type=Lease) for item in page.items]


def planning_of(
    service: str, meta: ObjectMeta, why: Why | None, leases: Sequence[Lease] | None, heard: bool | None, now: datetime
) -> Planning:
    """Return the state of the service. `heard`: whether it had a heartbeat; None: not listened."""
    nobody = nobody_plans(service, meta, leases, now) if leases is not None else ""
    return Planning(
        service=service,
        nobody=nobody or (_unheard(service, leases) if heard is False else ""),
        behind=_behind(meta, why),
    )


def nobody_plans(service: str, meta: ObjectMeta, leases: Sequence[Lease], now: datetime) -> str:
    """Return why no service can plan the object, by the leases; empty if one can."""
    what = f"no {service} service holds the lease"
    if not leases:
        return f"{what}: none was ever started here, or all have stopped"
    newest = max(leases, key=lambda one: one.spec.renew_time or "")
    number = int(newest.metadata.labels.get(NUMBER_LABEL) or len(leases))
    name = f"flotilla-{service}-{shard_of(meta.namespace, meta.name, number)}"
    lease = next((one for one in leases if one.metadata.name == name), None)
    if lease is None:
        return f"{what} {name}: it does not exist"
    spec, place = lease.spec, f"{lease.metadata.namespace}/{name}"
    if not spec.holder_identity:
        return f"{what} {place}: the last holder released it, and none is running"
    renewed = run_out(lease, now)
    if renewed is None:
        return ""
    return f"{what} {place}: {spec.holder_identity} has not renewed it since {rfc3339(renewed)}; it is down, or cut off"


def run_out(lease: Lease, now: datetime) -> datetime | None:
    """Return the last renewal of an expired lease; None if it is valid, or was never held."""
    if not lease.spec.renew_time:
        return None
    renewed = datetime.fromisoformat(lease.spec.renew_time)
    lasts = timedelta(seconds=lease.spec.lease_duration_seconds or 0)
    return renewed if now > renewed + lasts + SLACK else None


def _unheard(service: str, leases: Sequence[Lease] | None) -> str:
    if leases:
        rest = "it has just stopped, or uses another bus"
        return f"the {service} service holds its lease, but sends no heartbeat here: {rest}"
    return f"the {service} service sends no heartbeat: it is down, or uses another bus (flotilla status)"


def _behind(meta: ObjectMeta, why: Why | None) -> str:
    if why is None:
        return f"generation {meta.generation} has not been planned yet, by the records on the bus"
    if why.uid != meta.uid:
        return "the last record is about an earlier object of this name"
    if why.generation < meta.generation:
        return f"generation {meta.generation} is not planned yet, the last one planned is {why.generation}"
    return ""
