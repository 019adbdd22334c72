"""Whether a manager of OpenKruise works, as its lease tells."""

from datetime import datetime, timedelta

from flotilla_cli.adopt.original import HOLDER
from flotilla_common.api.documents import Json, member, text


def held_by(lease: Json, now: datetime) -> str:
    """Who holds the lease and still renews it; empty when nobody but Flotilla does."""
    spec = member(lease, "spec")
    holder, renewed = text(spec.get("holderIdentity")), text(spec.get("renewTime"))
    if holder in ("", HOLDER) or not renewed:
        return ""
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return holder if datetime.fromisoformat(renewed) + lasts > now else ""
