"""Stops one container as the kubelet would: preStop hook, stop signal, kill (nodeagent.md §4).

The one routine serves restarts on request and for changed environments. Each step is in the journal before the next
begins. An agent that was killed on the way continues the same stop with the rest of its grace: a hook that has ended is
not run again, one that was interrupted is (as in the kubelet), and a container that has been replaced meanwhile is left
alone.

A hook is a command in the container, an HTTP request to it, or a pause. One that fails is reported and otherwise
ignored. A tcpSocket hook is parsed but not supported, as in the kubelet; a hook without any handler is no hook.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerPort, HttpGetAction, PreStop
from flotilla_common.api.numbers import integer
from flotilla_common.clock import Clock
from flotilla_common.node.reports import EventReport
from flotilla_nodeagent import metrics
from flotilla_nodeagent.cri.errors import CriError, TimedOut
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.types import PORTS_ANNOTATION, PRE_STOP_ANNOTATION, Container, State
from flotilla_nodeagent.http_client import get_status
from flotilla_nodeagent.reporting import Reporter
from flotilla_nodeagent.stop_journal import Entry, Journal
from flotilla_nodeagent.timing import Timing

OUTPUT_LIMIT = 1024
"""Limit of the bytes of a command's output that are kept, for its event if it fails."""


class HookFailed(Exception):
    """The hook failed; the text goes into an event."""


class Hook(msgspec.Struct, frozen=True):
    """A hook, and the ports that its handler may name."""

    handler: PreStop
    ports: Sequence[ContainerPort] = ()

    @property
    def empty(self) -> bool:
        """Report whether the hook has no handler to run."""
        handler = self.handler
        return not (handler.exec or handler.http_get or handler.tcp_socket or handler.sleep)


def hook_of(container: Container) -> Hook | None:
    """Return the hook from the kubelet's annotation on the container, or None (cri.md §9)."""
    text = container.annotations.get(PRE_STOP_ANNOTATION)
    if not text:
        return None
    try:
        handler = msgspec.json.decode(text, type=PreStop)
        ports = msgspec.json.decode(container.annotations.get(PORTS_ANNOTATION) or "[]", type=list[ContainerPort])
    except msgspec.DecodeError:
        return None  # not written by the kubelet
    return Hook(handler, ports)


async def run_hook(hook: Hook, runtime: Runtime, container: Container, clock: Clock) -> None:
    """Run it to its end. Raises HookFailed when it fails."""
    handler = hook.handler
    if handler.exec is not None:
        await _execute(handler.exec.command, runtime, container)
    elif handler.http_get is not None:
        await _request(handler.http_get, hook.ports, runtime, container)
    elif handler.sleep is not None:
        await clock.sleep(handler.sleep.seconds)
    else:
        raise HookFailed("tcpSocket is not supported as a preStop hook")


async def _execute(command: list[str], runtime: Runtime, container: Container) -> None:
    try:
        done = await runtime.execute(container.id, command, keep=OUTPUT_LIMIT)
    except CriError as error:
        raise HookFailed(str(error)) from error
    if done.exit_code:
        output = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise HookFailed(f"command {command} ended with exit code {done.exit_code}: {output}")


async def _request(
    action: HttpGetAction, ports: Sequence[ContainerPort], runtime: Runtime, container: Container
) -> None:
    """Send the request to the pod, unless another host is named."""
    # A pod in the node's network is reached on the node itself.
    try:
        host = action.host or await runtime.sandbox_ip(container.sandbox) or "127.0.0.1"
        status = await get_status(
            host,
            port_of(action.port, ports),
            action.path or "/",
            secure=action.scheme.upper() == "HTTPS",
            headers={header.name: header.value for header in action.http_headers},
        )
    except (OSError, ValueError, CriError) as error:
        raise HookFailed(str(error) or type(error).__name__) from error
    if not 200 <= status < 400:
        raise HookFailed(f"HTTP status {status}")


def port_of(port: int | str, ports: Sequence[ContainerPort]) -> int:
    """Return a port by number or by name. Raises ValueError for an unknown name."""
    number = port if isinstance(port, int) else integer(port)
    if not number:
        number = next((named.container_port for named in ports if named.name == port), 0)
    if not 0 < number < 65536:
        raise ValueError(f"no port {port!r}")
    return number


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
