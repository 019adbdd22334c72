"""A process ends on SIGTERM, and reports what blocked it when it could not."""

import json
import signal
import subprocess
import sys

STUBBORN = """
import asyncio, sys
from flotilla_common import logs
from flotilla_common.stopping import stop_on_signals

async def swallow():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def main(work):
    stop_on_signals(seconds=0.05)
    print("ready", flush=True)
    await work()

logs.configure("info", "json")
try:
    asyncio.run(main(swallow if sys.argv[1] == "stubborn" else asyncio.Event().wait))
except asyncio.CancelledError:
    sys.exit(0)
"""


def ended(kind: str) -> tuple[int, str]:
    """Return exit code and log of a process after SIGTERM."""
    command = [sys.executable, "-c", STUBBORN, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=30)
    return process.returncode, out + errors


def test_work_that_can_be_cancelled_ends_at_once() -> None:
    assert ended("obedient") == (0, "")


def test_work_that_swallows_its_cancellation_is_named_and_cut_off() -> None:
    code, log = ended("stubborn")
    line = json.loads(log)
    assert (code, line["level"], line["event"]) == (1, "error", "did not stop in time")
    assert line["waiting"] == ["Task-1: main > swallow > Event.wait"]
