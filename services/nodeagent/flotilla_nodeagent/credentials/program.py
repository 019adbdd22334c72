"""Running one credential plugin: a request on stdin, an answer on stdout, within limits.

The answer is a secret and goes nowhere but to the caller. Stderr is for people: its beginning is part of the error when
the plugin fails. The plugin runs in a session of its own, so that its child processes are killed with it.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

ANSWER_LIMIT = 256 << 10
"""Bytes of an answer. A token has some thousand, and one answer may hold logins for some registries."""

STDERR_LIMIT = 500
"""Bytes of stderr that are kept."""

REAP_SECONDS = 1.0
"""How long to wait for the end of a plugin that was killed. Only one that hangs in the kernel takes longer."""


class ProgramFailed(Exception):
    """No answer; the text says why. `silent` if it took too long."""

    def __init__(self, why: str, *, silent: bool = False) -> None:
        super().__init__(why)
        self.silent = silent


async def run(
    program: Path, arguments: Sequence[str], env: Mapping[str, str], question: bytes, seconds: float
) -> bytes:
    """What the program prints. It has ended when this returns or raises. Raises ProgramFailed when it failed, printed
    too much or took too long."""
    loop = asyncio.get_running_loop()
    try:
        transport, talk = await loop.subprocess_exec(
            _Talk, str(program), *arguments, env=dict(env), cwd="/", start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise ProgramFailed(f"cannot be started: {error}") from error
    try:
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))  # uvloop's has no such base
        if not stdin.is_closing():  # it may have ended without listening
            stdin.write(question)
            stdin.close()
        await asyncio.wait((talk.ended,), timeout=seconds)
        if not talk.ended.done():
            raise ProgramFailed(f"no answer within {seconds:g} s", silent=True)
        talk.ended.result()
        if code := transport.get_returncode():
            raise ProgramFailed(f"exit code {code}{talk.complaint}")
        return bytes(talk.answer)
    finally:
        if not talk.ended.done() or talk.ended.exception() is not None:
            await _kill(transport.get_pid(), talk)
        transport.close()


async def _kill(pid: int, talk: "_Talk") -> None:
    """Kill its whole session: child processes may outlive the plugin itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    await asyncio.wait((talk.exited,), timeout=REAP_SECONDS)


class _Talk(asyncio.SubprocessProtocol):
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
            self.ended.set_exception(ProgramFailed(f"says more than {ANSWER_LIMIT} bytes"))

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The plugin has ended, and so have all processes that could still write."""
        if not self.ended.done():
            self.ended.set_result(None)

    @property
    def complaint(self) -> str:
        """`: …` with the printable part of what it wrote to stderr, on one line."""
        text = "".join(one if one.isprintable() else " " for one in self._complaint.decode(errors="replace"))
        return f": {' '.join(text.split())}" if text.strip() else ""
