"""The wiring of a part of a running service: its tables, its wake-ups, its reads."""

import asyncio
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.meta import Model, ObjectMeta, OwnerReference
from flotilla_common.api.resources import CLAIM, NODE, POD, SECRET
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import Affiliation
from flotilla_common.control.keystate import Memory
from flotilla_common.control.report_buffer import StatusReports
from flotilla_common.control.watches import Trigger, Watch, owned
from flotilla_common.kube.interface import ApiError
from flotilla_common.node.reports import Answer, Report
from flotilla_common.node.serving import Sender
from flotilla_jobs.containerrecreate.controller import PODS, REQUESTS, Gatherer
from tests.testkit.documents import Json
from tests.unit.recreate.world import pod_document, request_document
from tests.unit.service.bench import Live

ABSENT = {CLAIM.plural: ApiError(404, "NotFound", "")}


class Thing(Model, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    size: int = 0


def thing(name: str, version: int = 1, *owners: str) -> Thing:
    references = [
        OwnerReference(api_version="apps.kruise.io/v1beta1", kind="CloneSet", name=owner, uid=f"u-{owner}")
        for owner in owners
    ]
    meta = ObjectMeta(name=name, namespace="ns", uid=f"u-{name}", resource_version=str(version))
    return Thing(metadata=msgspec.structs.replace(meta, owner_references=references))


WEB = ObjectMeta(name="web", namespace="ns", uid="u-web")


def by_size(obj: Thing) -> list[int]:
    return [obj.size]


PLAIN = Watch(CLONE_SET, Thing)
GATED = Watch(POD, Thing, owner=CLONE_SET, indexes={"size": by_size}, gate="PreDownloadImageForInPlaceUpdate")
OPTIONAL = Watch(CLAIM, Thing, optional=True)
PRIVATE = Watch(SECRET, Thing, private="daemon_config_namespace")


async def test_what_is_watched_has_the_table_of_the_mirror() -> None:
    live = Live()
    await live.live_context.watch(PLAIN)
    assert live.live_context.watched(PLAIN)
    assert live.mirror.add(CLONE_SET, Thing) is live.live_context.table(PLAIN)
    assert live.api.asked == [], "whether the cluster serves the kind is waited for later"


@pytest.mark.parametrize("on", [False, True])
async def test_a_gate_decides_what_is_watched(on: bool) -> None:
    live = Live(gates=f"{GATED.gate}={str(on).lower()}")
    await live.live_context.watch(GATED)
    assert live.live_context.watched(GATED) is on
    assert list(live.mirror.resources) == ([POD] if on else [])
    table = live.live_context.table(GATED)
    assert table is live.live_context.table(GATED)
    assert list(table.by_index("size", 0)) == list(owned(table, CLONE_SET, WEB)) == []


def synced(live: Live, *, yes: bool) -> None:
    """Let the feed of the optional kind have everything that exists, or lose touch."""
    source = live.mirror._feeds[CLAIM]._source
    source.synced = yes
    live.mirror._check_synced()


@pytest.mark.parametrize("served", [False, True])
async def test_an_optional_kind_is_waited_for_where_the_cluster_serves_it(served: bool) -> None:
    live = Live()
    live.api.errors = {} if served else ABSENT
    await live.live_context.watch(OPTIONAL)
    assert live.api.asked == [("list", "persistentvolumeclaims", "")]
    assert not live.live_context.watched(OPTIONAL)  # nothing has come yet
    assert live.mirror.waits_for(CLAIM) is served


async def test_an_optional_kind_comes_and_goes_while_the_service_runs() -> None:
    live = Live()
    live.api.errors = dict(ABSENT)
    await live.live_context.watch(OPTIONAL)
    for there in (False, True, False, True):
        synced(live, yes=there)
        assert live.live_context.watched(OPTIONAL) is there
        assert not live.mirror.waits_for(CLAIM)


async def test_who_asks_hears_of_a_kind_that_comes() -> None:
    live, heard = Live(), list[str]()
    live.api.errors = dict(ABSENT)
    await live.live_context.watch(OPTIONAL)
    live.mirror.on_served(CLAIM, lambda: heard.append("came"))
    for there, times in ((False, 0), (True, 1), (True, 1), (False, 1), (True, 2)):
        synced(live, yes=there)
        assert len(heard) == times


async def test_an_optional_kind_is_waited_for_only_once() -> None:
    live = Live()
    await live.live_context.watch(OPTIONAL)
    synced(live, yes=True)
    synced(live, yes=False)
    assert not live.mirror.waits_for(CLAIM)
    assert live.mirror.lag(CLAIM) == 0


@pytest.mark.parametrize("optional_first", [False, True])
async def test_an_optional_kind_that_another_part_watches_is_waited_for_anyway(optional_first: bool) -> None:
    live = Live()
    live.api.errors = dict(ABSENT)
    parts = [(live.another(), Watch(CLAIM, Thing)), (live.live_context, OPTIONAL)]
    for live_context, watch in reversed(parts) if optional_first else parts:
        await live_context.watch(watch)
    assert live.mirror.waits_for(CLAIM)


async def test_a_private_kind_is_read_in_the_namespace_that_the_setting_names() -> None:
    live = Live(daemon_config_namespace="copies")
    await live.live_context.watch(PRIVATE)
    await live.live_context.watch(PLAIN)
    assert [live.mirror.namespace_of(resource) for resource in live.mirror.resources] == ["copies", ""]


async def test_parts_share_tables_and_keep_their_own_indexes() -> None:
    live, other = Live(gates=f"{GATED.gate}=true"), Watch(POD, Thing, indexes={"all": lambda obj: [""]})
    another = live.another()
    await live.live_context.watch(GATED)
    await another.watch(other)
    table = live.live_context.table(GATED)
    assert another.table(other) is table
    table.apply(thing("a", 1, "web"))
    assert list(table.by_index("all", "")) == list(owned(table, CLONE_SET, WEB)) == list(table)


async def test_changes_enqueue_keys_of_the_controller_that_is_attached() -> None:
    live = Live()
    await live.live_context.watch(PLAIN)
    live.live_context.enqueue_on(
        Trigger(PLAIN, lambda old, new: [("old", old.metadata.name)] if old else [("new", "")])
    )
    live.live_context.attach(live.woken.controller)
    table = live.live_context.table(PLAIN)
    table.apply(thing("a"))
    table.apply(thing("a", 2))
    table.remove("ns", "a")
    assert live.woken.keys == [("new", ""), ("old", "a"), ("old", "a")]


async def test_what_is_not_watched_enqueues_nothing() -> None:
    live = Live(gates=f"{GATED.gate}=false")
    await live.live_context.watch(GATED)
    live.live_context.attach(live.woken.controller)
    live.live_context.enqueue_owners(GATED)
    live.live_context.table(GATED).apply(thing("a", 1, "web"))
    assert live.woken.keys == []


async def test_nothing_is_planned_before_there_is_a_controller() -> None:
    live = Live()
    with pytest.raises(RuntimeError, match="before a controller is attached"):
        live.live_context.requeue("ns", "a")
    live.live_context.attach(live.woken.controller)
    live.live_context.requeue("ns", "a")
    assert live.woken.keys == [("ns", "a")]


async def test_dependents_enqueue_their_owners_before_and_after() -> None:
    live = Live(gates=f"{GATED.gate}=true")
    await live.live_context.watch(GATED)
    await live.live_context.watch(PLAIN)
    live.live_context.attach(live.woken.controller)
    live.live_context.enqueue_owners(GATED)
    live.live_context.enqueue_owners(PLAIN)  # it has no owner that is meant
    table, keys = live.live_context.table(GATED), live.woken.keys
    table.apply(thing("a", 1, "web"))
    assert keys == [("ns", "web")]
    table.apply(thing("a", 2, "other"))
    assert sorted(keys[1:]) == [("ns", "other"), ("ns", "web")]
    table.remove("ns", "a")
    assert keys[3:] == [("ns", "other")]
    live.live_context.table(PLAIN).apply(thing("b", 1, "web"))
    assert len(keys) == 4


async def test_an_object_is_enqueued_when_it_comes_changes_and_goes() -> None:
    live = Live()
    await live.live_context.watch(PLAIN)
    live.live_context.attach(live.woken.controller)
    live.live_context.enqueue_changed(PLAIN)
    table = live.live_context.table(PLAIN)
    table.apply(thing("a"))
    table.apply(thing("a", 2))
    table.remove("ns", "a")
    assert live.woken.keys == [("ns", "a")] * 3


async def idle() -> None:
    """Let pending reads be answered."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_absence_is_asked_of_the_apiserver_once() -> None:
    live = Live()
    await live.live_context.watch(PLAIN)
    live.live_context.attach(live.woken.controller)
    live.start()
    assert not live.live_context.confirm_deleted(PLAIN, ("ns", "a"), "u-a", ("ns", "asker"))
    await idle()
    assert live.live_context.confirm_deleted(PLAIN, ("ns", "a"), "u-a", ("ns", "asker"))
    assert (live.api.asked, live.woken.keys) == ([("get", "clonesets", "ns/a")], [("ns", "asker")])


async def test_what_the_mirror_had_not_heard_of_is_taken_in() -> None:
    live = Live()
    await live.live_context.watch(PLAIN)
    live.live_context.attach(live.woken.controller)
    live.start()
    live.api.store(CLONE_SET, msgspec.json.decode(msgspec.json.encode(thing("a", 5))))
    assert not live.live_context.confirm_deleted(PLAIN, ("ns", "a"), "u-a", ("ns", "asker"))
    await idle()
    held = live.live_context.table(PLAIN).get("ns", "a")
    assert held is not None
    assert not live.live_context.confirm_deleted(PLAIN, ("ns", "a"), "u-a", ("ns", "asker"))
    assert live.woken.keys == [("ns", "asker")]


async def test_a_pod_that_cannot_be_decoded_is_not_gone_and_not_asked_for() -> None:
    live = Live()
    await live.live_context.watch(REQUESTS)
    await live.live_context.watch(PODS)
    gatherer = Gatherer(live.live_context)
    live.live_context.attach(live.woken.controller)
    broken: Json = pod_document() | {"spec": "none"}
    live.mirror.written(POD, msgspec.json.encode(broken))
    live.mirror.written(RECREATE_REQUEST, msgspec.json.encode(request_document("app")))
    for _ in range(3):
        found = gatherer.gather(("ns", "r"), Memory())
        assert found is not None
        assert (found.pod, found.pod_known) == (None, False)
        await idle()
    assert (live.api.asked, live.woken.keys) == ([], [])


class Said(Report):
    """A report on a thing's size."""

    size: int = 0


SIZES: StatusReports[Thing, Said] = StatusReports(
    kind="sizes", body=Said, absorbed=lambda obj, report, now: obj.size == report.size
)


async def test_reports_are_kept_until_they_are_written_and_then_answered() -> None:
    live = Live()
    await live.live_context.watch(PLAIN)
    table = live.live_context.table(PLAIN)
    table.apply(thing("a"))
    assert live.live_context.reported(thing("a")) is None
    live.live_context.receive(PLAIN, SIZES)
    live.live_context.attach(live.woken.controller)
    live.shards.owns = lambda namespace, name: True  # type: ignore[method-assign]
    await live.live_context.serve_reports(SIZES)
    live.bus.inbox = "_INBOX_node.n1"
    body = msgspec.json.encode(Said(uid="u-a", size=3))
    asking = asyncio.create_task(live.bus.request(subjects.report("n1", "sizes", "ns", "a"), body, 1.0))
    await idle()
    assert live.live_context.reported(thing("a")) == Said(uid="u-a", size=3)
    assert live.woken.keys == [("ns", "a")]
    table.apply(msgspec.structs.replace(thing("a", 2), size=3))
    answer = msgspec.json.decode(await asking, type=Answer)
    assert answer == Answer(accepted=True, resource_version="2")
    assert live.live_context.reported(thing("a")) is None


async def test_requests_are_heard_by_every_replica_or_by_any_one() -> None:
    live = Live()

    async def handler(sender: Sender, body: Any) -> Answer | None:
        return Answer(accepted=True, why=f"{sender.node} {sender.namespace}/{sender.name}")

    await live.live_context.answer("all", Said, handler)
    await live.live_context.answer("any", Said, handler, by_any_replica=True)
    assert [(one.subject_filter, one.queue) for one in live.bus.servers] == [
        ("report.v1.*.all.>", ""),
        ("report.v1.*.any.>", "test"),
    ]
    live.bus.inbox = "_INBOX_node.n1"
    told = await live.bus.request(subjects.report("n1", "any", "ns", "a"), b"{}", 1.0)
    assert msgspec.json.decode(told, type=Answer).why == "n1 ns/a"


async def test_reports_of_a_part_that_takes_none_are_nobodys() -> None:
    live = Live()
    await live.live_context.serve_reports(SIZES)
    assert live.bus.servers == []


async def test_what_a_part_may_read_besides() -> None:
    live = Live(gates="KruiseDaemon=false")
    live.api.store(NODE, {"metadata": {"name": "n1", "uid": "1", "resourceVersion": "1"}})
    await live.live_context.watch(nodes := Watch(NODE, Thing))
    assert b'"n1"' in await live.live_context.get(NODE, "", "n1")
    assert len(live.live_context.table(nodes)) == 0, "what is only looked at is not mirrored"
    await live.live_context.read(NODE, "", "n1")
    assert len(live.live_context.table(nodes)) == 1
    assert not live.live_context.owns("ns", "a"), "no shard is held yet"
    assert (live.live_context.gates, live.live_context.settings, live.live_context.clock) == (
        live.context.gates,
        live.context.settings,
        live.context.clock,
    )


def test_what_runs_beside_and_writes_besides_is_the_services() -> None:
    live = Live()
    live.live_context.add_task(idle)
    assert live.add_task[1:] == [idle], "after the reads of absent objects"
    assert str(live.live_context.executor(live.live_context.recorder("x"))) == "executor with recorder of x"


async def published(live: Live, op: str = "MODIFIED", body: bytes = b"", **headers: str) -> None:
    """Publish a pod as the watcher does."""
    await live.bus.ensure_stream(subjects.kube_stream(POD))
    subject = subjects.pod("ns", "web-1", Affiliation("CloneSet_apps_kruise_io", "3", "-"))
    await live.bus.publish(subject, body or msgspec.json.encode(thing("web-1", 7)), {subjects.OP: op, **headers})


async def test_an_object_that_is_not_mirrored_is_read_from_the_bus() -> None:
    live = Live()
    assert await live.live_context.newest(GATED, "ns", "web-1") is None, "there is no stream yet"
    await published(live)
    assert await live.live_context.newest(GATED, "ns", "web-1") == thing("web-1", 7)
    assert await live.live_context.newest(GATED, "ns", "web-2") is None


@pytest.mark.parametrize(
    ("op", "body", "headers"),
    [
        pytest.param("DELETED", b"", {}, id="deleted"),
        pytest.param("MODIFIED", b"", {subjects.OVERSIZE: "true"}, id="only its identity"),
        pytest.param("MODIFIED", b'{"metadata":{"name":1}}', {}, id="undecodable"),
    ],
)
async def test_what_the_bus_does_not_hold_in_full_is_not_returned(op: str, body: bytes, headers: Json) -> None:
    live = Live()
    await published(live, op, body, **headers)
    assert await live.live_context.newest(GATED, "ns", "web-1") is None
