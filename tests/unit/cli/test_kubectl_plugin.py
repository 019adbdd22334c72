"""`kubectl flotilla`: the name in its help, and its completions for kubectl."""

import sys

import pytest

from flotilla_cli import kubectl_plugin
from flotilla_cli.kubectl_plugin import completions

COMPLETED = [
    pytest.param(["ex"], ["explain"], ":4", id="a verb"),
    pytest.param(["get", "clone"], ["cloneset", "clone"], ":4", id="a kind"),
    pytest.param(["get", "clone", "--kubec"], ["--kubeconfig"], ":4", id="an option"),
    pytest.param(["explain", "clone", ""], [], ":4", id="a name, which only the cluster knows"),
]


@pytest.mark.parametrize(("arguments", "words", "directive"), COMPLETED)
def test_what_kubectl_completes(arguments: list[str], words: list[str], directive: str) -> None:
    *found, last = completions(arguments)
    assert [line.partition("\t")[0] for line in found] == words
    assert last == directive


def test_without_a_word_all_verbs_are_offered_with_their_help() -> None:
    assert any(line.startswith("doctor\t") for line in completions([]))


def test_it_prints_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-flotilla", "get", "ads"])
    kubectl_plugin.complete()
    assert capsys.readouterr().out == "ads\n:4\n"


def test_help_and_version_have_the_name_that_users_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, start in (
        (["explain", "--help"], "Usage: kubectl flotilla explain "),
        (["--version"], "kubectl flotilla, "),
    ):
        monkeypatch.setattr(sys, "argv", ["kubectl-flotilla", *arguments])
        with pytest.raises(SystemExit) as end:
            kubectl_plugin.plugin()
        assert end.value.code == 0
        assert capsys.readouterr().out.startswith(start)
