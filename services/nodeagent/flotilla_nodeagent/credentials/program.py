"""Runs a credential plugin: a request on stdin, an answer on stdout, within limits.

The answer is a secret and goes to the caller only. Stderr is for people: its beginning is part of the error when the
plugin fails. The plugin runs in a session of its own, so that its child processes are killed with it.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

ANSWER_LIMIT = 256 << 10
"""Size limit of an answer in bytes: a token has some thousand, and an answer may hold logins for some registries."""

STDERR_LIMIT = 500
"""Limit of the bytes of stderr that are kept."""

REAP_SECONDS = 1.0
"""Time to wait for the end of a killed plugin; only one that hangs in the kernel takes longer."""


class ProgramFailed(Exception):
    """There is no answer; the text gives the reason. `silent` if the program has timed out."""

    def __init__(self, why: str, *, silent: bool = False) -> None:
        super().__init__(why)
        self.silent = silent


async def run(
    program: Path, arguments: Sequence[str], env: Mapping[str, str], question: bytes, seconds: float
) -> bytes:
    """Run the program and return what it prints. It has ended when this returns or raises.

    Raises ProgramFailed when it failed, printed too much or timed out.
    """
    loop = asyncio.get_running_loop()
    try:
        transport, call = await loop.subprocess_exec(
            _PluginCall, str(program), *arguments, env=dict(env), cwd="/", start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise ProgramFailed(f"cannot be started: {error}") from error
    try:
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))  # uvloop's has no such base
        if not stdin.is_closing():  # it may have ended without reading
            stdin.write(question)
            stdin.close()
        await asyncio.wait((call.ended,), timeout=seconds)
        if not call.ended.done():
            raise ProgramFailed(f"no answer within {seconds:g} s", silent=True)
        call.ended.result()
        if code := transport.get_returncode():
            raise ProgramFailed(f"exit code {code}{call.complaint}")
        return bytes(call.answer)
    finally:
        if not call.ended.done() or call.ended.exception() is not None:
            await _kill(transport.get_pid(), call)
        transport.close()


async def _kill(pid: int, call: "_PluginCall") -> None:
    """Kill its whole session: child processes may outlive the plugin itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    await asyncio.wait((call.exited,), timeout=REAP_SECONDS)


class _PluginCall(asyncio.SubprocessProtocol):
    """Collects the output, up to the limits."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.answer = bytearray()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[None] = loop.create_future()
        self._complaint = bytearray()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._complaint += data[: STDERR_LIMIT - len(self._complaint)]
        elif len(self.answer) + len(data) <= ANSWER_LIMIT:
            self.answer += data
        elif not self.ended.done():
            self.ended.set_exception(ProgramFailed(f"prints more than {ANSWER_LIMIT} bytes"))

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the plugin and all processes that could still write have ended."""
        if not self.ended.done():
            self.ended.set_result(None)

    @property
    def complaint(self) -> str:
        """`: …` with the printable part of its stderr, on one line."""
        text = "".join(
            character if character.isprintable() else " " for character in self._complaint.decode(errors="replace")
        )
        return f": {' '.join(text.split())}" if text.strip() else ""
