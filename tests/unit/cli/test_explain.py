"""`flotilla explain`: the record for people, and the sentence when there is none."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from flotilla_cli.explain import explain, render
from flotilla_cli.plain import plain
from flotilla_cli.tree.why import decode_why

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
RECORD = {
    "kind": "CloneSet",
    "namespace": "shop",
    "name": "web",
    "uid": "u",
    "resourceVersion": "9",
    "generation": 3,
    "at": "2026-05-04T11:59:30Z",
    "service": "cloneset",
    "replica": "a1b2c3d4e5",
    "trace": "t",
    "reasons": [
        {
            "code": "WaitingForMaxUnavailable",
            "message": "waiting: maxUnavailable 2 is used by web-3, web-5",
            "objects": [],
        },
        {"code": "MinReadySeconds", "message": "web-4 counts as available in 12s", "objects": ["web-4"]},
    ],
    "numbers": {"replicas": 10, "maxUnavailable": 2, "updateNow": 0},
    "actions": {"create": 0, "patch": 2, "delete": 1},
    "wakeAt": "2026-05-04T12:00:12Z",
    "errors": [{"phase": "scale", "message": "exceeded quota"}],
}


PART = RECORD | {
    "kind": "ImagePullJob",
    "name": "list-a",
    "reasons": [{"code": "WaitingForNodes", "message": "waiting: 1 node at work: n1", "objects": ["n1"]}],
}


def test_record():
    why = decode_why(msgspec.json.encode(RECORD))
    assert why is not None
    assert plain(render(why, NOW)) == (GOLDEN / "explain.txt").read_text(encoding="utf-8")


def test_the_parts_that_it_waits_for_say_why():
    why, part = decode_why(msgspec.json.encode(RECORD)), decode_why(msgspec.json.encode(PART))
    assert why is not None
    assert part is not None
    lines = plain(render(why, NOW, [part])).splitlines()
    assert lines[2:5] == [
        "  • web-4 counts as available in 12s  [MinReadySeconds]",
        "    ImagePullJob list-a",
        "      • waiting: 1 node at work: n1  [WaitingForNodes]",
    ]


def test_record_without_reasons():
    why = decode_why(
        msgspec.json.encode(RECORD | {"reasons": [], "errors": [], "numbers": {}, "wakeAt": None, "actions": {}})
    )
    assert why is not None
    assert plain(render(why, NOW)).splitlines()[1:] == ["nothing to wait for", "writes planned: none"]


def test_record_survives_the_way_to_json_and_back():
    why = decode_why(msgspec.json.encode(RECORD))
    assert msgspec.json.decode(msgspec.json.encode(why)) == RECORD


@pytest.mark.parametrize("data", [b"", b"no json", b'{"generation": "x"}'], ids=["empty", "text", "wrong type"])
def test_unreadable_record_is_none(data: bytes):
    assert decode_why(data) is None


def test_no_bus_is_said_plainly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("FLOTILLA_STATE", str(tmp_path))
    monkeypatch.delenv("FLOTILLA_NATS", raising=False)
    result = CliRunner().invoke(explain, ["cloneset", "web"])
    assert result.exit_code == 1
    assert "no bus is known for this cluster: give --nats URL" in result.output


def test_unknown_kind_names_the_known_ones():
    result = CliRunner().invoke(explain, ["clonset", "web"])
    assert result.exit_code == 2
    assert "there is no kind 'clonset'; there are cloneset" in result.output
