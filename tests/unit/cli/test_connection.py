"""Which cluster and which bus a command means."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from flotilla_cli.cluster import local_set
from flotilla_cli.cluster.components import Ports
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_cli.connection import Target, namespace_of, nats_url_of, target_of
from flotilla_cli.main import main


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FLOTILLA_STATE", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("FLOTILLA_NATS", raising=False)
    return tmp_path


def remember(state: Path, kubeconfig: str = "/set/kubeconfig") -> None:
    made = LocalSet(
        kubeconfig=kubeconfig,
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


def test_a_set_elsewhere_is_known_by_its_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("FLOTILLA_STATE", str(tmp_path / "none"))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    remember(folder, str(folder / "kubeconfig"))
    assert nats_url_of("") == ""
    assert nats_url_of("", str(folder / "kubeconfig")) == "nats://set:4222"
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    assert nats_url_of("") == "nats://set:4222"


def test_the_bus_of_one_cluster_is_never_asked_about_another(monkeypatch: pytest.MonkeyPatch, state: Path):
    remember(state)
    monkeypatch.setenv("KUBECONFIG", str(state / "kubeconfig"))
    assert nats_url_of("") == ""


CONTEXTS = """
current-context: a
clusters: [{name: c, cluster: {server: "https://c:6443"}}]
contexts: [{name: a, context: {cluster: c, namespace: shop}}, {name: b, context: {cluster: c}}]
"""


@pytest.mark.parametrize(
    ("option", "context", "expected"),
    [
        pytest.param("", "", "shop", id="of the current context"),
        pytest.param("", "b", "default", id="a context without one"),
        pytest.param("bar", "", "bar", id="the option wins"),
        pytest.param("", "nowhere", "default", id="no such context: others complain"),
    ],
)
def test_namespace(tmp_path: Path, option: str, context: str, expected: str):
    (tmp_path / "config").write_text(CONTEXTS)
    assert namespace_of(option, Target(str(tmp_path / "config"), context)) == expected


def test_run_names_the_broken_field_of_a_kubeconfig(tmp_path: Path):
    (tmp_path / "config").write_text(CONTEXTS.replace("https://c:6443", "c:6443"))
    result = CliRunner().invoke(main, ["run", "watcher", "--kubeconfig", str(tmp_path / "config")])
    assert result.exit_code == 1
    assert (
        result.output == f"Error: kubeconfig {tmp_path}/config: clusters[c].server: 'c:6443' is no http or https URL\n"
    )
