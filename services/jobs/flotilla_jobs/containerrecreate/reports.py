"""Which reports of a node's agent count (containerrecreaterequest.md §5).

An agent has no rights of its own: it may speak about a request that was admitted for its node, under the uid that it
names, and about no other container than those of the request.
"""

from flotilla_common.api.keys import RECREATE_NODE_NAME
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.node.reports import Answer, RecreateReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.containerrecreate.merge import problem
from flotilla_jobs.inbox import Inbox, gone


class Receiver:
    """Checks reports, and hands the valid ones to the inbox."""

    def __init__(self, inbox: Inbox[ContainerRecreateRequest, RecreateReport]) -> None:
        self._inbox = inbox

    async def receive(self, sender: Sender, report: RecreateReport) -> Answer | None:
        """The answer to a report; None if another replica is to give it."""
        key = (sender.namespace, sender.name)
        if not self._inbox.serves(key):
            return None
        try:
            request = await self._inbox.find(key, report.uid)
        except (ApiError, Unreachable) as error:
            return Answer(why=f"the apiserver does not tell: {error}", again=True)
        if request is None:
            return gone(report)
        node = request.metadata.labels.get(RECREATE_NODE_NAME, "")
        if node != sender.node:
            return Answer(why=f"the request is for node {node}")
        if why := problem(report, request.spec):
            return Answer(why=why)
        return await self._inbox.written(key, report)
