"""`flotilla node-creds` and the address that agents reach."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from flotilla_cli.local import ClusterError
from flotilla_cli.main import main
from flotilla_cli.nats_config import BusUsers
from flotilla_common.bus.credentials import read_credentials
from flotilla_common.bus.tokens import KeyPair
from flotilla_common.clock import SystemClock
from flotilla_common.settings import Settings
from flotilla_dev.embedded_bus import embedded_bus, listen_address
from flotilla_insight.services import bus_permissions


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["node-creds", *arguments])
    return result.exit_code, result.output


def test_credentials_of_a_node(tmp_path: Path) -> None:
    file, folder = tmp_path / "n1.creds", tmp_path / "bus"
    assert run("n1", "-o", str(file), "--nats-dir", str(folder)) == (0, f"{file}\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert (folder / "tls" / "ca.crt").read_text() in file.read_text()
    public = KeyPair(read_credentials(str(file)).seed or "").public
    conf = BusUsers(folder).configuration.read_text()
    assert (
        f'{{ nkey: {public}, permissions: {{ publish: {{ allow: ["report.v1.n1.>","heartbeat.v1.nodeagent.n1"] }}'
        in conf
    )


def test_new_ones_replace_the_old_ones_and_can_be_taken_back(tmp_path: Path) -> None:
    arguments = ("n1", "-o", str(tmp_path / "f"), "--nats-dir", str(tmp_path / "bus"))
    users = BusUsers(tmp_path / "bus")
    run(*arguments)
    first = users.configuration.read_text()
    run(*arguments)
    second = users.configuration.read_text()
    assert first != second
    assert second.count("report.v1.n1.>") == 1
    code, _ = run(*arguments, "--revoke")
    assert code == 0
    assert "report.v1.n1.>" not in users.configuration.read_text()
    code, output = run(*arguments, "--revoke")
    assert code == 1
    assert "has no credentials" in output


def test_a_name_that_is_no_nodes(tmp_path: Path) -> None:
    code, output = run(">", "--nats-dir", str(tmp_path))
    assert code == 1
    assert "not the name of a node" in output
    assert not list(tmp_path.iterdir())


def test_services_get_files_of_their_own(tmp_path: Path) -> None:
    users = BusUsers(tmp_path)
    users.prepare()
    before = {file.name: file.read_text() for file in users.credentials.iterdir()}
    assert set(before) == {f"{service}.seed" for service in bus_permissions()}
    users.prepare()
    assert before == {file.name: file.read_text() for file in users.credentials.iterdir()}
    private = [*users.credentials.iterdir(), users.credentials.parent, users.authority(SystemClock()).key]
    assert all(file.stat().st_mode & 0o077 == 0 for file in private)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", ("127.0.0.1", 0)),
        ("10.0.0.1:4333", ("10.0.0.1", 4333)),
        ("10.0.0.1", ("10.0.0.1", 4222)),
        (":4333", ("0.0.0.0", 4333)),
        ("[::1]:4333", ("::1", 4333)),
    ],
)
def test_listen_address(text: str, address: tuple[str, int]) -> None:
    assert listen_address(text) == address


@pytest.mark.parametrize("text", ["host:port", "host:99999"])
def test_no_address(text: str) -> None:
    with pytest.raises(ClusterError, match="HOST:PORT"):
        listen_address(text)


def test_a_taken_port_is_named_before_anything_is_started(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = Settings(nats_listen=f"127.0.0.1:{port}", nats_dir=str(tmp_path))
        refused = pytest.raises(ClusterError, match=f"Port {port} for the bus is taken .* --nats-listen")
        with refused, embedded_bus(settings, Path):
            pass
