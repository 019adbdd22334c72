"""Ends a process on a stop signal: cancels its work, then logs and kills tasks that do not end.

Any await may swallow a cancellation, in a library too. A process that hangs on it would run into the kill signal
without a hint, so it exits a little earlier, with everything that still waits in its log.
"""

import asyncio
import os
import signal
from collections.abc import Iterator

import structlog

STOP_SECONDS = 20.0
"""The time for everything to end after a stop signal. Kubernetes kills after thirty seconds."""

STUCK = 1
"""The exit code of a process that did not end in time."""


def stop_on_signals(seconds: float = STOP_SECONDS) -> None:
    """Cancel the current task on SIGTERM and SIGINT; exit at the latest `seconds` later."""
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
    os._exit(STUCK)  # the tasks do not react to cancellation


def _awaits(task: asyncio.Task[object]) -> Iterator[str]:
    """Yield the names of the coroutines that await one another, the innermost last."""
    at: object = task.get_coro()
    while name := getattr(at, "__qualname__", ""):
        yield name
        at = getattr(at, "cr_await", None)
