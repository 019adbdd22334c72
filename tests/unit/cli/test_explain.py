"""`flotilla explain`: the record for people, and the sentence without a record."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from flotilla_cli.commands.explain import document, explain, render
from flotilla_cli.output import plain
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.plan import Reason, State
from flotilla_insight.diagnosis.diagnose import Diagnosis, Record
from flotilla_insight.diagnosis.missing_pods import MissingPods
from flotilla_insight.diagnosis.summary import Verdict, VerdictKind
from flotilla_insight.published import Why, decoded

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
            "state": "waiting",
            "code": "WaitingForMaxUnavailable",
            "message": "maxUnavailable 2 is used by web-3, web-5",
            "objects": [],
        },
        {
            "state": "waiting",
            "code": "MinReadySeconds",
            "message": "web-4 counts as available in 12s",
            "objects": ["web-4"],
        },
    ],
    "numbers": {"replicas": 10, "maxUnavailable": 2, "updateNow": 0},
    "actions": {"create": 0, "patch": 2, "delete": 1},
    "wakeAt": "2026-05-04T12:00:12Z",
    "errors": [{"phase": "scale", "message": "exceeded quota"}],
}


PART = RECORD | {
    "kind": "ImagePullJob",
    "name": "list-a",
    "reasons": [{"state": "waiting", "code": "WaitingForNodes", "message": "1 node at work: n1", "objects": ["n1"]}],
}


META = ObjectMeta(name="web", namespace="shop", uid="u", generation=3)
IMAGE = Reason(
    State.STUCK, "ErrImagePull", "web-3, web-5: image shop:2 cannot be pulled", ("web-3", "web-5"), symptom=True
)
STUCK = Verdict(kind=VerdictKind.STUCK, sentence=IMAGE.message, causes=(IMAGE,))


def diagnosis(record: dict[str, Any] | None, *parts: dict[str, Any], **more: Any) -> Diagnosis:
    whys = [decoded(msgspec.json.encode(one), Why) for one in (record, *parts) if one is not None]
    assert all(whys)
    why, rest = (whys[0], whys[1:]) if record is not None else (None, whys)
    given = {"metadata": META, "verdict": STUCK, "reasons": why.reasons if why else (), "notes": ()} | more
    return Diagnosis(resource=CLONE_SET, record=Record(why, [one for one in rest if one]), **given)


def shown(found: Diagnosis) -> list[str]:
    return plain(render(found, NOW)).splitlines()


def test_record():
    assert plain(render(diagnosis(RECORD), NOW)) == (GOLDEN / "explain.txt").read_text(encoding="utf-8")


def test_the_parts_that_it_waits_for_say_why():
    assert shown(diagnosis(RECORD, PART))[4:7] == [
        "  • waiting: web-4 counts as available in 12s  [MinReadySeconds]",
        "    ImagePullJob list-a",
        "      • waiting: 1 node at work: n1  [WaitingForNodes]",
    ]


def test_record_without_reasons():
    record = RECORD | {"reasons": [], "errors": [], "numbers": {}, "wakeAt": None, "actions": {}}
    done = Verdict(kind=VerdictKind.DONE, sentence="nothing to wait for")
    assert shown(diagnosis(record, verdict=done)) == [
        "done: nothing to wait for",
        "CloneSet shop/web  generation 3, planned 30s ago by cloneset/a1b2c3d4e5",
        "writes planned: none",
    ]


def test_a_record_of_an_earlier_generation_is_called_so():
    behind = msgspec.structs.replace(META, generation=4)
    lines = shown(diagnosis(RECORD, metadata=behind, notes=["generation 4 is not planned yet"]))
    assert lines[1:3] == [
        "CloneSet shop/web  generation 4, generation 3 planned 30s ago by cloneset/a1b2c3d4e5",
        "  ! generation 4 is not planned yet",
    ]


def test_without_a_record_the_causes_are_told():
    assert shown(diagnosis(None, notes=["the bus does not answer"])) == [
        "stuck: web-3, web-5: image shop:2 cannot be pulled",
        "CloneSet shop/web  generation 3, no record of a plan",
        "  ! the bus does not answer",
        "  • web-3, web-5: image shop:2 cannot be pulled  [ErrImagePull]",
    ]


def test_nodes_without_a_pod_are_told_by_reason():
    few = [MissingPods("no node takes it: 0/9 nodes are available", ("n1",)), MissingPods("is tainted", ("n2", "n3"))]
    found = diagnosis(None, vacancies=few)
    assert shown(found)[3:] == [
        "nodes without a pod:",
        "  n1: no node takes it: 0/9 nodes are available",
        "  n2, n3: is tainted",
    ]
    assert document(found)["nodesWithoutPod"] == {"n1": few[0].why, "n2": "is tainted", "n3": "is tainted"}


def test_of_many_reasons_the_rest_is_counted():
    many = [MissingPods(f"reason {number}", tuple(f"n{number}-{one}" for one in range(7))) for number in range(12)]
    lines = shown(diagnosis(None, vacancies=many))[4:]
    assert (len(lines), lines[-1]) == (11, "  and 14 nodes for other reasons (-o json has all)")
    assert lines[0] == "  n0-0, n0-1, n0-2, n0-3, n0-4 and 2 more: reason 0"
    assert len(document(diagnosis(None, vacancies=many))["nodesWithoutPod"]) == 84


def test_the_document_is_the_record_and_what_was_found_out():
    found = document(diagnosis(RECORD, notes=["n"]))
    assert {name: found[name] for name in RECORD if name != "reasons"} == {
        name: value for name, value in msgspec.to_builtins(diagnosis(RECORD).record.why).items() if name != "reasons"
    }
    assert (found["verdict"], found["sentence"], found["notes"]) == ("stuck", IMAGE.message, ["n"])
    assert found["causes"] == (msgspec.to_builtins(IMAGE),)
    bare = document(diagnosis(None))
    assert (bare["kind"], bare["namespace"], bare["name"], bare["verdict"]) == ("CloneSet", "shop", "web", "stuck")


def test_record_survives_the_way_to_json_and_back():
    why = decoded(msgspec.json.encode(RECORD), Why)
    assert msgspec.json.decode(msgspec.json.encode(why)) == RECORD


@pytest.mark.parametrize("data", [b"", b"no json", b'{"generation": "x"}'], ids=["empty", "text", "wrong type"])
def test_unreadable_record_is_none(data: bytes):
    assert decoded(data, Why) is None


def test_unknown_kind_names_the_known_ones():
    result = CliRunner().invoke(explain, ["clonset", "web"])
    assert result.exit_code == 2
    assert "unknown kind 'clonset'; known kinds are advancedcronjob, broadcastjob, cloneset" in result.output
