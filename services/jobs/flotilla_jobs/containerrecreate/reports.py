"""Reports of the nodes' agents about requests: checked, kept until they are written, then answered.

An agent has no rights of its own. What it says counts only for a request that was admitted for its node, under the uid
that it names. The answer waits until the status says what was reported, so that an agent that was told `accepted` may
forget it.
"""

import asyncio
from collections.abc import Awaitable, Callable

from flotilla_common.api.containerrecreaterequest import ContainerRecreateRequest
from flotilla_common.api.keys import RECREATE_NODE_NAME
from flotilla_common.clock import Clock
from flotilla_common.control.controller import Key
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Answer, RecreateReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.containerrecreate.merge import absorbed, problem

WRITTEN_WITHIN = 5.0
"""Seconds until an agent is told to try again: a status write takes milliseconds unless the apiserver is in trouble."""


class _Waiting:
    """A report on its way into the status."""

    def __init__(self, report: RecreateReport) -> None:
        self.report = report
        self.looked = asyncio.Event()
        self.superseded = False


class Inbox:
    """The last report about each request that is not in its status yet."""

    def __init__(
        self,
        *,
        requests: Table[ContainerRecreateRequest],
        owns: Callable[[str, str], bool],
        read: Callable[[str, str], Awaitable[object]],
        again: Callable[[str, str], None],
        clock: Clock,
    ) -> None:
        """`owns`: whether this replica serves the request; `read` brings it into the mirror; `again` plans it."""
        self._requests = requests
        self._owns = owns
        self._read = read
        self._again = again
        self._clock = clock
        self._waiting: dict[Key, _Waiting] = {}
        requests.listen(self._on_request)

    def latest(self, request: ContainerRecreateRequest) -> RecreateReport | None:
        """What was reported about the request and may not be written yet."""
        waiting = self._waiting.get((request.metadata.namespace, request.metadata.name))
        return waiting.report if waiting is not None and waiting.report.uid == request.metadata.uid else None

    async def receive(self, sender: Sender, report: RecreateReport) -> Answer | None:
        """The answer to a report; None if another replica is to give it."""
        key = (sender.namespace, sender.name)
        if not self._owns(*key):
            return None
        try:
            request = await self._request(key, report.uid)
        except (ApiError, Unreachable) as error:
            return Answer(why=f"the apiserver does not tell: {error}", again=True)
        if request is None:
            return _gone(report)
        node = request.metadata.labels.get(RECREATE_NODE_NAME, "")
        if node != sender.node:
            return Answer(why=f"the request is for node {node}")
        if why := problem(report, request.spec):
            return Answer(why=why)
        return await self._written(key, report)

    async def _request(self, key: Key, uid: str) -> ContainerRecreateRequest | None:
        """The request of this uid. The agent may have heard of it before we have."""
        for known in (True, False):
            request = self._requests.get(*key)
            if request is not None and request.metadata.uid == uid:
                return request
            if known:
                await self._read(*key)
        return None

    async def _written(self, key: Key, report: RecreateReport) -> Answer | None:
        """Wait until the status says it. Of several reports about one request only the last one waits."""
        if (earlier := self._waiting.pop(key, None)) is not None:
            earlier.superseded = True
            earlier.looked.set()
        waiting = self._waiting[key] = _Waiting(report)
        try:
            async with asyncio.timeout(WRITTEN_WITHIN):
                return await self._answer(key, waiting)
        except TimeoutError:
            return Answer(why="the status could not be written in time", again=True)
        finally:
            if self._waiting.get(key) is waiting:
                del self._waiting[key]

    async def _answer(self, key: Key, waiting: _Waiting) -> Answer | None:
        asked = False
        while True:
            request = self._requests.get(*key)
            if request is None or request.metadata.uid != waiting.report.uid:
                return _gone(waiting.report)
            if absorbed(request, waiting.report, self._clock.now()):
                return Answer(accepted=True, resource_version=request.metadata.resource_version)
            if not self._owns(*key):
                return None
            if not asked:
                asked = True
                self._again(*key)
            await waiting.looked.wait()
            waiting.looked.clear()
            if waiting.superseded:
                return Answer(why="a newer report about the same request came", again=True)

    def _on_request(self, old: ContainerRecreateRequest | None, new: ContainerRecreateRequest | None) -> None:
        request = new or old
        if request is not None:
            waiting = self._waiting.get((request.metadata.namespace, request.metadata.name))
            if waiting is not None:
                waiting.looked.set()


def _gone(report: RecreateReport) -> Answer:
    return Answer(why=f"there is no such request with uid {report.uid}")
