"""The command imports a verb only when it is used."""

import subprocess
import sys

from click.testing import CliRunner

from flotilla_cli.main import SHORT, VERBS, main


def test_help_lists_every_verb_that_exists() -> None:
    output = CliRunner().invoke(main, ["--help"]).output
    for verb in ("up", "down", "status", "run", "install", "uninstall"):
        assert f"  {verb} " in output


def test_every_verb_has_a_short_help() -> None:
    assert VERBS.keys() == SHORT.keys()


def test_an_unknown_verb_is_an_error() -> None:
    assert CliRunner().invoke(main, ["sail"]).exit_code == 2


def test_help_imports_no_verb() -> None:
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom flotilla_cli.main import main\n"
        "CliRunner().invoke(main, ['--help'])\n"
        "heavy = {'aiohttp', 'rich', 'msgspec', 'yaml', 'cryptography'} & sys.modules.keys()\nprint(*heavy)"
    )
    reply = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert reply.stdout == "\n", reply.stdout + reply.stderr
