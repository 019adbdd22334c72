"""Reports objects that cannot be decoded to their type: an event, a reason on the bus, a log line.

Such an object is in no plan: it is ignored until it changes, and other objects are not affected.
"""

import structlog

from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Journal
from flotilla_common.control.objectref import ObjectRef
from flotilla_common.control.plan import Event, Plan, Reason, State
from flotilla_common.control.shards import Shards
from flotilla_common.mirror.decoder import Undecodable

UNDECODABLE = "Undecodable"
"""The reason of the event, and the code on why.v1."""


def report(found: Undecodable, recorder: Recorder, journal: Journal, shards: Shards) -> None:
    """Report a decoding error of an object, if this replica serves it.

    The decoder's message names the field: `… - at `$.spec.replicas``.
    """
    if not shards.owns(found.namespace, found.name):
        return
    subject = ObjectRef(found.resource, found.namespace, found.name, found.uid, found.version)
    text = f"nothing is done until it is changed: cannot read it: {found.error}"
    structlog.get_logger().warning(
        "undecodable object", object=subject.key, kind=found.resource.kind, error=found.error
    )
    recorder.record(subject, Event(UNDECODABLE, text, warning=True))
    journal.why(subject, Plan(reasons=(Reason(State.STUCK, UNDECODABLE, text),)), trace="")
