"""An agent of a node that executes ContainerRecreateRequests, as the specification defines it (§7).

It is written from containerrecreaterequest.md alone and shares nothing with the real agent but the decoding of its
copies: it is the other side of the contract. Its runtime is the simulated kubelet; it sees a request by its copy on the
bus and by its own reports.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import msgspec

from flotilla_common.api.core import ContainerStatus, Pod
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    COMPLETED,
    FAILED,
    PENDING,
    RECREATE_REQUEST,
    RECREATING,
    SUCCEEDED,
    ContainerRecreateRequest,
    RecreateState,
)
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.node.reports import RECREATE_REQUESTS, Answer, RecreateReport
from flotilla_nodeagent.reader import Reader
from tests.simulation.bus.client import SimulatedBus
from tests.simulation.loop import Domain, SeededEntropy
from tests.simulation.world import World

LOOK_SECONDS = 0.1
"""Between two looks at the work."""

ANSWER_SECONDS = 6.0
"""Fake seconds until a report times out."""

_ORDER = (RECREATING, PENDING, "")
"""Requests of one pod: which comes first (§7.1)."""


class Agent:
    """The agent of one node."""

    def __init__(self, world: World, node: str) -> None:
        self.node = node
        self.kills: list[tuple[str, str]] = []
        """(request, container) of every stop, in order."""
        self.forget_after_kill = False
        """Die right after the next stop, before it is reported."""
        self._killed: set[tuple[str, str]] = set()
        """(uid of the request, container) of stops that may not be reported yet: a forced one must not be repeated."""
        self._world = world
        self._requests: dict[str, ContainerRecreateRequest] = {}
        context = Domain(f"agent-{node}").context()
        prefix = subjects.node_inbox(node)
        self._bus = SimulatedBus(world.loop, world.bus, f"agent-{node}", world.clock, context, inbox_prefix=prefix)
        reader = Reader(
            bus=self._bus,
            clock=world.clock,
            entropy=SeededEntropy(f"{world.seed} agent-{node}"),
            node=node,
            resource=RECREATE_REQUEST,
            on_message=self._hear,
            on_reset=self._reset,
        )
        self._tasks = [world.loop.create_task(run, context=context) for run in (reader.run(), self._run())]

    async def _run(self) -> None:
        while True:
            await self._world.clock.sleep(LOOK_SECONDS)
            for request in self._picked():
                if self._requests.get(request.metadata.uid) is not request:
                    continue  # it came anew meanwhile, or everything is read again
                try:
                    await self._work(request)
                except (BusError, TimeoutError):
                    continue  # the next look repeats it

    def _hear(self, message: Message) -> None:
        """Receive a copy of a request. Our own reports may be newer than copies in flight."""
        if subjects.marked_node(message.subject) is not None:
            return
        if message.headers.get(subjects.OP) == subjects.DELETED:
            self._requests.pop(message.headers.get(subjects.UID, ""), None)
            return
        request = msgspec.json.decode(message.data, type=ContainerRecreateRequest)
        held = self._requests.get(request.metadata.uid)
        if held is None or _version(held) < _version(request):
            self._requests[request.metadata.uid] = request

    def _reset(self) -> None:
        self._requests.clear()

    def _picked(self) -> Iterator[ContainerRecreateRequest]:
        """Return the requests to execute now: of each pod the first one, unless it has to wait."""
        of_pod: dict[tuple[str, str], list[ContainerRecreateRequest]] = {}
        for request in self._requests.values():
            if not request.completed and request.metadata.deletion_timestamp is None:
                of_pod.setdefault((request.metadata.namespace, request.spec.pod_name), []).append(request)
        for requests in of_pod.values():
            first, *others = sorted(requests, key=_rank)
            yield first
            yield from (other for other in others if not other.status.phase)

    async def _work(self, request: ContainerRecreateRequest) -> None:
        """One pass of §7.2."""
        of_pod = [one for one in self._requests.values() if one.spec.pod_name == request.spec.pod_name]
        if min((one for one in of_pod if not one.completed), key=_rank) is not request:
            await self._report(request, phase=PENDING)
        elif request.status.phase != RECREATING:
            await self._report(request, phase=RECREATING)
        elif self._grace_is_over(request):
            states = self._states(request)
            if states != request.status.container_recreate_states:
                await self._report(request, states=states)
            elif states:
                await self._act(request, states)

    def _grace_is_over(self, request: ContainerRecreateRequest) -> bool:
        seconds = request.spec.strategy.unready_grace_period_seconds
        if seconds is None:
            return True
        since = request.grace_since
        return since is not None and self._world.clock.now() >= since + timedelta(seconds=seconds)

    def _states(self, request: ContainerRecreateRequest) -> list[RecreateState]:
        """Return the container states by the table of §7.3."""
        pod = self._world.server.store.table(POD).objects.get((request.metadata.namespace, request.spec.pod_name))
        if pod is None:
            return request.status.container_recreate_states
        statuses = {one.name: one for one in msgspec.convert(pod.document, type=Pod).status.container_statuses}
        previous = {state.name: state for state in request.status.container_recreate_states}
        return [
            self._state(request, container.name, statuses[container.name], previous.get(container.name))
            for container in request.spec.containers
        ]

    def _state(
        self, request: ContainerRecreateRequest, name: str, found: ContainerStatus, old: RecreateState | None
    ) -> RecreateState:
        killed = (old is not None and old.is_killed) or (request.metadata.uid, name) in self._killed
        context = next(one.status_context for one in request.spec.containers if one.name == name)
        assert context is not None
        if old is not None and old.phase in (SUCCEEDED, FAILED):
            return old
        if found.state.running is None:
            return RecreateState(name=name, phase=RECREATING, is_killed=killed)
        if request.spec.strategy.force_recreate and not killed:
            return RecreateState(name=name, phase=PENDING)
        if found.container_id == context.container_id and found.restart_count <= context.restart_count:
            return RecreateState(name=name, phase=PENDING, is_killed=killed)
        seen = next((one for one in request.status.container_status_snapshot if one.name == name), None)
        done = seen is not None and seen.container_id == found.container_id and seen.ready
        return RecreateState(name=name, phase=SUCCEEDED if done else RECREATING, is_killed=killed)

    async def _act(self, request: ContainerRecreateRequest, states: list[RecreateState]) -> None:
        """Execute the steps of §7.4, for containers that can always be stopped."""
        changed = list(states)
        for position, state in enumerate(states):
            if state.phase == PENDING:
                changed[position] = self._kill(request, state)
                break
            if state.phase == RECREATING:
                changed[position] = msgspec.structs.replace(state, is_killed=True)
                if request.spec.strategy.ordered_recreate:
                    break
        if self.forget_after_kill and changed != states:
            self.forget_after_kill = False
            self._killed.clear()
        elif changed != states:
            await self._report(request, states=changed)
        elif all(state.phase in (SUCCEEDED, FAILED) for state in states):
            await self._report(request, phase=COMPLETED)

    def _kill(self, request: ContainerRecreateRequest, state: RecreateState) -> RecreateState:
        meta = request.metadata
        self.kills.append((meta.name, state.name))
        self._killed.add((meta.uid, state.name))
        self._world.cluster.crash_container(meta.namespace, request.spec.pod_name, state.name)
        return msgspec.structs.replace(state, phase=RECREATING, is_killed=True)

    async def _report(
        self, request: ContainerRecreateRequest, *, phase: str = "", states: list[RecreateState] | None = None
    ) -> None:
        meta = request.metadata
        report = RecreateReport(uid=meta.uid, resource_version=meta.resource_version, phase=phase, states=states)
        subject = subjects.report(self.node, RECREATE_REQUESTS, meta.namespace, meta.name)
        body = await self._bus.request(subject, msgspec.json.encode(report), ANSWER_SECONDS)
        answer = msgspec.json.decode(body, type=Answer)
        assert answer.accepted or answer.again or meta.uid not in self._requests, answer
        async with asyncio.timeout(ANSWER_SECONDS):  # until the copy says it, or is gone
            while _version(self._requests.get(meta.uid)) < int(answer.resource_version or 0):
                await self._world.clock.sleep(LOOK_SECONDS)


def _version(request: ContainerRecreateRequest | None) -> float:
    return float("inf") if request is None else int(request.metadata.resource_version)


def _rank(request: ContainerRecreateRequest) -> tuple[int, float, str]:
    created = request.metadata.creation_timestamp
    phase = request.status.phase
    place = _ORDER.index(phase) if phase in _ORDER else len(_ORDER)
    return place, created.timestamp() if created else 0.0, request.metadata.name
