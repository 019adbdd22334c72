"""Programs are taken from the first place whose version will do."""

from pathlib import Path

import pytest

from flotilla_cli.local import ClusterError
from flotilla_dev.cluster.programs import PROGRAMS
from flotilla_dev.cluster.provision import cached_dir, search

ETCD = PROGRAMS["etcd"]


def program(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOTILLA_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("name", "says", "version"),
    [
        pytest.param("kube-apiserver", "Kubernetes v1.36.3", (1, 36, 3), id="kubernetes"),
        pytest.param("kubectl", "Client Version: v1.32.4-x\nKustomize Version: v5.5.0", (1, 32, 4), id="kubectl"),
        pytest.param("etcd", "etcd Version: 3.7.3\nGit SHA: Not provided", (3, 7, 3), id="etcd"),
        pytest.param("kwok", "kwok version v0.8.0 go1.26.8 (linux/amd64)", (0, 8, 0), id="kwok"),
        pytest.param("nats-server", "nats-server: v2.15.2", (2, 15, 2), id="nats"),
        pytest.param(
            "containerd", "containerd github.com/containerd/containerd/v2 v2.4.2 3f1e", (2, 4, 2), id="containerd"
        ),
        pytest.param("containerd", "containerd github.com/containerd/containerd 1.6.20~ds1", (1, 6, 20), id="debian's"),
        pytest.param("containerd-shim-runc-v2", "containerd-shim-runc-v2:\n  Version:  v2.4.2", (2, 4, 2), id="shim"),
        pytest.param("crane", "0.22.1", (0, 22, 1), id="crane"),
        pytest.param("etcd", "no idea", None, id="silent"),
    ],
)
def test_versions_are_read_from_what_programs_say(name: str, says: str, version: tuple[int, ...] | None) -> None:
    assert PROGRAMS[name].version(says) == version


def test_a_named_folder_comes_before_path(tmp_path: Path) -> None:
    named = program(tmp_path / "assets", "etcd", "etcd Version: 3.6.1")
    program(tmp_path / "path", "etcd", "etcd Version: 3.7.0")
    found = search([ETCD], tmp_path / "assets", {"PATH": str(tmp_path / "path")})
    assert found.found == {"etcd": named}


def test_kubebuilder_assets_come_before_path(tmp_path: Path) -> None:
    assets = program(tmp_path / "assets", "etcd", "etcd Version: 3.6.1")
    program(tmp_path / "path", "etcd", "etcd Version: 3.7.0")
    env = {"PATH": str(tmp_path / "path"), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    assert search([ETCD], None, env).found == {"etcd": assets}


def test_an_old_program_on_path_is_passed_over_for_the_cache(tmp_path: Path) -> None:
    program(tmp_path / "path", "etcd", "etcd Version: 3.4.23")
    cached = program(cached_dir(ETCD.product), "etcd", "")
    found = search([ETCD], None, {"PATH": str(tmp_path / "path")})
    assert found.found == {"etcd": cached}
    assert found.tried == [f"{tmp_path / 'path' / 'etcd'}: is version 3.4.23, 3.5.0 or newer is needed"]


def test_an_old_program_in_a_named_folder_is_an_error(tmp_path: Path) -> None:
    program(tmp_path / "assets", "etcd", "etcd Version: 3.4.23")
    with pytest.raises(ClusterError, match=r"3\.4\.23, 3\.5\.0 or newer is needed"):
        search([ETCD], tmp_path / "assets", {"PATH": ""})


def test_what_was_tried_is_told_when_nothing_is_found(tmp_path: Path) -> None:
    found = search([ETCD], tmp_path / "assets", {"PATH": str(tmp_path)})
    assert not found.found
    assert [line.partition(":")[0] for line in found.tried] == [
        str(tmp_path / "assets" / "etcd"),
        "PATH/etcd",
        str(cached_dir(ETCD.product) / "etcd"),
    ]
