"""Carries out ContainerRecreateRequests in passes, each of which reports before the next one acts.

Work is keyed by pod, one request per pod at a time (containerrecreaterequest.md §7.2). An accepted
report counts at once, so several containers are stopped one after the other without waiting for the channel, each only
after the last one was reported.
"""

import msgspec
import structlog

from flotilla_common.api.kinds.containerrecreaterequest.types import (
    COMPLETED,
    PENDING,
    RECREATING,
    ContainerRecreateRequest,
    RecreateState,
)
from flotilla_common.node.reports import RECREATE_REQUESTS, RecreateReport
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.copies import Copies, Key, version
from flotilla_nodeagent.recreate_pod import NoRuntime, PodContainers
from flotilla_nodeagent.reporting import ReportRejected
from flotilla_nodeagent.stopping import ContainerStopper
from flotilla_nodeagent.timing import Timing
from flotilla_nodeagent.workqueue import WorkQueue

WORKERS = 110
"""The default limit of pods on a node: a long preStop hook of one pod holds no other pod's request up."""

POLL_SECONDS = 3.0
"""Interval of checking a request in progress, in case a message about it was lost."""

MARGIN_SECONDS = 0.1
"""Seconds added to the end of a period before the next check."""

NOW = 0.0

GRACE = "unready grace"


class RequestView(msgspec.Struct, frozen=True):
    """Phase and states of a request."""

    phase: str
    states: list[RecreateState]


class _Overlay(msgspec.Struct, frozen=True):
    view: RequestView
    seen: int  # the version of the copy when it was reported
    written: int  # the version after the report was written; 0: no write was needed


class Reported:
    """Accepted reports by the request's uid.

    The channel shows a report a moment later (§7.1): until then it counts as the status, so that nothing is done twice.
    """

    def __init__(self) -> None:
        self._overlays: dict[str, _Overlay] = {}

    def view(self, request: ContainerRecreateRequest) -> RequestView:
        """Return the newest view: an accepted report, or the status."""
        overlay = self._overlays.get(request.metadata.uid)
        if overlay is not None:
            current = version(request)
            if current < overlay.written or (not overlay.written and current <= overlay.seen):
                done = request.status.phase == COMPLETED
                return RequestView(COMPLETED, overlay.view.states) if done else overlay.view
        return RequestView(request.status.phase, request.status.container_recreate_states)

    def accepted(self, request: ContainerRecreateRequest, view: RequestView, resource_version: str) -> None:
        """Record the view as reported."""
        self._overlays[request.metadata.uid] = _Overlay(view, version(request), int(resource_version or 0))

    def keep(self, uids: set[str]) -> None:
        """Drop all other requests."""
        for uid in self._overlays.keys() - uids:
            del self._overlays[uid]


class Requests:
    """All requests of one node."""

    def __init__(
        self, context: AgentContext, copies: Copies[ContainerRecreateRequest], stopper: ContainerStopper
    ) -> None:
        self._context = context
        self._copies = copies
        self._stopper = stopper
        self._timing = Timing(context.clock)
        self._reported = Reported()
        self._refused: dict[str, int] = {}  # uid to the version for which a report was refused
        self._pods: dict[Key, Key] = {}  # request to pod
        self._queue = WorkQueue[Key]("recreate", context, self._pass, workers=WORKERS)
        self._log = structlog.get_logger(part="recreate")
        self.run = self._queue.run
        copies.listen(self._changed)

    def _changed(self, key: Key) -> None:
        request = self._copies.get(key)
        if request is not None:
            self._pods[key] = (request.metadata.namespace, request.spec.pod_name)
        pod = self._pods.get(key)
        if request is None:
            self._pods.pop(key, None)
        if pod is not None and self._copies.synced:
            self._queue.add(pod)

    async def _pass(self, pod: Key) -> float | None:
        """Work on the pod's requests until all are waiting."""
        while (wait := await self._work_on(pod)) == NOW:
            continue
        self._tidy()
        return wait

    async def _work_on(self, pod: Key) -> float | None:
        waiting = self._active(pod)
        if not waiting:
            return None
        first, *others = waiting
        for request in others:
            if not self._reported.view(request).phase:
                await self._report(request, phase=PENDING)
        return await self._step(first)

    def _active(self, pod: Key) -> list[ContainerRecreateRequest]:
        """Return the unfinished requests of the pod: the one in progress first, else the oldest."""
        ranks = {RECREATING: 0, PENDING: 1}
        active = [
            request
            for request in self._copies
            if (request.metadata.namespace, request.spec.pod_name) == pod
            and request.metadata.deletion_timestamp is None
            and self._reported.view(request).phase != COMPLETED
            and self._refused.get(request.metadata.uid) != version(request)
        ]
        return sorted(
            active, key=lambda request: (ranks.get(self._reported.view(request).phase, 2), request.metadata.seniority)
        )

    async def _step(self, request: ContainerRecreateRequest) -> float | None:
        """Run one pass of §7.2; return the seconds until the next, NOW, or None to wait for a change."""
        view = self._reported.view(request)
        if view.phase != RECREATING:
            return await self._report(request, phase=RECREATING)
        grace = request.spec.strategy.unready_grace_period_seconds
        if grace is not None:
            timer = (request.metadata.uid, GRACE)
            if request.grace_since is None:
                self._timing.not_started(timer)
                return POLL_SECONDS
            left = self._timing.remaining(timer, request.grace_since, max(grace, 0))
            if left > 0:
                return left + MARGIN_SECONDS
        try:
            containers = PodContainers(request, self._context.runtimes, self._stopper, self._timing)
            await containers.read()
        except NoRuntime as error:
            return await self._report(request, phase=COMPLETED, message=f"failed to find runtime service: {error}")
        return await self._advance(request, view, containers)

    async def _advance(
        self, request: ContainerRecreateRequest, view: RequestView, containers: PodContainers
    ) -> float | None:
        states = containers.states(view.states)
        if states != view.states:
            return await self._report(request, states=states)
        decided = containers.next_step(states)
        if decided.kill:
            self._log.info("stopping", request=request.metadata.name, container=decided.kill)
            after = await containers.kill(decided.kill, states, self._context.reporter)
            return await self._report(request, states=after)
        if decided.states != states:
            return await self._report(request, states=decided.states)
        if decided.complete:
            return await self._report(request, phase=COMPLETED)
        return min(containers.rest, POLL_SECONDS)

    async def _report(
        self,
        request: ContainerRecreateRequest,
        *,
        phase: str = "",
        message: str = "",
        states: list[RecreateState] | None = None,
    ) -> float:
        """Report; once accepted, it counts as the status. A refusal ends the work on this version of the request."""
        meta, view = request.metadata, self._reported.view(request)
        report = RecreateReport(
            uid=meta.uid, resource_version=meta.resource_version, phase=phase, message=message, states=states
        )
        try:
            answer = await self._context.reporter.send(RECREATE_REQUESTS, meta.namespace, meta.name, report)
        except ReportRejected as error:
            self._log.info("report refused", request=meta.name, why=str(error))
            self._refused[meta.uid] = version(request)
            return NOW
        newer = RequestView(phase or view.phase, view.states if states is None else states)
        self._reported.accepted(request, newer, answer.resource_version)
        return NOW

    def _tidy(self) -> None:
        """Drop requests that are gone, and the stops of completed ones."""
        live = {request.metadata.uid for request in self._copies if self._reported.view(request).phase != COMPLETED}
        known = {request.metadata.uid for request in self._copies}
        self._reported.keep(known)
        self._refused = {uid: seen for uid, seen in self._refused.items() if uid in known}
        if self._copies.synced:
            self._timing.keep(live)
            for uid in self._stopper.journal.causes() - live:
                self._stopper.forget(uid)
