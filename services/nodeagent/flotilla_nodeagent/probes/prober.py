"""Schedules all probes of the node, runs their rounds and updates their results (nodeagent.md §6.1).

One loop begins the rounds that are due; a round is a task only while it runs. A result changes only after a fresh check
of its container: the list that rounds begin with may be half a second old.
"""

import asyncio
import heapq
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import structlog

from flotilla_common.api.kinds.nodepodprobe.types import UNKNOWN
from flotilla_common.clock import Clock
from flotilla_nodeagent import metrics
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.cri.errors import CriError
from flotilla_nodeagent.cri.types import Container, State
from flotilla_nodeagent.probes import handlers, states
from flotilla_nodeagent.probes.definitions import Exec, Impossible, Key, Probe, ProbeRejected
from flotilla_nodeagent.probes.handlers import pod_address
from flotilla_nodeagent.probes.inventory import Inventory
from flotilla_nodeagent.probes.slots import Slots
from flotilla_nodeagent.probes.states import Outcome, Progress, Result
from flotilla_nodeagent.timing import Timing

REFRESH_SECONDS = 600.0
"""Age after which a result is reported again (nodeagent.md §6.2).

All are refreshed in the same rounds, which costs one or two reports for the node and not one for each probe.
"""

SPREAD_SECONDS = 10.0
"""After a start of the agent the first rounds are spread over the period of each probe, and over this time at most."""

LEAST_PAUSE, MOST_PAUSE = 0.02, 0.2
"""Seconds between two checks of what is due: rounds that are due closely together begin together."""

EXEC_AT_ONCE, EXEC_PER_POD = 16, 2
"""Limits of running commands: each starts processes of the runtime and in the container."""

NETWORK_AT_ONCE, NETWORK_PER_POD = 128, 8
"""Limits of open connections."""

WAIT_SECONDS = 1.0
"""Interval of looking for a missing container, even if the period is longer: it appears soon, or has ended."""

Changed = Callable[[Probe, Result | None, Result], None]
"""Called with the old and the new result of a probe: state, message, or only the time differs."""


class Worker:
    """One probe, and its progress."""

    def __init__(self, probe: Probe, progress: Progress, due: float, now: float) -> None:
        self.probe = probe
        self.progress = progress
        self.due = due
        self.begun = due  # when the last round was due
        self.stored_at = now  # when the result was last stored
        self.logged_failure = ""
        self.task: asyncio.Task[None] | None = None


class Prober:
    """Runs probes. `on_change` is called for every result to be reported."""

    def __init__(self, context: AgentContext, on_change: Changed, is_node: Callable[[str], bool]) -> None:
        """Prepare to run probes; `is_node` reports whether an address is the node's own."""
        self._is_node = is_node
        self._clock: Clock = context.clock
        self._entropy = context.entropy
        self._inventory = Inventory(context.runtimes, context.clock)
        self._timing = Timing(context.clock)
        self._on_change = on_change
        self.workers: dict[Key, Worker] = {}  # in the order of the NodePodProbe
        self._due: list[tuple[float, int, Worker]] = []
        self._pushes = 0
        self._started = context.clock.monotonic()
        self._refreshed = self._started
        self._exec = Slots(EXEC_AT_ONCE, EXEC_PER_POD)
        self._network = Slots(NETWORK_AT_ONCE, NETWORK_PER_POD)
        self._log = structlog.get_logger(part="probes")

    def sync(self, wanted: Mapping[Key, Probe], known: Mapping[Key, Progress]) -> None:
        """Run these probes from now on; `known` are results of an earlier process, for new probes."""
        before, self.workers = self.workers, {}
        for key, probe in wanted.items():
            worker = before.pop(key, None)
            if worker is not None and worker.probe.container == probe.container:
                self.workers[key] = worker
                self._redefine(worker, probe)
                continue
            if worker is not None:
                self._stop(worker)
            self.workers[key] = self._begin(probe, known.get(key, Progress()) if worker is None else worker.progress)
        for worker in before.values():
            self._stop(worker)
        self._timing.keep({probe.uid for probe in wanted.values()})
        metrics.PROBES.set(len(self.workers))

    async def run(self) -> None:
        """Begin the rounds that are due, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._clock.sleep(self._begin_rounds(group))

    def _begin(self, probe: Probe, progress: Progress) -> Worker:
        now = self._clock.monotonic()
        due = now
        if now - self._started < probe.period:
            due += self._entropy.uniform(0, min(probe.period, SPREAD_SECONDS))
        worker = Worker(probe, progress, due, now)
        self._push(worker)
        return worker

    def _redefine(self, worker: Worker, probe: Probe) -> None:
        before, worker.probe = worker.probe, probe
        if before.period != probe.period:
            worker.due = max(worker.begun + probe.period, self._clock.monotonic())
            self._push(worker)
        if (before.handler, before.refused) != (probe.handler, probe.refused):
            self._set(worker, states.redefined(worker.progress, self._clock.now()))
            self._bring_forward(worker, 0.0)

    def _stop(self, worker: Worker) -> None:
        worker.due = float("inf")
        if worker.task is not None:
            worker.task.cancel()

    def _push(self, worker: Worker) -> None:
        self._pushes += 1
        heapq.heappush(self._due, (worker.due, self._pushes, worker))

    def _begin_rounds(self, group: asyncio.TaskGroup) -> float:
        """Begin the rounds that are due and fit the limits; return the seconds until the next check."""
        now = self._clock.monotonic()
        if now - self._refreshed >= REFRESH_SECONDS:
            self._refreshed = now
        late: list[Worker] = []
        while self._due and self._due[0][0] <= now:
            due, _, worker = heapq.heappop(self._due)
            if due != worker.due:
                continue  # it is due at another time, or is stopped
            slots, key = self._slots(worker), worker.probe.key
            if worker.task is not None or not slots.pod_has_room(key):
                worker.due = now + MOST_PAUSE
                self._push(worker)
            elif not slots.node_has_room(now):
                late.append(worker)  # keeps its place
            else:
                worker.begun, worker.due = due, max(due + worker.probe.period, now)
                self._push(worker)
                self._begin_round(worker, slots, group)
        for worker in late:
            self._push(worker)
        return min(max(self._due[0][0] - now if self._due else MOST_PAUSE, LEAST_PAUSE), MOST_PAUSE)

    def _begin_round(self, worker: Worker, slots: Slots, group: asyncio.TaskGroup) -> None:
        key = worker.probe.key
        slots.take(key, self._clock.monotonic())

        def ended(task: asyncio.Task[None]) -> None:
            slots.give_back(key)
            worker.task = None

        worker.task = group.create_task(self._run(worker))
        worker.task.add_done_callback(ended)  # a task that is cancelled before it begins does nothing by itself

    def _slots(self, worker: Worker) -> Slots:
        return self._exec if isinstance(worker.probe.handler, Exec) else self._network

    async def _run(self, worker: Worker) -> None:
        try:
            await self._round(worker)
        except (CriError, Impossible) as error:
            self._log_failure(worker, str(error))
        except Exception:  # noqa: BLE001 - one bad probe must not stop the others
            self._log.exception("unexpected failure", pod=worker.probe.pod, probe=worker.probe.name)

    async def _round(self, worker: Worker) -> None:
        """Carry out one round (nodeagent.md §6.2)."""
        probe, before = worker.probe, worker.progress.result
        container = await self._inventory.find(probe)
        if container is None or not await self._apply_container(worker, container):
            self._bring_forward(worker, WAIT_SECONDS)
            return
        if before is not None and _state(worker.progress) == UNKNOWN != before.state:
            # Its container was replaced. An outcome right now would hide that on the pod before anyone can see it.
            self._bring_forward(worker, WAIT_SECONDS)
            return
        try:
            outcome = await self._outcome(worker, container)
        except ProbeRejected as error:
            refused = states.refused(worker.progress, str(error), self._clock.now(), refresh=self._stale(worker))
            self._set(worker, refused)
        except CriError:
            await self._still_there(worker, container)  # the reason may be that the container has ended
            raise
        else:
            if outcome is not None and worker.probe.handler == probe.handler:
                await self._take(worker, container, outcome)

    async def _apply_container(self, worker: Worker, container: Container) -> bool:
        """Apply the probe's container to its progress; return whether it runs."""
        progress = worker.progress
        if progress.result is not None and not progress.container_id:
            progress = states.placed(progress, container, await self._inventory.started(container))
        self._set(worker, states.seen(progress, container, self._clock.now(), refresh=self._stale(worker)))
        return container.state is State.RUNNING

    async def _still_there(self, worker: Worker, container: Container) -> bool:
        """Read the container again, and report whether it is still the newest one in the same state."""
        newest = await self._inventory.read(worker.probe)
        if newest is not None and (newest.id, newest.state) == (container.id, container.state):
            return True
        if newest is not None:
            await self._apply_container(worker, newest)
        self._bring_forward(worker, WAIT_SECONDS)
        return False

    async def _outcome(self, worker: Worker, container: Container) -> Outcome | None:
        """Return the outcome of a probe of the container, or None while it has not run for long enough.

        Raises ProbeRejected, Impossible, CriError.
        """
        probe = worker.probe
        if probe.refused:
            raise ProbeRejected(probe.refused)
        if probe.handler is None:
            raise Impossible(probe.problem)
        started = datetime.fromtimestamp(await self._inventory.started(container), UTC)
        if (left := self._timing.remaining((probe.uid, container.id), started, probe.delay)) > 0:
            self._bring_forward(worker, left)
            return None
        ip = ""
        if not isinstance(probe.handler, Exec):
            ip = pod_address(probe.ip, await self._inventory.ips(container), self._is_node)
        sort = type(probe.handler).__struct_config__.tag
        try:
            outcome = await handlers.run(
                probe.handler,
                container=container,
                ip=ip,
                timeout=probe.timeout,
                runtime=self._inventory.runtime,
                clock=self._clock,
            )
        except (CriError, Impossible):
            metrics.ROUNDS.labels(sort, "impossible").inc()
            raise
        metrics.ROUNDS.labels(sort, "succeeded" if outcome.succeeded else "failed").inc()
        return outcome

    async def _take(self, worker: Worker, container: Container, outcome: Outcome) -> None:
        """Count the outcome; before it changes the state, check that the container is still the current one."""
        handler, changes = worker.probe.handler, _state(self._counted(worker, outcome)) != _state(worker.progress)
        if changes and not (await self._still_there(worker, container) and worker.probe.handler == handler):
            return
        worker.logged_failure = ""
        self._set(worker, self._counted(worker, outcome))

    def _counted(self, worker: Worker, outcome: Outcome) -> Progress:
        return states.probed(worker.progress, worker.probe, outcome, self._clock.now(), refresh=self._stale(worker))

    def _bring_forward(self, worker: Worker, seconds: float) -> None:
        """Bring the next round forward to `seconds` from now, unless it is due earlier."""
        due = self._clock.monotonic() + seconds
        if due < worker.due < float("inf"):
            worker.due = due
            self._push(worker)

    def _stale(self, worker: Worker) -> bool:
        return worker.stored_at < self._refreshed

    def _set(self, worker: Worker, progress: Progress) -> None:
        if self.workers.get(worker.probe.key) is not worker:
            return  # it was stopped meanwhile
        before, worker.progress = worker.progress.result, progress
        if progress.result is None or progress.result == before:
            return
        worker.stored_at = self._clock.monotonic()
        self._on_change(worker.probe, before, progress.result)

    def _log_failure(self, worker: Worker, why: str) -> None:
        """Log why a probe cannot be carried out, once for each reason."""
        if why != worker.logged_failure:
            worker.logged_failure = why
            self._log.info("a probe cannot be carried out", pod=worker.probe.pod, probe=worker.probe.name, why=why)


def _state(progress: Progress) -> str:
    return progress.result.state if progress.result is not None else ""
