"""Processes are identified by pid and start time, found again by their mark, and ended with their children."""

import asyncio
import os
import sys
from pathlib import Path

import msgspec
import pytest

from flotilla_cli.local import Process, bound_command, is_alive, start_ticks
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.processes import Processes, marked, spawn, stop, tail

CLOCK = SystemClock()
FOREVER = ["sleep", "600"]
IGNORES_SIGTERM = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
STUBBORN = [sys.executable, "-c", IGNORES_SIGTERM]


async def test_a_process_lives_in_a_session_of_its_own_until_it_is_stopped(tmp_path: Path) -> None:
    process = spawn("one", FOREVER, tmp_path / "log", state_dir=tmp_path)
    assert is_alive(process)
    assert os.getsid(process.pid) == process.pid
    async with asyncio.timeout(60):
        while not (found := list(marked(tmp_path))):  # the kernel answers `spawn` before it shows the environment
            await CLOCK.sleep(0.01)
    assert [one.pid for one in found] == [process.pid]
    await stop(process, CLOCK)
    assert not is_alive(process)
    assert not list(marked(tmp_path))


async def test_another_process_with_the_same_pid_is_not_ours(tmp_path: Path) -> None:
    process = spawn("one", FOREVER, tmp_path / "log", state_dir=tmp_path)
    later = msgspec.structs.replace(process, started=process.started + 1)
    other_boot = msgspec.structs.replace(process, boot="before the reboot")
    for stranger in (later, other_boot):
        assert not is_alive(stranger)
        await stop(stranger, CLOCK)
    assert is_alive(process)
    await stop(process, CLOCK, grace=0)


async def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    process = spawn("stubborn", STUBBORN, tmp_path / "log", state_dir=tmp_path)
    while "up" not in tail(tmp_path / "log"):
        await CLOCK.sleep(0.01)
    await stop(process, CLOCK, grace=0.05)
    assert not is_alive(process)


LEADERLESS = """
import ctypes, threading
threading.Thread(target=threading.Event().wait).start()
print("headless", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def is_zombie(pid: int) -> bool:
    return " Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")


async def test_a_process_whose_first_thread_ended_runs_until_its_last_one_does(tmp_path: Path) -> None:
    """It still holds its ports: a caller that treats it as dead could not listen there."""
    clock = SystemClock()
    process = spawn("leaderless", [sys.executable, "-c", LEADERLESS], tmp_path / "log", state_dir=tmp_path)
    try:
        while not is_zombie(process.pid):
            await clock.sleep(0.01)
        assert is_alive(process)
    finally:
        await stop(process, clock, grace=0)
    assert not is_alive(process)


def test_no_process_has_no_start() -> None:
    assert start_ticks(2**22 + 1) is None


def test_a_bound_command_is_killed_with_its_parent() -> None:
    assert bound_command(["x", "-y"])[-2:] == ["x", "-y"]


def test_the_end_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join(map(str, range(30))))
    assert tail(tmp_path / "log", 2) == "28\n29"
    assert tail(tmp_path / "none") == "(no log)"


async def test_records_remember_what_was_started(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    first = processes.spawn("first", FOREVER, tmp_path / "logs" / "first.log")
    second = processes.spawn("second", FOREVER, tmp_path / "logs" / "second.log")
    again = Processes(tmp_path)
    assert again.get("first") == first
    assert {process.name for process in again.running()} == {"first", "second"}
    await again.stop(["first"], CLOCK)
    assert again.get("first") is None
    assert again.running() == [second]
    await again.stop(["second", "never started"], CLOCK)


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_record_survives_its_process(tmp_path: Path, name: str) -> None:
    gone = Process(name, 2**22 + 1, 1, "other boot", ["x"], "log")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f"{name}.json").write_bytes(msgspec.json.encode(gone))
    assert Processes(tmp_path).all() == [gone]
    assert Processes(tmp_path).running() == []
