"""No test, and no local set, meets what a developer's shell and home lead to."""

import os
from pathlib import Path

import pytest

from flotilla_dev.cluster.processes import cleaned, spawn
from flotilla_dev.cluster.programs import PROGRAMS
from flotilla_dev.cluster.provision import search
from tests.support import surroundings
from tests.support.cluster import eventually

ELSEWHERE = {
    "KUBECONFIG": "/prod/config",
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "KUBEBUILDER_ASSETS": "/prod/assets",
    "HELM_KUBECONTEXT": "prod",
    "NATS_URL": "nats://prod:4222",
    "DOCKER_HOST": "tcp://prod:2375",
    "XDG_CONFIG_HOME": "/prod/config",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://prod:4317",
    "POD_NAMESPACE": "prod",
    "FLOTILLA_KUBECONFIG": "/prod/config",
    "FLOTILLA_CONTEXT": "prod",
    "FLOTILLA_NATS": "nats://prod:4222",
    "FLOTILLA_NATS_CREDS": "/prod/creds",
    "FLOTILLA_CONFIG": "/prod/settings",
}
"""Variables of a shell in which a production cluster is managed."""


def test_a_local_set_keeps_settings_and_nothing_that_leads_elsewhere() -> None:
    own = {"FLOTILLA_FEATURE_GATES": "A=true", "FLOTILLA_STATE": "/mine", "LANG": "C", "HTTPS_PROXY": "http://p"}
    assert cleaned(own | ELSEWHERE) == own


def test_tests_keep_knobs_caches_and_nothing_else_of_ours(tmp_path: Path) -> None:
    shell = ELSEWHERE | {"HOME": "/root", "PATH": "/bin", "FLOTILLA_STATE": "/mine", "FLOTILLA_SHARDS": "9", "CI": "1"}
    knobs = {"FLOTILLA_TEST_CONTAINERS": "never", "FLOTILLA_CACHE": "/cache", "PERF_LIMIT": "5"}
    found = surroundings.surroundings(shell | knobs, tmp_path)
    assert found.pop("PATH") == f"{tmp_path}/not-ours:/bin"
    assert found == knobs | {
        "CI": "1",
        "HOME": str(tmp_path),
        "GOCACHE": "/root/.cache/go-build",
        "GOPATH": "/root/go",
        "PIP_CACHE_DIR": "/root/.cache/pip",
        "UV_CACHE_DIR": "/root/.cache/uv",
        surroundings.ENTERED: str(tmp_path),
    }


def test_these_tests_have_such_an_environment() -> None:
    home = os.environ[surroundings.ENTERED]
    assert os.environ["HOME"] == home != os.environ.get("GOPATH")
    assert not os.environ.keys() & ELSEWHERE.keys()
    assert os.environ["PATH"].startswith(f"{home}/not-ours:")


def test_programs_of_the_machine_are_not_taken(tmp_path: Path) -> None:
    """Other programs find those on PATH."""
    (tmp_path / "nats-server").write_text("#!/bin/sh\necho v9.9.9\n")
    (tmp_path / "nats-server").chmod(0o755)
    wanted = [PROGRAMS["nats-server"]]
    theirs = {"PATH": str(tmp_path)}
    assert search(wanted, env=theirs).found["nats-server"] == tmp_path / "nats-server"
    (tmp_path / "home").mkdir()
    ours = surroundings.surroundings(theirs | {"HOME": str(tmp_path)}, tmp_path / "home")
    assert search(wanted, env=ours).found.get("nats-server") != tmp_path / "nats-server"
    assert search(wanted, env=theirs, pinned=True).found.get("nats-server") != tmp_path / "nats-server"


async def test_processes_of_a_set_have_its_folder_for_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)
    log = tmp_path / "log"
    spawn("one", ["env"], log, state_dir=tmp_path)
    await eventually(lambda: log.exists() and "FLOTILLA_STATE_DIR=" in log.read_text(), 10)
    said = dict(line.split("=", 1) for line in log.read_text().splitlines() if "=" in line)
    assert said["HOME"] == str(tmp_path)
    assert not said.keys() & ELSEWHERE.keys()
