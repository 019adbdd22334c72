"""Adds the sample kind as an author would: a line in the catalogue, an installed service, a view, a file of scenarios.

Where the kind then appears, it appears by itself.
"""

import sys
from pathlib import Path

import pytest

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_insight import views
from tests.sample.kind import KIND
from tests.simulation import scenarios

ENTRY_POINTS = """
[flotilla.services]
samples = tests.sample.controller:service

[flotilla.parts]
samples = tests.sample.controller:PARTS
"""


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kind:
    """Add the sample to the catalogue, with its service installed, and its view and scenarios in their folders."""
    monkeypatch.setattr(catalogue, "KINDS", (*catalogue.KINDS, KIND))
    installed = tmp_path / "flotilla_samples-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: flotilla-samples\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(Path(__file__).parent / "views")])
    monkeypatch.setattr(scenarios, "__path__", [*scenarios.__path__, str(Path(__file__).parent / "scenarios")])
    return KIND
