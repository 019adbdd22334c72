"""The cluster and the bus that a command uses."""

import os
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from flotilla_cli.connection import BusTarget, Target, _bus, bus_target_of, namespace_of, nats_url_of, target_of
from flotilla_cli.local import (
    LocalCluster,
    NotedBus,
    Ports,
    Process,
    _Note,
    _ourselves,
    boot_id,
    noted_bus,
    notes_dir,
    write_private,
)
from flotilla_cli.main import main
from flotilla_dev.cluster.state import write


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("FLOTILLA_STATE", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("FLOTILLA_NATS", raising=False)
    return tmp_path


def remember(state: Path, kubeconfig: str = "/set/kubeconfig") -> None:
    made = LocalCluster(
        kubeconfig=kubeconfig,
        nats="nats://set:4222",
        nats_creds="/set/users",
        ports=Ports(*range(1, 1 + len(Ports.__struct_fields__))),
        nats_port=4222,
        nats_monitor=8222,
        webhook_port=9876,
        services={},
        programs={},
        nodes=1,
    )
    write(state, made)


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


NOTED = NotedBus(nats_url="tls://run:4222", nats_creds="/run/users", nats_ca="/run/ca", kubeconfig="/run/kubeconfig")


def test_the_bus_of_a_run_is_known_by_its_kubeconfig_and_its_credentials_by_its_address(state: Path):
    with noted_bus(NOTED):
        assert nats_url_of("", "/run/kubeconfig") == "tls://run:4222"
        assert nats_url_of("", "/other/kubeconfig") == ""
        for url in ("tls://run:4222", "nats://other:4222"):
            found = bus_target_of(url, "")
            known = ("/run/users", "/run/ca") if url == NOTED.nats_url else ("", "")
            assert (found.nats_creds, found.nats_ca) == known
        [note] = notes_dir().iterdir()
        assert note.stat().st_mode & 0o777 == 0o600
    assert nats_url_of("", "/run/kubeconfig") == ""
    assert not list(notes_dir().iterdir())


def test_one_that_was_killed_is_not_known_and_not_noted_for_ever(state: Path):
    note = _Note(NOTED, Process("flotilla run", os.getpid(), 1, boot_id(), [], ""))  # its pid is another's now
    write_private(notes_dir() / "1.json", msgspec.json.encode(note))
    write_private(notes_dir() / "2.json", "of another release")
    assert nats_url_of("", "/run/kubeconfig") == ""
    with noted_bus(NOTED):
        assert sorted(file.name for file in notes_dir().iterdir()) == sorted(["2.json", f"{os.getpid()}.json"])


def test_of_two_for_one_cluster_neither_is_guessed(state: Path):
    second = _Note(msgspec.structs.replace(NOTED, nats_url="nats://second:4222"), _ourselves())
    write_private(notes_dir() / "1.json", msgspec.json.encode(second))
    with noted_bus(NOTED):
        assert nats_url_of("", "/run/kubeconfig") == ""
        assert bus_target_of("tls://run:4222", "").nats_creds == "/run/users"


def test_where_nothing_can_be_noted_the_bus_works_all_the_same(monkeypatch: pytest.MonkeyPatch, state: Path):
    (state / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "file"))
    with capture_logs() as log, noted_bus(NOTED):
        assert nats_url_of("", "/run/kubeconfig") == ""
    assert [line["log_level"] for line in log] == ["warning"]


def test_credentials_of_a_set_unless_others_are_given(monkeypatch: pytest.MonkeyPatch, state: Path):
    remember(state)
    assert bus_target_of("nats://set:4222", "").nats_creds == "/set/users"
    monkeypatch.setenv("FLOTILLA_NATS_CREDS", "/mine")
    monkeypatch.setenv("FLOTILLA_NATS_CA", "/my-ca")
    found = bus_target_of("nats://set:4222", "")
    assert (found.nats_creds, found.nats_ca, found.allow_open_bus) == ("/mine", "/my-ca", True)


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
        result.output
        == f"Error: kubeconfig {tmp_path}/config: clusters[c].server: 'c:6443' is not an http or https URL\n"
    )


@pytest.mark.parametrize(
    ("credentials", "api"), [("/k/reader.seed", "reader.v1"), ("/k/flotilla.seed", "$JS.API"), ("/k", "$JS.API")]
)
async def test_with_the_file_of_the_user_that_only_reads_a_command_is_that_user(credentials: str, api: str):
    bus = _bus(BusTarget("nats://127.0.0.1:1", credentials))
    assert bus.api == api
    await bus.close()
