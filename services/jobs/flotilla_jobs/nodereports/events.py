"""Records the events that node agents ask for: on pods of their node, on their NodeImage, on the jobs behind it.

A node can neither flood the cluster with events nor put them on any object: only the components and reasons that agents
use are accepted, and only on objects that concern the node.
"""

from collections.abc import Callable, Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.events import Recorder
from flotilla_common.control.objectref import ObjectRef
from flotilla_common.control.plan import Event
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Answer, EventReport
from flotilla_common.node.serving import Sender

COMPONENTS: Mapping[str, frozenset[str]] = {
    "kruise-daemon-imagepuller": frozenset({"PullImageSucceed", "PullImageFailed"}),
    "kruise-daemon-crr": frozenset({"Killing", "FailedPreStopHook"}),
    "kruise-daemon-containermeta": frozenset({"Killing", "FailedPreStopHook"}),
    "kruise-daemon-podprobe": frozenset({"KruiseProbeSucceeded", "KruiseProbeFailed"}),
}
"""Reasons by component (nodeagent.md §8)."""

MESSAGE_LIMIT = 1024
PATH_LIMIT = 128


class EventReports(msgspec.Struct, frozen=True, kw_only=True):
    """Checks and records events of agents."""

    pods: Table[Pod]
    images: Table[NodeImage]
    recorders: Mapping[str, Recorder]  # by component
    owns: Callable[[str, str], bool]  # does this replica answer for namespace and name?

    async def receive(self, sender: Sender, report: EventReport) -> Answer | None:
        """Return the answer to a report, or None if another replica answers it."""
        if not self.owns(sender.namespace, sender.name):
            return None
        if report.reason not in COMPONENTS.get(report.component, frozenset()):
            return Answer(why=f"{report.component} has no event {report.reason}")
        resource = self._concerned(sender, report)
        if resource is None:
            return Answer(why=f"{report.kind} {sender.name} does not concern this node")
        subject = ObjectRef(
            resource, sender.namespace, sender.name, report.uid, field_path=report.field_path[:PATH_LIMIT]
        )
        event = Event(report.reason, report.message[:MESSAGE_LIMIT], warning=report.type == "Warning", host=sender.node)
        self.recorders[report.component].record(subject, event)
        return Answer(accepted=True)

    def _concerned(self, sender: Sender, report: EventReport) -> Resource | None:
        """Return the kind of the object if it concerns the node, or None."""
        if report.kind == POD.kind:
            pod = self.pods.get(sender.namespace, sender.name)
            here = pod is not None and pod.metadata.uid == report.uid and pod.spec.node_name == sender.node
            return POD if here else None
        image = self.images.get("", sender.node)
        if image is None:
            return None
        if report.kind == NODE_IMAGE.kind:
            own = ("", sender.node, image.metadata.uid)
            return NODE_IMAGE if (sender.namespace, sender.name, report.uid) == own else None
        job = (sender.namespace, sender.name, report.uid)
        tags = (tag for spec in image.spec.images.values() for tag in spec.tags)
        owned = any((owner.namespace, owner.name, owner.uid) == job for tag in tags for owner in tag.owner_references)
        return IMAGE_PULL_JOB if report.kind == IMAGE_PULL_JOB.kind and owned else None
