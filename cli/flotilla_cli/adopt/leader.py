"""Whether a manager of OpenKruise works, as its lease and its Deployment tell."""

from datetime import datetime, timedelta

from flotilla_cli.adopt.original import HOLDER, LEADER, MANAGER, is_theirs
from flotilla_common.api.documents import Json, member, text


def held_by(lease: Json, now: datetime) -> str:
    """Who holds the lease and still renews it; empty when nobody but Flotilla does."""
    spec = member(lease, "spec")
    holder, renewed = text(spec.get("holderIdentity")), text(spec.get("renewTime"))
    if holder in ("", HOLDER) or not renewed:
        return ""
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return holder if datetime.fromisoformat(renewed) + lasts > now else ""


def at_work(lease: Json, manager: Json, now: datetime) -> str:
    """By what one sees that OpenKruise works; empty when it does not. Its lease may be free for a moment while one
    manager follows another, and its manager may run elsewhere than in its Deployment."""
    if holder := held_by(lease, now):
        return f"{holder} holds {LEADER}"
    replicas = member(manager, "spec").get("replicas", 1) if manager and is_theirs(manager) else 0
    return f"{MANAGER} has {replicas} replicas" if replicas else ""
