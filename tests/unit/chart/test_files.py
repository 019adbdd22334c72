"""The chart's generated parts equal the output of their generators."""

from pathlib import Path

import pytest
import yaml

from flotilla_cli.install import chart
from flotilla_common.gates import NAMES

CHART = Path(__file__).parents[3] / "helm" / "flotilla"
MADE = chart.files()


@pytest.mark.parametrize("path", MADE)
def test_a_file_is_what_the_code_makes(path: str) -> None:
    assert (CHART / path).read_text(encoding="utf-8") == MADE[path], (
        "run python -m flotilla_cli.install.chart helm/flotilla"
    )


def test_there_are_no_other_files() -> None:
    present = {path.relative_to(CHART).as_posix() for path in (CHART / chart.FOLDER).rglob("*") if path.is_file()}
    assert present == set(MADE)


def test_writing_removes_what_is_made_no_longer(tmp_path: Path) -> None:
    chart.write(tmp_path)
    stale, by_hand = tmp_path / chart.FOLDER / "crds" / "old.yaml", tmp_path / "monitoring" / "alerts.yaml"
    by_hand.parent.mkdir()
    for path in (stale, by_hand):
        path.touch()
    written = chart.write(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in written} == set(MADE)
    assert not stale.exists()
    assert by_hand.exists()


def test_every_gate_is_declared_once() -> None:
    stages = yaml.safe_load(MADE["files/services.yaml"])["gates"].values()
    declared = [gate for stage in stages for gate in (*stage["enabled"], *stage["disabled"])]
    assert sorted(declared) == sorted(NAMES)


def test_the_entries_for_pods_are_the_webhooks_own_business() -> None:
    assert "mpod" not in MADE["files/webhooks.yaml"]
