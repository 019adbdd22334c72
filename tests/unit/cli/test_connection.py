"""Which cluster and which bus a command means."""

from pathlib import Path

import click
import pytest

from flotilla_cli.cluster import local_set
from flotilla_cli.cluster.components import Ports
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_cli.connection import nats_url_of, target_of


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FLOTILLA_STATE", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("FLOTILLA_NATS", raising=False)
    return tmp_path


def remember(state: Path) -> None:
    made = LocalSet(
        kubeconfig="/set/kubeconfig",
        nats="nats://set:4222",
        ports=Ports(*range(1, 1 + len(Ports.__struct_fields__))),
        nats_port=4222,
        nats_monitor=8222,
        webhook_port=9876,
        services={},
        programs={},
        nodes=1,
    )
    local_set.write(state, made)


def test_option_beats_environment_beats_local_set(monkeypatch: pytest.MonkeyPatch, state: Path):
    remember(state)
    assert (target_of("", "").kubeconfig, nats_url_of("")) == ("/set/kubeconfig", "nats://set:4222")
    monkeypatch.setenv("KUBECONFIG", "/env/kubeconfig")
    monkeypatch.setenv("FLOTILLA_NATS", "nats://env:4222")
    assert (target_of("", "").kubeconfig, nats_url_of("")) == ("/env/kubeconfig", "nats://env:4222")
    assert (target_of("/f", "c").kubeconfig, target_of("/f", "c").context) == ("/f", "c")
    assert nats_url_of("nats://option:4222") == "nats://option:4222"


def test_nothing_is_known_without_any_of_them():
    assert (target_of("", "").kubeconfig, nats_url_of("")) == ("", "")


def test_broken_set_file_is_named(state: Path):
    (state / "set.json").write_text("{")
    with pytest.raises(click.ClickException, match=r"set\.json is damaged"):
        target_of("", "")
