"""What users hear of objects that do not fit their type: an event, the reason on the bus, a log line.

Such an object is in no plan: nothing is done for it until somebody changes it, and nobody else is held up by it.
"""

import structlog

from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Journal
from flotilla_common.control.plan import Event, Plan, Reason
from flotilla_common.control.shards import Shards
from flotilla_common.control.subject import Subject
from flotilla_common.mirror.intake import Undecodable

UNDECODABLE = "Undecodable"
"""The reason of the event, and the code on why.v1."""


class UndecodableReporter:
    """Reports for one controller; only the replica that serves the object speaks of it."""

    def __init__(self, recorder: Recorder, journal: Journal, shards: Shards) -> None:
        self._recorder = recorder
        self._journal = journal
        self._shards = shards
        self._log = structlog.get_logger()

    def report(self, undecodable: Undecodable) -> None:
        """Say what is wrong with the object. The decoder's message names the field: `… - at `$.spec.replicas``."""
        if not self._shards.owns(undecodable.namespace, undecodable.name):
            return
        subject = Subject(
            undecodable.resource, undecodable.namespace, undecodable.name, undecodable.uid, undecodable.version
        )
        text = f"nothing is done until it is changed: cannot read it: {undecodable.error}"
        self._log.warning(
            "undecodable object", object=subject.key, kind=undecodable.resource.kind, error=undecodable.error
        )
        self._recorder.record(subject, Event(reason=UNDECODABLE, message=text, warning=True))
        self._journal.why(subject, Plan(reasons=(Reason(code=UNDECODABLE, message=text),)), trace="")
