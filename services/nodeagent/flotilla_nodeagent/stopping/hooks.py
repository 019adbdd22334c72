"""Runs preStop hooks: a command in the container, an HTTP request to it, or a pause.

A hook that fails is reported and otherwise ignored. A tcpSocket hook is parsed but not supported, as in the kubelet; a
hook without any handler is no hook.
"""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerPort, HttpGetAction, PreStop
from flotilla_common.api.numbers import integer
from flotilla_common.clock import Clock
from flotilla_nodeagent.cri.errors import CriError
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.types import PORTS_ANNOTATION, PRE_STOP_ANNOTATION, Container
from flotilla_nodeagent.stopping import http

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
        one = self.handler
        return not (one.exec or one.http_get or one.tcp_socket or one.sleep)


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
        status = await http.get(
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
    """Return a port by number or by name. Raises ValueError when there is none."""
    number = port if isinstance(port, int) else integer(port)
    if not number:
        number = next((one.container_port for one in ports if one.name == port), 0)
    if not 0 < number < 65536:
        raise ValueError(f"no port {port!r}")
    return number
