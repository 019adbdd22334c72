"""Planning away from the service: what a gatherer gets in the place of a cluster."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.plan import ObjectRef, Plan
from flotilla_common.control.replay_controller import Planning, ReplayController
from flotilla_common.control.report_buffer import StatusReports
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch, owned
from flotilla_common.kube.interface import Unreachable
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Report
from flotilla_common.node.serving import Sender
from tests.support.fake_clock import FakeClock
from tests.unit.control.fakes import Thing

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("ns", "web")
GATE = "PreDownloadImageForInPlaceUpdate"
SETS = Watch(CLONE_SET, Thing)
PODS = Watch(POD, Thing, owner=CLONE_SET, gate=GATE)
NODES = Watch(NODE, Thing, optional=True)
HERE = Sender("n1", *KEY)


class Options(msgspec.Struct, frozen=True):
    size: int = 1


class Said(Report):
    """The kind that the object has now, as a report."""

    kind: str = ""


REPORTS: StatusReports[Thing, Said] = StatusReports(
    kind="sets",
    body=Said,
    absorbed=lambda obj, report, now: obj.kind == report.kind,
    refusal=lambda sender, report: "" if sender.node == "n1" else "not yours",
    problem=lambda obj, sender, report: "" if report.kind else "no kind",
)


class Snap(msgspec.Struct, frozen=True):
    subject: ObjectRef
    reported: Report | None
    owned: int
    options: Options | None


class Gatherer:
    """Keeps its context for tests to look at."""

    def __init__(self, context: ControllerContext, options: Options | None) -> None:
        self.context = context
        self.options = options
        self.sets, self.pods = context.table(SETS), context.table(PODS)
        context.add_task(_never)

    def keys(self) -> list[Key]:
        return []

    def gather(self, key: Key, memory: Memory) -> Snap | None:
        found = self.sets.get(*key)
        if found is None:
            return None
        return Snap(
            subject=ObjectRef.of(CLONE_SET, found.metadata),
            reported=self.context.reported(found),
            owned=len(owned(self.pods, CLONE_SET, found.metadata)),
            options=self.options,
        )


async def _never() -> None:
    raise AssertionError("nothing runs beside a plan that is made again")


class Tables:
    """Plain tables by resource."""

    def __init__(self) -> None:
        self.made: dict[Any, Table[Any]] = {}

    def add(self, resource: Any, kind: type[Any], indexes: Any) -> Table[Any]:
        return self.made.setdefault(resource, Table[Any](indexes))


class Bench:
    """A controller whose plans record its snapshots."""

    def __init__(self, planning: Planning | None = None, **members: Any) -> None:
        self.snaps: list[Snap] = []
        self.gatherers: list[Gatherer] = []
        declared: ControllerSpec[Snap, Any] = ControllerSpec(
            name="sets",
            primary=SETS,
            watches=(PODS, NODES),
            reports=REPORTS,
            workers=lambda settings: 1,
            build=self._build,
            plan=self._plan,
            **members,
        )
        self.tables = Tables()
        self.controller = ReplayController(declared, self.tables, planning or Planning(), FakeClock())

    def _build(self, context: ControllerContext, options: Any) -> Gatherer:
        self.gatherers.append(Gatherer(context, options))
        return self.gatherers[-1]

    def _plan(self, snapshot: Snap, now: datetime) -> Plan:
        self.snaps.append(snapshot)
        if snapshot.reported is not None and snapshot.reported.resource_version == "bad":
            raise ValueError("unheard of")
        return Plan(numbers={"owned": snapshot.owned})

    @property
    def context(self) -> ControllerContext:
        return self.gatherers[0].context

    def put(self, version: int = 1, kind: str = "") -> None:
        meta = {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
        self.tables.made[CLONE_SET].apply(msgspec.convert({"kind": kind, "metadata": meta}, Thing))

    def reported(self) -> Report | None:
        assert self.controller.decide(KEY, Memory(), NOW) is not None
        return self.snaps[-1].reported


def test_a_decision_is_the_plan_with_its_object() -> None:
    bench = Bench()
    assert bench.controller.decide(KEY, Memory(), NOW) is None
    bench.put()
    decision = bench.controller.decide(KEY, Memory(), NOW)
    assert decision is not None
    assert (decision.subject.name, decision.subject.resource_version) == ("web", "1")
    assert decision.plan.numbers == {"owned": 0}


def test_a_planner_that_fails_has_decided_that() -> None:
    bench = Bench()
    bench.put()
    bench.controller.hear(HERE, {"uid": "u", "kind": "x", "resourceVersion": "bad"})
    decision = bench.controller.decide(KEY, Memory(), NOW)
    assert decision is not None
    assert [reason.code for reason in decision.plan.reasons] == ["PlanningFailed"]


def test_options_are_those_that_were_recorded() -> None:
    options = spec.Options(Options, lambda settings, version: Options())
    bench = Bench(Planning(options={"size": 7}), options=options)
    assert bench.gatherers[0].options == Options(size=7)
    assert Bench(options=options).gatherers[0].options == Options()
    assert Bench(Planning(options={"size": 7})).gatherers[0].options is None


@pytest.mark.parametrize("on", [False, True])
def test_gates_decide_what_was_watched(on: bool) -> None:
    bench = Bench(Planning(gates=f"{GATE}={str(on).lower()}"))
    assert bench.context.gates.on(GATE) is on
    assert bench.context.watched(PODS) is on
    assert bench.tables.made.keys() == {CLONE_SET, NODE} | ({POD} if on else set())
    bench.put()
    assert bench.controller.decide(KEY, Memory(), NOW) is not None
    assert list(bench.context.table(PODS)) == []


async def test_what_is_not_in_the_recording_does_not_exist() -> None:
    context = Bench().context
    assert context.confirm_deleted(SETS, KEY, "u", KEY)
    bench = Bench()
    bench.put()
    assert not bench.context.confirm_deleted(SETS, KEY, "u", KEY)
    assert bench.context.confirm_deleted(SETS, KEY, "another", KEY)
    for asked in (context.read, context.get):
        with pytest.raises(Unreachable, match="a recording has no apiserver"):
            await asked(CLONE_SET, *KEY)
    assert context.owns(*KEY)
    context.requeue(*KEY)


@pytest.mark.parametrize(
    ("sender", "body", "heard"),
    [
        pytest.param(HERE, {"uid": "u", "kind": "x"}, True, id="about the object"),
        pytest.param(HERE, {"uid": "earlier", "kind": "x"}, False, id="about a namesake"),
        pytest.param(Sender("n2", *KEY), {"uid": "u", "kind": "x"}, False, id="of a node that may not"),
        pytest.param(HERE, {"uid": "u"}, False, id="that is refused"),
        pytest.param(Sender("n1", "ns", "other"), {"uid": "u", "kind": "x"}, False, id="about another object"),
    ],
)
def test_reports_are_heard_as_the_service_heard_them(sender: Sender, body: Json, heard: bool) -> None:
    bench = Bench()
    bench.put()
    bench.controller.hear(sender, body)
    assert (bench.reported() is not None) is heard


def test_a_report_counts_until_the_object_says_it() -> None:
    bench = Bench()
    bench.put()
    bench.controller.hear(HERE, {"uid": "u", "kind": "x"})
    assert bench.reported() == Said(uid="u", kind="x")
    bench.put(2)
    assert bench.reported() is not None
    bench.put(3, kind="x")
    assert bench.reported() is None


def test_what_is_no_report_is_an_error_where_reports_are_taken() -> None:
    bench = Bench()
    with pytest.raises(msgspec.ValidationError):
        bench.controller.hear(HERE, {"kind": 5})
