"""Properties of every verb."""

import sys

import pytest
from click.testing import CliRunner

from flotilla_cli.main import main


def test_every_verb_reads_objects_that_are_nested_as_deeply_as_the_apiserver_takes(monkeypatch: pytest.MonkeyPatch):
    """One such pod must not prevent users from looking at the others."""
    limits: list[int] = []
    monkeypatch.setattr(sys, "setrecursionlimit", limits.append)
    assert CliRunner().invoke(main, ["get", "--help"]).exit_code == 0
    (limit,) = limits
    assert limit > 10_000
