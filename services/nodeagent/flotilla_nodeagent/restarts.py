"""Restarts containers whose environment has to follow the pod's metadata (nodeagent.md §5.5).

The kubelet does not do that. It starts a stopped container again, with the new environment; then there is a new
instance with a new hash. One that never gets the wanted environment is stopped less and less often.
"""

from collections.abc import Callable

import msgspec
import structlog

from flotilla_common.control.queue import Backoff
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.copies import Key
from flotilla_nodeagent.cri.types import State
from flotilla_nodeagent.stopping import LEAST_GRACE, ContainerStopper, StoppedPod, StopRequest, hook_of, stop_events
from flotilla_nodeagent.workqueue import WorkQueue

WORKERS = 10
FIRST_SECONDS, MOST_SECONDS = 3.0, 600.0
"""Pause before the first stop of a container, doubled with each further one of the same container of the pod."""

CALM_SECONDS = 1200.0
"""Time without a stop after which a container starts with the shortest pause again."""

COMPONENT = "kruise-daemon-containermeta"


class PendingRestart(msgspec.Struct, frozen=True):
    """One instance of a container that needs a restart."""

    pod: Key
    pod_uid: str
    name: str
    container_id: str
    runtime: str


class Restarts:
    """The queue of containers to stop."""

    def __init__(self, context: AgentContext, stopper: ContainerStopper) -> None:
        self._context = context
        self._stopper = stopper
        self._pauses: dict[tuple[str, str], tuple[float, float]] = {}  # (pod uid, name): next pause, valid until
        self._asked: dict[PendingRestart, Callable[[], bool]] = {}
        backoff = Backoff(FIRST_SECONDS, MOST_SECONDS)
        self._queue = WorkQueue[PendingRestart]("restarts", context, self._stop, workers=WORKERS, backoff=backoff)
        self._log = structlog.get_logger(part="restarts")

    def want(self, wanted: PendingRestart, still: Callable[[], bool]) -> None:
        """Stop this instance after its pause, if `still` is true then. Repeated calls have no effect."""
        if wanted in self._asked:
            return
        self._asked[wanted] = still
        key, now = (wanted.pod_uid, wanted.name), self._context.clock.monotonic()
        pause, until = self._pauses.get(key, (FIRST_SECONDS, 0.0))
        pause = pause if now < until else FIRST_SECONDS
        self._pauses = {one: kept for one, kept in self._pauses.items() if now < kept[1]}
        self._pauses[key] = (min(pause * 2, MOST_SECONDS), now + pause + CALM_SECONDS)
        self._queue.add(wanted, pause)

    async def run(self) -> None:
        """Work until cancelled. Stops of an earlier process are dropped: the present state decides what to stop."""
        for cause in self._stopper.journal.causes():
            self._stopper.forget(cause)
        await self._queue.run()

    async def _stop(self, wanted: PendingRestart) -> float | None:
        """Stop it, if it still exists and runs. Raises CriError."""
        runtime = self._context.runtimes.named(wanted.runtime) or self._context.runtimes.primary()
        container = await runtime.container(wanted.container_id)
        if container is not None and container.state == State.RUNNING and self._asked[wanted]():
            self._log.info("restarting for its environment", pod="/".join(wanted.pod), container=wanted.name)
            stop_request = StopRequest(
                cause=container.id,
                runtime=runtime,
                container=container,
                hook=hook_of(container),
                grace=LEAST_GRACE if container.grace is None else container.grace,
            )
            pod = StoppedPod(*wanted.pod, wanted.pod_uid)
            message = f"Stopping containerID {runtime.name}://{container.name} by container meta restarter"
            await self._stopper.stop(
                stop_request, stop_events(self._context.reporter, COMPONENT, pod, container, message)
            )
        self._stopper.forget(wanted.container_id)
        del self._asked[wanted]
        return None
