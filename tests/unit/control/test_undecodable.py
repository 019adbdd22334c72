"""Reports to users about an object that does not fit its type, and the affected objects."""

import asyncio
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Journal
from flotilla_common.control.shards import Shards
from flotilla_common.live import report_undecodable
from flotilla_common.mirror.decoder import ObjectDecoder, Undecodable
from flotilla_common.mirror.table import Table
from tests.unit.control.fakes import ManualClock, NoChance, ScriptedApi, SilentBus


def body(spec: Any = None, status: Any = None, **metadata: Any) -> bytes:
    meta = {"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "5", **metadata}
    return msgspec.json.encode({"metadata": meta, "spec": spec or {}, "status": status or {}})


def rolling(**members: Any) -> dict[str, Any]:
    return {"updateStrategy": {"rollingUpdate": members}}


READABLE = [
    pytest.param(rolling(partition="12", maxUnavailable="100%", maxSurge=0), id="numbers as text"),
    pytest.param(rolling(partition=2**63), id="huge number"),
    pytest.param(rolling(partition=None, maxUnavailable=None), id="null int-or-string"),
    pytest.param({"template": None, "lifecycle": None, "progressDeadlineSeconds": None}, id="null members"),
    pytest.param({"template": {"spec": {"containers": None, "x": 1e400}}}, id="anything in the template"),
    pytest.param({"volumeClaimTemplates": [None, 3, {}]}, id="anything as claim templates"),
    pytest.param({"unknown": {"of": ["newer", "versions"]}}, id="unknown members"),
]
UNREADABLE = [
    pytest.param({"replicas": "two"}, {}, "$.spec.replicas", id="text for a number"),
    pytest.param({"updateStrategy": []}, {}, "$.spec.updateStrategy", id="list for an object"),
    pytest.param({"scaleStrategy": {"podsToDelete": [1]}}, {}, "podsToDelete[0]", id="number for a name"),
    pytest.param(rolling(partition=1.5), {}, "$.spec.updateStrategy.rollingUpdate.partition", id="fraction"),
    pytest.param(
        {},
        {"conditions": [{"type": "X", "lastTransitionTime": "0000-01-01T00:00:00Z"}]},
        "$.status.conditions[0].lastTransitionTime",
        id="year 0: passes the schema",
    ),
]


def door() -> tuple[ObjectDecoder[CloneSet], list[Undecodable]]:
    made, undecodable = ObjectDecoder(CLONE_SET, CloneSet, Table[CloneSet]()), list[Undecodable]()
    made.listen(undecodable.append)
    return made, undecodable


@pytest.mark.parametrize("spec", READABLE)
def test_what_can_be_read(spec: dict[str, Any]) -> None:
    entry, undecodable = door()
    assert entry.take(body(spec).replace(b"Infinity", b"1e400")) is not None
    assert undecodable == []


@pytest.mark.parametrize(("spec", "status", "field"), UNREADABLE)
def test_what_cannot_names_the_field(spec: dict[str, Any], status: dict[str, Any], field: str) -> None:
    entry, undecodable = door()
    assert entry.take(body(spec, status)) is None
    assert field in undecodable[0].error
    assert entry.take(body(resourceVersion="6")) is not None
    assert entry.undecodable == {}


UNREADABLE = Undecodable(
    resource=CLONE_SET,
    namespace="default",
    name="web",
    uid="u1",
    version="5",
    error="Expected `int`, got `str` - at `$.spec.replicas`",
)


async def report(*, leading: bool) -> tuple[ScriptedApi, SilentBus]:
    api, clock, bus = ScriptedApi(), ManualClock(), SilentBus()
    shards = Shards(api=api, clock=clock, service="t", namespace="s", identity="r")
    if leading:
        await shards.tick()
        await asyncio.gather(*([shards._taking] if shards._taking else []))
    recorder = Recorder(api, clock, NoChance(), "cloneset-controller")
    report_undecodable(UNREADABLE, recorder, Journal(bus, clock, "cloneset", "r"), shards)  # type: ignore[arg-type]
    await recorder.flush()
    return api, bus


async def test_the_event_and_the_reason() -> None:
    api, bus = await report(leading=True)
    event = next(body for _, _, body in api.requests if body.get("kind") == "Event")
    assert (event["type"], event["reason"], event["source"]) == (
        "Warning",
        "Undecodable",
        {"component": "cloneset-controller"},
    )
    assert "$.spec.replicas" in str(event["message"])
    subject, why = bus.published[0]
    assert subject == "why.v1.clonesets.default.web"
    assert [(reason["code"], "$.spec.replicas" in reason["message"]) for reason in why["reasons"]] == [  # type: ignore[attr-defined]
        ("Undecodable", True)
    ]


async def test_only_the_replica_that_serves_the_object_speaks() -> None:
    api, bus = await report(leading=False)
    assert (api.requests, bus.published) == ([], [])


def test_what_a_list_lacks_is_forgotten() -> None:
    entry, _ = door()
    bad = {"replicas": "two"}
    entry.take(body(bad, uid="listed"))
    entry.take(body(bad, uid="newer", resourceVersion="9"))
    entry.take(body(bad, uid="gone"))
    entry.forget_unlisted({"listed"}, 8)
    assert entry.undecodable.keys() == {"listed", "newer"}
