"""The Event that names who did something."""

from datetime import datetime

from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import ObjectRef

REASON = "ConsoleAction"
COMPONENT = "flotilla-console"

LONGEST = 1024
"""The most characters of a message, the apiserver's limit."""

_LONGEST_NAME = 220


def event_of(resource: Resource, document: Json, message: str, now: datetime, token: str) -> Json:
    """Return the Event on the object; `token` makes its name unique."""
    metadata = member(document, "metadata")
    subject = ObjectRef(
        resource,
        text(metadata.get("namespace")),
        text(metadata.get("name")),
        text(metadata.get("uid")),
        text(metadata.get("resourceVersion")),
    )
    moment = rfc3339(now)
    stamp = int(now.timestamp() * 1_000_000)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{subject.name[:_LONGEST_NAME]}.{stamp:x}{token}",
            "namespace": subject.namespace or "default",
        },
        "involvedObject": subject.reference(),
        "reason": REASON,
        "message": message[:LONGEST],
        "type": "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
