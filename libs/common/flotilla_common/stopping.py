"""How a process ends: a stop signal cancels its work, and what does not end then is named and cut off.

Any await may swallow a cancellation, in a library too. A process that hangs on that would wait for the kill signal and
leave nobody a hint, so it goes by itself a little before, with everything that still waits in its log.
"""

import asyncio
import os
import signal
from collections.abc import Iterator

import structlog

STOP_SECONDS = 20.0
"""For everything to end after a stop signal. Kubernetes kills after thirty."""

STUCK = 1
"""The exit code of a process that was cut off."""


def stop_on_signals(seconds: float = STOP_SECONDS) -> None:
    """Cancel the current task on SIGTERM and SIGINT, and end the process at the latest so many seconds after."""
    loop, work = asyncio.get_running_loop(), asyncio.current_task()
    assert work is not None

    def stop() -> None:
        work.cancel()
        loop.call_later(seconds, _cut_off, seconds)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


def _cut_off(seconds: float) -> None:
    waiting = sorted(f"{task.get_name()}: {' > '.join(_awaits(task))}" for task in asyncio.all_tasks())
    structlog.get_logger().error("did not stop in time", seconds=seconds, waiting=waiting)
    os._exit(STUCK)  # the tasks have shown that they do not let themselves be cancelled


def _awaits(task: asyncio.Task[object]) -> Iterator[str]:
    """The coroutines that wait for one another, the innermost last."""
    at: object = task.get_coro()
    while name := getattr(at, "__qualname__", ""):
        yield name
        at = getattr(at, "cr_await", None)
