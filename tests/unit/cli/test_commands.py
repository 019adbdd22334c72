"""The command imports a verb only when it is used."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from flotilla_cli.main import VERBS, main


def test_help_lists_every_verb_that_exists() -> None:
    output = CliRunner().invoke(main, ["--help"]).output
    for verb in ("up", "down", "status", "run", "install", "uninstall"):
        assert f"  {verb} " in output


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_command_of_its_module(verb: str) -> None:
    assert CliRunner().invoke(main, [verb, "--help"]).output.startswith(f"Usage: main {verb} ")


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
