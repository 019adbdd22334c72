"""The command imports a verb only when it is used."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from flotilla_cli import plugins
from flotilla_cli.certificates import Authority
from flotilla_cli.commands.doctor import processes_of
from flotilla_cli.local import LocalCluster, Ports
from flotilla_cli.main import VERBS, main
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.access import write_kubeconfig
from flotilla_dev.main import main as dev

CLUSTER = LocalCluster(
    kubeconfig="/state/kubeconfig",
    nats="nats://127.0.0.1:4222",
    ports=Ports(1, 2, 3),
    nats_port=4222,
    nats_monitor=8222,
    webhook_port=9876,
    services={},
    programs={},
    nodes=1,
)


def test_help_lists_every_verb_that_exists() -> None:
    output = CliRunner().invoke(main, ["--help"]).output
    for verb in ("up", "down", "status", "run", "install", "uninstall"):
        assert f"  {verb} " in output


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_command_of_its_module(verb: str) -> None:
    assert CliRunner().invoke(main, [verb, "--help"]).output.startswith(f"Usage: main {verb} ")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no other package add anything to the command."""
    monkeypatch.setattr(plugins, "entry_points", lambda **_: ())


LOCAL = ["up", "down", "status", "node-creds", "image"]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("verb", LOCAL)
def test_a_verb_of_a_package_that_is_not_installed_names_the_package(verb: str) -> None:
    assert f"  {verb} " not in CliRunner().invoke(main, ["--help"]).output
    result = CliRunner().invoke(main, [verb, "--state", "x"])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: `flotilla {verb}` needs the package flotilla-dev, which is not installed")
    assert "scripts/setup" in result.stderr


@pytest.mark.usefixtures("alone")
def test_a_bus_of_its_own_needs_that_package(tmp_path: Path) -> None:
    kubeconfig, authority = tmp_path / "kubeconfig", Authority(tmp_path / "ca.crt", tmp_path / "ca.key")
    authority.make(SystemClock())
    write_kubeconfig(kubeconfig, "https://127.0.0.1:1", authority.certificate, {"token": "t"})
    result = CliRunner().invoke(main, ["run", "jobs", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 1
    assert "`flotilla run` without --nats" in result.stderr
    assert "flotilla-dev" in result.stderr


@pytest.mark.usefixtures("alone")
async def test_the_doctor_does_without_the_health_of_processes() -> None:
    assert await processes_of(CLUSTER, SystemClock()) == ()


def test_another_package_may_add_a_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("sail", "tests.unit.cli.test_commands:sail", plugins.COMMANDS)
    monkeypatch.setattr(plugins, "entry_points", lambda **_: (point,))
    assert "  sail" in CliRunner().invoke(main, ["--help"]).output
    assert CliRunner().invoke(main, ["sail"]).output == "ahoy\n"


@click.command()
def sail() -> None:
    """Sail away."""
    click.echo("ahoy")


def test_the_verbs_of_the_local_cluster_have_a_command_of_their_own() -> None:
    listed = CliRunner().invoke(dev, ["--help"]).output.partition("Commands:")[2]
    assert sorted(line.split()[0] for line in listed.splitlines() if line.strip()) == sorted(LOCAL)
    assert CliRunner().invoke(dev, ["status", "--help"]).output.startswith("Usage: main status ")
    assert CliRunner().invoke(dev, ["get", "--help"]).exit_code == 2


def test_an_unknown_verb_is_an_error() -> None:
    assert CliRunner().invoke(main, ["sail"]).exit_code == 2


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    result = CliRunner().invoke(main, ["install", "-o", "yaml", "--split", str(taken / "folder")])
    assert (result.exit_code, result.stderr) == (1, f"Error: {taken / 'folder'}: Not a directory\n")


def test_a_bundle_needs_its_folder_before_it_records(tmp_path: Path) -> None:
    arguments = [
        "bundle",
        "clone",
        "web",
        "-n",
        "n",
        "--nats",
        "nats://127.0.0.1:1",
        "-o",
        str(tmp_path / "no" / "file"),
    ]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        f"Error: Invalid value for --output: there is no folder {tmp_path / 'no'}",
    )


def test_help_imports_no_verb() -> None:
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom flotilla_cli.main import main\n"
        "CliRunner().invoke(main, ['--help'])\n"
        "heavy = {'aiohttp', 'rich', 'msgspec', 'yaml', 'cryptography'} & sys.modules.keys()\nprint(*heavy)"
    )
    reply = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert reply.stdout == "\n", reply.stdout + reply.stderr
