"""Converts ContainerRecreateRequests between v1alpha1 and v1beta1, on raw documents.

See containerrecreaterequest.md §3. v1beta1 is the hub. Two of its status fields are annotations in v1alpha1; everything
else is the same. The message of a True condition is lost.
"""

from datetime import UTC, datetime

import msgspec
import structlog

from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import RECREATE_SNAPSHOT, RECREATE_UNREADY
from flotilla_common.api.kinds.containerrecreaterequest.types import PRE_RECREATE_GRACE, ContainerSnapshot
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.versions import Conversion, annotate, only_beta

GRACE_MESSAGE = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"
"""The message of the condition PreRecreateGrace (§6.4)."""

_log = structlog.get_logger()


def strip(document: Json) -> None:
    """Remove the annotations that only v1alpha1 shows: v1beta1 has fields for them."""
    metadata = member(document, "metadata")
    annotations = mapping(metadata.get("annotations"))
    present = annotations.keys() & {RECREATE_SNAPSHOT, RECREATE_UNREADY}
    for key in present:
        del annotations[key]
    if present and not annotations:
        del metadata["annotations"]


def _to_beta(document: Json) -> None:
    annotations = member(document, "metadata", "annotations")
    snapshot = _snapshot(text(annotations.get(RECREATE_SNAPSHOT)))
    since = _moment(text(annotations.get(RECREATE_UNREADY)))
    strip(document)
    if snapshot is None and since is None:
        return
    status = document.setdefault("status", {"phase": ""})
    if snapshot is not None:
        status["containerStatusSnapshot"] = snapshot
    if since is not None:
        others = [one for one in mappings(status.get("conditions")) if one.get("type") != PRE_RECREATE_GRACE]
        status["conditions"] = [*others, grace_condition(since)]


def grace_condition(since: datetime) -> Json:
    """Return the condition with the time since which the pod has been kept not ready."""
    return {
        "type": PRE_RECREATE_GRACE,
        "status": "True",
        "reason": PRE_RECREATE_GRACE,
        "message": GRACE_MESSAGE,
        "lastTransitionTime": rfc3339(since),
    }


def _to_alpha(document: Json) -> None:
    strip(document)
    status = mapping(document.get("status"))
    snapshot = mappings(status.pop("containerStatusSnapshot", None))
    shown: dict[str, str] = {}
    if snapshot:
        shown[RECREATE_SNAPSHOT] = msgspec.json.encode([_entry(one) for one in snapshot]).decode()
    others = mappings(status.pop("conditions", None))
    for condition in [one for one in others if _holds_grace(one)]:
        shown[RECREATE_UNREADY] = text(condition.get("lastTransitionTime"))
        others.remove(condition)
    if others:
        status["conditions"] = others
    annotate(document, shown)


def _holds_grace(condition: Json) -> bool:
    return condition.get("type") == PRE_RECREATE_GRACE and condition.get("status") == "True"


def _entry(container: Json) -> Json:
    entry = {
        "name": text(container.get("name")),
        "ready": container.get("ready") is True,
        "restartCount": container.get("restartCount") or 0,
    }
    identity = text(container.get("containerID"))
    return entry | ({"containerID": identity} if identity else {})


def _snapshot(written: str) -> list[Json] | None:
    if not written:
        return None
    try:
        containers = read_json(written, list[ContainerSnapshot])
    except ValueError as error:
        _log.warning("annotation ignored", annotation=RECREATE_SNAPSHOT, error=str(error))
        return None
    return [_entry(msgspec.to_builtins(container)) for container in containers]


def _moment(written: str) -> datetime | None:
    if not written:
        return None
    try:
        moment = datetime.fromisoformat(written)
    except ValueError as error:
        _log.warning("annotation ignored", annotation=RECREATE_UNREADY, error=str(error))
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_VERSIONS = Conversion("ContainerRecreateRequest", _to_beta, _to_alpha, only_beta("status.conditions"))
convert = _VERSIONS.convert
