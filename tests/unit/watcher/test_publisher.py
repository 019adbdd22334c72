"""Pods on subjects that say whose they are, and what their former subjects get."""

from typing import Any, NamedTuple, cast

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.clock import SystemEntropy
from flotilla_common.kube.reflector import decode_head
from flotilla_watcher.encoder import Encoder
from flotilla_watcher.publisher import TOMBSTONE_SECONDS, ChangeSpans, Publisher
from flotilla_watcher.version_lineage import VersionLineage
from flotilla_watcher.writer import StreamWriter
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json
from tests.unit.mirror.scoped import encode, pod, subject_of

MARKER = subjects.kube_marker(POD)
OLD = "kube.v1.core.pods.shop.a"
WEB, API, FREE, EXTRAS = pod("a", 1, "web"), pod("a", 5, "api"), pod("a", 5), pod("a", 5, "web", sidecars=True)


class Put(NamedTuple):
    op: str
    subject: str
    body: dict[str, Any]
    headers: dict[str, str]
    ttl: float | None


class Written:
    """The messages of a publisher, in order, without its markers."""

    def __init__(self) -> None:
        self.puts: list[Put] = []
        self.markers: list[subjects.Marker] = []

    async def begin(self, epoch: str, marker: bytes) -> None:
        await self.mark(epoch, marker)

    async def put(self, subject: str, data: bytes, headers: dict[str, str], ttl: float | None = None) -> None:
        body: dict[str, Any] = msgspec.json.decode(data) if data else {}
        self.puts.append(Put(headers[subjects.OP], subject, body, headers, ttl))

    async def mark(self, epoch: str, marker: bytes) -> None:
        self.markers.append(msgspec.json.decode(marker, type=subjects.Marker))


class Publishing:
    """A publisher whose reflector the test plays."""

    def __init__(self, *leftover: str, resource: Resource = POD) -> None:
        self.written = Written()
        clock = FakeClock()
        self.publisher = Publisher(
            resource=resource,
            writer=cast("StreamWriter", self.written),
            encoder=Encoder(resource, 1 << 20),
            clock=clock,
            entropy=SystemEntropy(),
            report=lambda trouble: None,
            leftover_subjects={*leftover, subjects.kube_marker(resource)},
            lineage=VersionLineage("0"),
            spans=ChangeSpans(resource, clock, None),
        )

    async def relist(self, *documents: Json, version: int = 10) -> list[Put]:
        """Publish a LIST and return its messages."""
        self.written.puts.clear()
        await self.publisher.listing("pages")
        for document in documents:
            raw = encode(document)
            await self.publisher.listed(decode_head(raw).metadata, msgspec.Raw(raw))
        await self.publisher.complete(str(version))
        return self.written.puts

    async def event(self, kind: str, document: Json) -> list[Put]:
        """Publish an event and return its messages."""
        self.written.puts.clear()
        raw = encode(document)
        await self.publisher.event(kind, decode_head(raw).metadata, msgspec.Raw(raw))
        return self.written.puts


def seen(puts: list[Put]) -> list[tuple[str, str]]:
    return [(put.op, put.subject) for put in puts]


@pytest.mark.parametrize(
    ("document", "subject"),
    [
        (FREE, f"{OLD}.-.-.-"),
        (WEB, f"{OLD}.CloneSet_apps_kruise_io.51.-"),
        (EXTRAS, f"{OLD}.CloneSet_apps_kruise_io.51.sidecars"),
        (pod("a.b", 1), "kube.v1.core.pods.shop.a_b.-.-.-"),
    ],
    ids=["of nothing", "of an owner", "with extras", "with a dot"],
)
async def test_a_pod_is_published_on_the_subject_that_says_whose_it_is(document: Json, subject: str) -> None:
    assert subject_of(document) == subject
    listed, changed = Publishing(), Publishing()
    assert seen(await listed.relist(document)) == [("ADDED", subject)]
    await changed.relist()
    assert seen(await changed.event("ADDED", document)) == [("ADDED", subject)]
    assert seen(await changed.event("MODIFIED", document)) == [("MODIFIED", subject)]


@pytest.mark.parametrize("after", [API, FREE, EXTRAS], ids=["another owner", "no owner", "extras"])
async def test_a_pod_that_changes_its_subject_is_on_the_new_one_first(after: Json) -> None:
    publishing = Publishing()
    await publishing.relist(WEB)
    whole, moved = await publishing.event("MODIFIED", after)
    assert seen([whole, moved]) == [("MODIFIED", subject_of(after)), ("MOVED", subject_of(WEB))]
    assert "spec" in whole.body
    assert moved.body == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "shop", "uid": "u-a", "resourceVersion": "5"},
    }
    epoch = whole.headers[subjects.EPOCH]
    told = {key: moved.headers[key] for key in ("to", "rv", "uid", "epoch")}
    assert told == {"to": subject_of(after), "rv": "5", "uid": "u-a", "epoch": epoch}
    assert (whole.ttl, moved.ttl) == (None, TOMBSTONE_SECONDS)
    assert seen(await publishing.event("MODIFIED", after)) == [("MODIFIED", subject_of(after))], "it has moved once"


async def test_a_pod_may_move_back() -> None:
    publishing = Publishing()
    await publishing.relist(WEB)
    await publishing.event("MODIFIED", API)
    back = await publishing.event("MODIFIED", pod("a", 6, "web"))
    assert seen(back) == [("MODIFIED", subject_of(WEB)), ("MOVED", subject_of(API))]
    assert back[1].headers["to"] == subject_of(WEB)


async def test_a_deletion_is_published_where_the_pod_was() -> None:
    """The deleted object may show an owner of which no version was seen."""
    publishing = Publishing()
    await publishing.relist(WEB)
    (gone,) = await publishing.event("DELETED", API)
    assert (gone.op, gone.subject, gone.ttl) == ("DELETED", subject_of(WEB), TOMBSTONE_SECONDS)
    assert seen(await publishing.event("ADDED", pod("a", 9, "api", uid="next"))) == [("ADDED", subject_of(API))]
    assert seen(await publishing.relist(pod("a", 9, "api", uid="next"))) == [("ADDED", subject_of(API))]


async def test_a_pod_that_no_message_was_about_is_deleted_where_it_would_be() -> None:
    publishing = Publishing()
    await publishing.relist()
    assert seen(await publishing.event("DELETED", WEB)) == [("DELETED", subject_of(WEB))]


async def test_a_second_list_with_another_owner_moves_the_pod() -> None:
    publishing = Publishing()
    await publishing.relist(WEB, pod("gone", 2, "web"))
    puts = await publishing.relist(API, version=20)
    gone = subject_of(pod("gone", 2, "web"))
    assert seen(puts) == [("ADDED", subject_of(API)), ("MOVED", subject_of(WEB)), ("DELETED", gone)]
    assert {put.headers[subjects.EPOCH] for put in puts} == {publishing.written.markers[-1].epoch}
    assert seen(await publishing.relist(API, version=30)) == [("ADDED", subject_of(API))]


@pytest.mark.parametrize("leftover", [OLD, subject_of(WEB)], ids=["of the old layout", "of another owner"])
async def test_what_an_earlier_watcher_left_moves_if_the_pod_is_there(leftover: str) -> None:
    publishing = Publishing(leftover)
    whole, moved = await publishing.relist(FREE)
    assert seen([whole, moved]) == [("ADDED", subject_of(FREE)), ("MOVED", leftover)]
    assert (moved.headers["to"], moved.ttl) == (subject_of(FREE), TOMBSTONE_SECONDS)
    assert moved.body["metadata"]["uid"] == "u-a"
    assert seen(await publishing.relist(FREE)) == [("ADDED", subject_of(FREE))], "said once"


@pytest.mark.parametrize("leftover", [OLD, subject_of(WEB)], ids=["of the old layout", "of another owner"])
async def test_what_an_earlier_watcher_left_is_deleted_if_the_pod_is_not_there(leftover: str) -> None:
    publishing = Publishing(leftover)
    (gone,) = await publishing.relist()
    assert (gone.op, gone.subject, gone.body, gone.ttl) == ("DELETED", leftover, {}, TOMBSTONE_SECONDS)
    assert gone.headers[subjects.RV] == "10"


async def test_a_pod_that_is_where_an_earlier_watcher_left_it_gets_one_message() -> None:
    assert seen(await Publishing(subject_of(WEB)).relist(WEB)) == [("ADDED", subject_of(WEB))]


@pytest.mark.parametrize("foreign", ["kube.v1.core.pods.x", "kube.v1.core.pods.x.y.z.a.b.c.d"])
async def test_a_foreign_message_does_no_harm(foreign: str) -> None:
    puts = await Publishing(foreign).relist(WEB)
    assert seen(puts) == [("ADDED", subject_of(WEB)), ("DELETED", foreign)]


@pytest.mark.parametrize(("resource", "namespace"), [(NODE, ""), (CLONE_SET, "shop")])
async def test_other_kinds_keep_their_subjects(resource: Resource, namespace: str) -> None:
    before, after = pod("a", 1, "web", namespace=namespace), pod("a", 5, "api", namespace=namespace, sidecars=True)
    subject = subjects.kube(resource, namespace, "a")
    publishing = Publishing(resource=resource)
    assert seen(await publishing.relist(before)) == [("ADDED", subject)]
    assert seen(await publishing.event("MODIFIED", after)) == [("MODIFIED", subject)]
    assert seen(await publishing.relist()) == [("DELETED", subject)]


async def test_markers_say_the_layout_of_the_subjects() -> None:
    publishing = Publishing()
    await publishing.relist(WEB)
    publishing.publisher.state("")
    await publishing.publisher.progress("12")
    await publishing.publisher.beat()
    markers = publishing.written.markers
    assert [(marker.state, marker.layout) for marker in markers] == [
        (subjects.LISTING, subjects.LAYOUT),
        *[(subjects.SYNCED, subjects.LAYOUT)] * 3,
    ]
    old = msgspec.json.decode(b'{"epoch": "0.x", "state": "synced"}', type=subjects.Marker)
    assert old.layout < subjects.LAYOUT


async def stream(publishing: Publishing, *changes: tuple[str, Json]) -> list[Put]:
    """Publish a list in which these objects come in turn, and return its messages."""
    publishing.written.puts.clear()
    await publishing.publisher.listing("streamed")
    for kind, document in changes:
        raw = encode(document)
        take = publishing.publisher.unlisted if kind == "DELETED" else publishing.publisher.listed
        await take(decode_head(raw).metadata, msgspec.Raw(raw))
    assert [marker.state for marker in publishing.written.markers] == ["listing"], "nothing is complete yet"
    await publishing.publisher.complete("10")
    return publishing.written.puts


async def test_a_pod_that_is_deleted_within_the_list_is_not_part_of_it() -> None:
    publishing = Publishing(subject_of(WEB))
    puts = await stream(publishing, ("ADDED", WEB), ("ADDED", pod("b", 2)), ("DELETED", pod("a", 7, "web")))
    assert seen(puts) == [("ADDED", subject_of(WEB)), ("ADDED", subject_of(pod("b", 2))), ("DELETED", subject_of(WEB))]
    assert (publishing.written.markers[-1].count, publishing.written.markers[-1].rv) == (1, "10")


async def test_a_pod_that_moves_within_the_list_counts_once() -> None:
    publishing = Publishing()
    puts = await stream(publishing, ("ADDED", WEB), ("MODIFIED", API))
    assert seen(puts) == [("ADDED", subject_of(WEB)), ("ADDED", subject_of(API)), ("MOVED", subject_of(WEB))]
    assert publishing.written.markers[-1].count == 1


async def test_the_marker_waits_for_the_end_of_the_list() -> None:
    """An object that is taken out of the list says nothing about the others."""
    publishing = Publishing()
    await publishing.relist(WEB)
    publishing.publisher.state("")
    publishing.written.markers.clear()
    await publishing.publisher.listing("streamed")
    raw = encode(pod("a", 7, "web"))
    await publishing.publisher.listed(decode_head(raw).metadata, msgspec.Raw(raw))
    await publishing.publisher.unlisted(decode_head(raw).metadata, msgspec.Raw(raw))
    await publishing.publisher.beat()
    assert {marker.state for marker in publishing.written.markers} == {"listing"}


async def test_a_long_list_is_marked_while_it_makes_progress() -> None:
    publishing = Publishing()
    publisher, markers = publishing.publisher, publishing.written.markers
    await publishing.relist(WEB, pod("b", 2))
    await publisher.listing("pages")
    await publisher.beat()
    for document in (WEB, pod("b", 2)):
        raw = encode(document)
        await publisher.listed(decode_head(raw).metadata, msgspec.Raw(raw))
        await publisher.beat()
        await publisher.beat()
    await publisher.complete("20")
    shown = [(marker.state, marker.count) for marker in markers[2:]]
    assert shown == [
        (subjects.LISTING, 0),
        (subjects.LISTING, 1),
        (subjects.LISTING, 2),
        (subjects.SYNCED, 2),
    ]
