"""State folders: marked, locked, readable by every verb."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from flotilla_cli import connection
from flotilla_cli.local import (
    ClusterError,
    LocalCluster,
    Ports,
    Process,
    boot_id,
    read_cluster,
    start_ticks,
    write_private,
)
from flotilla_cli.main import main
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster import services, state
from flotilla_dev.cluster import status as health
from flotilla_dev.cluster import up as work
from flotilla_dev.cluster.ports import free_ports, is_free, require_free
from flotilla_dev.cluster.processes import Processes

SET = LocalCluster(
    kubeconfig="/state/kubeconfig",
    nats="nats://127.0.0.1:4222",
    ports=Ports(6443, 2379, 2380),
    nats_port=4222,
    nats_monitor=8222,
    webhook_port=9876,
    services={"watcher": 8080},
    programs={"kubectl": "/bin/kubectl"},
    nodes=10,
)


def test_the_other_verbs_read_what_up_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOTILLA_STATE", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    state.write(tmp_path, SET)
    assert read_cluster(tmp_path) == SET
    assert connection.target_of("", "").kubeconfig == SET.kubeconfig
    assert (tmp_path / "set.json").stat().st_mode & 0o077 == 0


def test_settings_are_checked_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services.check_settings(SET, Processes(tmp_path), tmp_path)
    monkeypatch.setenv("FLOTILLA_SHARD", "2")
    with pytest.raises(ClusterError, match="unknown variable FLOTILLA_SHARD; did you mean FLOTILLA_SHARDS"):
        services.check_settings(SET, Processes(tmp_path), tmp_path)


def test_no_set_is_none_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    assert read_cluster(tmp_path) is None
    (tmp_path / "set.json").write_text("{")
    with pytest.raises(ClusterError, match="flotilla down"):
        read_cluster(tmp_path)


@pytest.mark.parametrize("begun", [False, True])
def test_up_that_stops_half_way_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, begun: bool
) -> None:
    async def start(*_: object) -> None:
        if begun:
            this = Process("etcd", os.getpid(), start_ticks(os.getpid()) or 0, boot_id(), [], "")
            write_private(tmp_path / "run" / "etcd.json", msgspec.json.encode(this))
        raise ClusterError("no apiserver")

    monkeypatch.setattr(work, "start", start)
    reply = CliRunner().invoke(main, ["up", "--state", str(tmp_path)])
    assert reply.exit_code == 1
    assert "Error: no apiserver" in reply.stderr
    assert (f"`flotilla down --state {tmp_path}` removes it" in reply.stderr) == begun


def test_only_empty_or_own_folders_are_taken(tmp_path: Path) -> None:
    state.claim(tmp_path / "new")
    state.claim(tmp_path / "new")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "letter").touch()
    with pytest.raises(ClusterError, match="not empty"):
        state.claim(tmp_path / "theirs")
    assert not state.is_ours(tmp_path / "theirs")


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ClusterError, match="cannot be used"):
        state.claim(tmp_path / "file")


def test_a_full_disk_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "NEEDED_BYTES", 1 << 60)
    with pytest.raises(ClusterError, match="MiB are free"):
        state.claim(tmp_path)


def test_one_command_at_a_time(tmp_path: Path) -> None:
    with state.only_one(tmp_path), pytest.raises(ClusterError, match="Another flotilla command"):  # noqa: SIM117
        with state.only_one(tmp_path):
            pass
    with state.only_one(tmp_path):
        pass


def test_free_ports_are_given_once_to_one_process() -> None:
    ports = free_ports(20)
    assert max(ports) < 32_768, "a restarted server must find its port as it left it"
    # A process that has ended gives its ports back, so both live until both have theirs.
    program = "from flotilla_dev.cluster.ports import free_ports; print(*free_ports(100), flush=True); input()"
    command, pipe = [sys.executable, "-c", program], subprocess.PIPE
    others = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    printed = [one.stdout.readline() for one in others if one.stdout is not None]
    for one in others:
        one.communicate("\n")
    given = [*ports, *free_ports(20), *(int(port) for line in printed for port in line.split())]
    assert len(set(given)) == 240


def test_a_port_that_is_taken_is_not_chosen() -> None:
    (first,) = free_ports(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()
        assert first + 1 not in free_ports(3)


def test_taken_ports_are_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(ClusterError, match="--port"):
            require_free(port, "the apiserver", "--port")


def test_a_bare_set_stays_bare_and_no_other_becomes_so() -> None:
    bare, found = work.UpOptions(real_nodes=3, bare=True), msgspec.structs.replace(SET, bare=True)
    assert work.settled(bare, None).bare
    assert work.settled(bare, found).bare
    assert work.settled(work.UpOptions(), found).bare
    with pytest.raises(ClusterError, match="flotilla down"):
        work.settled(bare, SET)


@pytest.mark.parametrize("words", [["--bare"], ["--bare", "--real-nodes", "1", "--demo"]], ids="-".join)
def test_bare_is_a_wish_for_real_nodes_and_no_demo(words: list[str], tmp_path: Path) -> None:
    reply = CliRunner().invoke(main, ["up", "--state", str(tmp_path / "set"), *words])
    assert reply.exit_code == 2
    assert "--bare goes with --real-nodes" in reply.output
    assert not (tmp_path / "set").exists()


async def test_a_bare_set_is_well_without_services(tmp_path: Path) -> None:
    state.write(tmp_path, msgspec.structs.replace(SET, bare=True, real_nodes=1))
    names = {line.name for line in await health.check(tmp_path, SystemClock())}
    assert {"etcd", "real-0-kubelet", "registry"} <= names
    assert not names & {"nats-server", "watcher", "real-0-nodeagent"}
