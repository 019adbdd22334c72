"""The demo's output fits into 80 columns, on a terminal and in a log."""

import io

import msgspec
import pytest
from rich.console import Console

from flotilla_dev.cluster.demo import AFTER, BEFORE, TRY_NEXT, Row, Rows, comparison, shown, table

WIDTH = 80
UID = "0a1b2c3d-0000-4000-8000-000000000000"
LONGEST = Row("sample-b5w2x", UID, "node-999", "10.255.254.253", BEFORE, "sha256:old", 0, False)
"""Every field as long as it gets."""
OLD: Rows = {LONGEST.name: LONGEST}
NEW: Rows = {LONGEST.name: msgspec.structs.replace(LONGEST, image=AFTER, restarts=1, ready=True)}
NOWHERE: Rows = {LONGEST.name: Row(LONGEST.name, UID, "", "", "", "", 0, False)}


def lines(output: io.StringIO) -> list[str]:
    return output.getvalue().splitlines()


@pytest.mark.parametrize("made", [table(OLD), table(NEW), table(NOWHERE), comparison(OLD, NEW)])
def test_a_table_has_one_line_per_pod(made: object) -> None:
    output = io.StringIO()
    Console(file=output, width=WIDTH).print(made)
    assert len(lines(output)) == 2  # its head, and the pod: nothing is wrapped
    assert max(map(len, lines(output))) <= WIDTH
    assert "…" not in output.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_shown_while_pods_change_fits(terminal: bool) -> None:
    output = io.StringIO()
    console = Console(file=output, width=WIDTH, force_terminal=terminal, color_system=None)
    with shown(console, "Its image becomes nginx:mainline, in place") as show:
        for rows in (NOWHERE, OLD, NEW):
            show(rows)
    printed = [line for line in lines(output) if "\x1b" not in line]
    assert any(LONGEST.ip in line for line in printed)
    assert max(map(len, printed)) <= WIDTH


def test_what_may_be_tried_next_fits() -> None:
    assert max(map(len, TRY_NEXT.splitlines())) <= WIDTH


def test_what_was_not_kept_is_told() -> None:
    moved = {LONGEST.name: msgspec.structs.replace(NEW[LONGEST.name], node="node-1")}
    output = io.StringIO()
    Console(file=output, width=2 * WIDTH).print(comparison(OLD, moved))
    assert "node-999 → node-1" in output.getvalue()
