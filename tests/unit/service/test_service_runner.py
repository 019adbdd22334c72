"""A service made of parts: those that run, the reports about the others, and a controller's inputs."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from flotilla_common import installed
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import CLAIM, NODE, POD, REVISION, SECRET
from flotilla_common.control import spec
from flotilla_common.control.controller import Controller
from flotilla_common.control.controller_context import ControllerContext, ResponderContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.plan import ObjectRef, Plan
from flotilla_common.control.replay_controller import Planning
from flotilla_common.control.report_buffer import StatusReports
from flotilla_common.control.spec import Component, ControllerSpec, Responder
from flotilla_common.control.watches import Watch
from flotilla_common.gates import Gates
from flotilla_common.node.reports import Report
from flotilla_common.service_runner import ServiceRunner, controller_service
from flotilla_common.settings import Settings
from tests.support.fake_bus import FakeBus
from tests.unit.service.bench import FakeApi, context


class Thing(Model, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    size: int = 0


class Snap(msgspec.Struct, frozen=True):
    subject: ObjectRef


class Options(msgspec.Struct, frozen=True):
    version: str = ""
    shards: int = 0


SETS = Watch(CLONE_SET, Thing, writes=("patch",))


class Gatherer:
    """A gatherer that returns the existing objects."""

    def __init__(self, live_context: ControllerContext, options: Options | None) -> None:
        self.options = options
        self.table = live_context.table(SETS)

    def keys(self) -> list[Key]:
        return [(one.metadata.namespace, one.metadata.name) for one in self.table]

    def gather(self, key: Key, memory: Memory) -> Snap | None:
        found = self.table.get(*key)
        return None if found is None else Snap(ObjectRef.of(CLONE_SET, found.metadata))


PARTS: dict[str, Any] = {
    "name": "sets",
    "primary": SETS,
    "workers": 2,
    "build": Gatherer,
    "plan": lambda snapshot, now: Plan(),
}
SPEC: ControllerSpec[Snap, Any] = ControllerSpec(**PARTS)
READS = (
    Watch(POD, Thing, owner=CLONE_SET, writes=("create",)),
    Watch(CLAIM, Thing, subresources=("status",)),
    Watch(REVISION, Thing, writes=("patch",), conditional=True),
    Watch(NODE, Thing),
    Watch(SECRET, Thing, writes=("delete",), private="daemon_config_namespace"),
)


def body(name: str, version: int = 1, size: object = 0) -> bytes:
    meta = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": str(version)}
    return msgspec.json.encode({"metadata": meta, "size": size})


def responder(off: str = "") -> tuple[Responder, list[ResponderContext]]:
    built: list[ResponderContext] = []

    async def build(answering: ResponderContext) -> None:
        built.append(answering)

    return Responder(name="server", answers=("asks",), off=lambda settings, gates: off, build=build), built


async def served(*parts: Component, api: FakeApi | None = None, **settings: Any) -> ServiceRunner:
    runner = ServiceRunner(context(api or FakeApi(), **settings))
    for part in parts:
        await runner.serve(part)
    return runner


def controller_of(runner: ServiceRunner) -> Controller[Any]:
    (one,) = runner._served
    return one.controller


def test_a_kind_runs_if_the_setting_names_it_or_nothing() -> None:
    gates = Gates.parse("")
    assert SPEC.why_off(Settings(), gates) == SPEC.why_off(Settings(custom_resource_enable="CloneSet"), gates) == ""
    why = SPEC.why_off(Settings(custom_resource_enable="NodeImage"), gates)
    assert why == "off: CloneSet is not in CUSTOM_RESOURCE_ENABLE"
    never = msgspec.structs.replace(SPEC, off=lambda settings, gates: "off: because")
    assert never.why_off(Settings(), gates) == "off: because"


async def test_a_part_that_is_off_says_why_and_takes_no_table() -> None:
    server, built = responder(off="off: nobody asks")
    runner = await served(SPEC, server, custom_resource_enable="NodeImage")
    report = runner.context.health.report()
    assert "[+]sets off: CloneSet is not in CUSTOM_RESOURCE_ENABLE" in report
    assert "[+]server off: nobody asks" in report
    assert (list(runner.mirror.resources), built, runner._served) == ([], [], [])


async def test_a_service_of_which_nothing_runs_idles() -> None:
    api = FakeApi()
    service = controller_service("test", (SPEC,))
    given = context(api, custom_resource_enable="NodeImage")
    given.health.ready("test", ok=False, why="starting")
    running = asyncio.create_task(cast("Any", service.run(given)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not running.done()
    assert (given.health.waiting, given.vitals, api.asked) == ({}, {}, [])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_service_may_only_answer() -> None:
    server, built = responder()
    runner = await served(server, custom_resource_enable="NodeImage")
    assert len(built) == 1
    assert (runner._components, runner._served) == (1, [])


async def test_a_controller_is_made_of_its_spec() -> None:
    options = spec.Options(Options, lambda settings, version: Options(version, settings.shards))
    other = msgspec.structs.replace(
        SPEC, name="others", primary=Watch(POD, Thing), off=lambda settings, gates: "", options=options
    )
    api = FakeApi()
    runner = await served(SPEC, other, other, api=api, gates="CloneSetShortHash=true", shards=3)
    assert [one.controller.resource for one in runner._served] == [CLONE_SET, POD, POD]
    assert runner._served[0].controller._workers == 2
    assert api.asked == [("GET", "/version", "")], "asked once, and only for options"
    assert runner._planning == {
        "clonesets": Planning(gates="CloneSetShortHash=true"),
        "pods": Planning(gates="CloneSetShortHash=true", options={"version": "v1.36.0", "shards": 3}),
    }


async def hold_all(runner: ServiceRunner) -> None:
    """Let this replica serve every object."""
    runner.shards.owns = lambda namespace, name: True  # type: ignore[method-assign]


@pytest.mark.parametrize("itself", [True, False])
async def test_changes_of_objects_are_planned_unless_the_spec_says_who_else_is(itself: bool) -> None:
    runner = await served(msgspec.structs.replace(SPEC, wakes_itself=itself, watches=READS))
    await hold_all(runner)
    runner.mirror.written(CLONE_SET, body("web"))
    queue = controller_of(runner).queue
    assert len(queue) == int(itself)
    owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "other", "uid": "u-other"}
    for resource in (POD, CLAIM):
        document = msgspec.json.decode(body("a"))
        document["metadata"]["ownerReferences"] = [owner]
        runner.mirror.written(resource, msgspec.json.encode(document))
    assert len(queue) == int(itself) + 1, "only pods are said to have owners of this kind"


async def test_what_is_written_without_conditions_is_listed_before_the_first_plan() -> None:
    runner = await served(msgspec.structs.replace(SPEC, watches=READS))
    assert runner._consistent() == [CLONE_SET, POD, CLAIM, SECRET]


async def test_after_an_unknown_outcome_the_object_and_what_is_written_with_it_are_read() -> None:
    api, read = FakeApi(), list[Key]()

    async def also_read(live_context: ControllerContext, key: Key) -> None:
        read.append(key)

    off = msgspec.structs.replace(READS[1], gate="PreDownloadImageForInPlaceUpdate")
    watches = (READS[0], off, *READS[2:])
    declared = msgspec.structs.replace(SPEC, watches=watches, also_read=also_read)
    runner = await served(declared, api=api, gates="PreDownloadImageForInPlaceUpdate=false")
    await controller_of(runner)._reread(("ns", "web"))
    assert read == [("ns", "web")]
    assert api.asked == [
        ("get", "clonesets", "ns/web"),
        ("list", "pods", "ns"),
        ("list", "secrets", "kruise-daemon-config"),
    ]


async def test_nothing_is_planned_with_a_version_that_is_not_the_newest() -> None:
    runner = await served(SPEC)
    gather = controller_of(runner)._gather
    assert gather(("ns", "web"), Memory()) is None
    runner.mirror.written(CLONE_SET, body("web"))
    assert gather(("ns", "web"), Memory()) is not None
    runner.mirror.written(CLONE_SET, body("web", 2, size="big"))
    assert gather(("ns", "web"), Memory()) is None
    runner.mirror.written(CLONE_SET, body("web", 3))
    assert gather(("ns", "web"), Memory()) is not None


async def test_reports_are_served_once_the_controller_is_there() -> None:
    reports: StatusReports[Thing, Report] = StatusReports(kind="sets", body=Report, absorbed=lambda *_: True)
    runner = await served(msgspec.structs.replace(SPEC, reports=reports))
    servers = cast("FakeBus", runner.context.bus).servers
    assert [(server.subject_filter, server.queue) for server in servers] == [("report.v1.*.sets.>", "")]


def test_a_service_declares_what_its_parts_need() -> None:
    server, _ = responder()
    reports: StatusReports[Thing, Report] = StatusReports(kind="sets", body=Report, absorbed=lambda *_: True)
    service = controller_service("test", [msgspec.structs.replace(SPEC, reports=reports), server])
    assert (service.name, [part.name for part in service.components]) == ("test", ["sets", "server"])
    assert CLONE_SET in {access.resource for access in service.access}
    assert service.permissions is not None
    assert service.permissions.subscribe == ("_INBOX.test.>", "report.v1.*.sets.>", "report.v1.*.asks.>")
    assert "act.v1.test.>" in service.permissions.publish


def test_installed_services_are_made_of_the_parts_that_they_show() -> None:
    found = installed.installed_components()
    assert list(found) == sorted(found)
    assert {"cloneset", "jobs"} <= found.keys()
    for name, parts in found.items():
        assert [type(part) for part in parts if not isinstance(part, ControllerSpec | Responder)] == [], name
        names = [part.name for part in parts]
        assert len(names) == len(set(names))


def test_mirrored_is_what_is_read_over_the_bus() -> None:
    gate = "PreDownloadImageForInPlaceUpdate"
    gated = msgspec.structs.replace(SPEC, watches=(*READS, Watch(POD, Thing), Watch(NODE, Thing, gate=gate)))
    only_gated = msgspec.structs.replace(SPEC, primary=Watch(REVISION, Thing, gate=gate))
    assert list(installed.mirrored([gated])) == [CLONE_SET, POD, CLAIM, REVISION, NODE]
    assert list(installed.mirrored([only_gated])) == [REVISION]
    assert list(installed.mirrored([only_gated], Gates.parse(f"{gate}=false"))) == []
    assert list(installed.mirrored([only_gated], Gates.parse(f"{gate}=true"))) == [REVISION]
