"""The one routine that stops a container, for restarts on request and for changed environments (nodeagent.md §4).

Each step is in the journal before the next begins. An agent that was killed on the way continues the same stop with the
rest of its grace: a hook that has ended is not run again, one that was interrupted is (as in the kubelet), and a
container that has been replaced meanwhile is left alone.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable

import msgspec

from flotilla_common.clock import Clock
from flotilla_common.node.reports import EventReport
from flotilla_nodeagent import metrics
from flotilla_nodeagent.channel.reporting import Reporter
from flotilla_nodeagent.cri.errors import TimedOut
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.types import Container, State
from flotilla_nodeagent.stopping.hooks import Hook, HookFailed, run_hook
from flotilla_nodeagent.stopping.journal import Entry, Journal
from flotilla_nodeagent.timing import Timing

LEAST_GRACE = 2
"""Minimum seconds between the stop signal and the kill."""


class StopRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to stop a container, with its reason and grace."""

    cause: str  # a uid; one stop per cause and container name
    runtime: Runtime
    container: Container
    hook: Hook | None
    grace: int  # seconds for hook and stop together


class StopEvents(msgspec.Struct, frozen=True):
    """Callbacks that send events during a stop."""

    killing: Callable[[], None]
    hook_failed: Callable[[str], None]


async def _outcome(hook: Awaitable[None]) -> str:
    """Await the hook and return its error, or ""."""
    try:
        await hook
    except HookFailed as error:
        return str(error)
    return ""


class ContainerStopper:
    """Stops containers, each at most once per cause."""

    def __init__(self, clock: Clock, journal: Journal) -> None:
        self._clock = clock
        self._timing = Timing(clock)
        self.journal = journal

    def stopped(self, cause: str, container: Container) -> bool:
        """Report whether this container, or an earlier instance of it, was already stopped for that cause."""
        entry = self.journal.get(cause, container.name)
        return entry is not None and (entry.stopped or entry.container_id != container.id)

    def forget(self, cause: str) -> None:
        """Drop the records of the stops for that cause."""
        self.journal.forget(cause)
        self._timing.keep(self.journal.causes())

    async def stop(self, request: StopRequest, events: StopEvents) -> None:
        """Stop the container, or finish a stop that an earlier process started.

        Raises CriError when the runtime fails; with Unavailable the outcome is unknown.
        """
        container, name = request.container, request.container.name
        entry = self.journal.get(request.cause, name)
        if entry is None:
            entry = Entry(container_id=container.id, begun=self._clock.now())
            self.journal.put(request.cause, name, entry)
            self._timing.not_started((request.cause, name))
            events.killing()
        spent = math.floor(self._timing.elapsed((request.cause, name), entry.begun))  # by this process and earlier ones
        left = request.grace - min(spent, request.grace)
        if request.hook is not None and not request.hook.empty and left > 0 and not entry.hook_done:
            left -= await self._hook(request, request.hook, left, events)
            entry = msgspec.structs.replace(entry, hook_done=True)
            self.journal.put(request.cause, name, entry)
        await self._signal(request, max(left, LEAST_GRACE))
        self.journal.put(request.cause, name, msgspec.structs.replace(entry, stopped=True))
        metrics.STOPS.inc()

    async def _hook(self, request: StopRequest, hook: Hook, limit: int, events: StopEvents) -> int:
        """Run the hook for at most `limit` seconds; return the whole seconds that it took.

        A hook that times out is left running: it ends with its container.
        """
        started = self._clock.monotonic()
        running = asyncio.ensure_future(_outcome(run_hook(hook, request.runtime, request.container, self._clock)))
        limited = asyncio.ensure_future(self._clock.sleep(limit))
        try:
            await asyncio.wait((running, limited), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            running.cancel()
            raise
        finally:
            limited.cancel()
        trouble = running.result() if running.done() else f"the hook did not end within {limit} s"
        if trouble:
            events.hook_failed(trouble)
        return math.floor(self._clock.monotonic() - started)

    async def _signal(self, request: StopRequest, grace: int) -> None:
        try:
            await request.runtime.stop(request.container.id, grace)
        except TimedOut:
            now = await request.runtime.container(request.container.id)
            if now is not None and now.state == State.RUNNING:
                raise


class StoppedPod(msgspec.Struct, frozen=True):
    """The pod that the container belongs to."""

    namespace: str
    name: str
    uid: str


def stop_events(reporter: Reporter, component: str, pod: StoppedPod, container: Container, killing: str) -> StopEvents:
    """Return senders of events on the pod about a stop, with the container's name in place of its ID (§8).

    `killing` is the message of the first event.
    """

    def send(kind: str, reason: str, message: str) -> None:
        text = message.replace(container.id, container.name)
        event = EventReport(
            kind="Pod",
            uid=pod.uid,
            field_path=f"spec.containers{{{container.name}}}",
            component=component,
            type=kind,
            reason=reason,
            message=text,
        )
        reporter.event(pod.namespace, pod.name, event)

    return StopEvents(
        killing=lambda: send("Normal", "Killing", killing),
        hook_failed=lambda text: send("Warning", "FailedPreStopHook", text),
    )
