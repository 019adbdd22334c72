"""What agents report about their NodeImage (nodeagent.md §3.6). A node speaks of its own NodeImage and of no other."""

import msgspec

from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.node.reports import Answer, NodeImageReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.inbox import Inbox, gone
from flotilla_jobs.nodeimage.status import report_problem, reported


def absorbed(image: NodeImage, report: NodeImageReport) -> bool:
    """Writing the report would change nothing."""
    return reported(image, report.status) == image.status


class Receiver(msgspec.Struct, frozen=True):
    """Checks reports; valid ones go through the inbox into the status."""

    inbox: Inbox[NodeImage, NodeImageReport]

    async def receive(self, sender: Sender, report: NodeImageReport) -> Answer | None:
        """The answer; None if another replica is to give it."""
        if sender.name != sender.node:
            return Answer(why=f"node {sender.node} may not speak for {sender.name}")
        key = ("", sender.node)
        if not self.inbox.serves(key):
            return None
        if why := report_problem(report.status):
            return Answer(why=why)
        try:
            image = await self.inbox.find(key, report.uid)
        except (ApiError, Unreachable) as error:
            return Answer(why=f"the apiserver does not tell: {error}", again=True)
        return gone(report) if image is None else await self.inbox.written(key, report)
