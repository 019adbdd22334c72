"""The page of a pod."""

import datetime
from collections.abc import Sequence
from typing import Any

from flotilla_common.api.errors import ApiError
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import Resource
from flotilla_common.workload.causes import PodEvent
from flotilla_console.access.identity import Identity
from flotilla_console.blocks.types import Notice
from flotilla_console.page import Page
from flotilla_console.pages.pod import PodDetails, build, page, read_details
from flotilla_console.story.traffic import Traffic
from flotilla_insight.traffic import Line
from tests.support.fake_clock import START
from tests.unit.console.model.worlds import Only, World, column, table, texts

_PLACE = {"namespace": "shop", "name": "web-1"}
_CRASHED = {
    "name": "main",
    "restartCount": 2,
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
    "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "message": "starting\ndb: connection refused\n"}},
}


class Reader:
    """An apiserver with one event and one log, for those who may read them."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.error = error
        self.read: list[tuple[str, ...]] = []

    async def events(self, identity: Identity, namespace: str, uid: str) -> Sequence[PodEvent]:
        self.read.append(("events", identity.user, namespace, uid))
        if self.error is not None:
            raise self.error
        return [PodEvent(type="Warning", reason="BackOff", message="back-off restarting")]

    async def log(
        self, identity: Identity, namespace: str, name: str, container: str, *, previous: bool, lines: int
    ) -> str:
        self.read.append(("log", namespace, name, container, str(previous)))
        if self.error is not None:
            raise self.error
        return "line 1\nline 2"


class Bus:
    """A bus with one write of each object."""

    async def read(self, resource: Resource, namespace: str, name: str) -> Traffic:
        line = Line(
            at=START,
            stream="act",
            service="cloneset",
            kind=resource.kind,
            namespace=namespace,
            name=name,
            what="patch",
            cause="in-place update",
            outcome="Conflict",
            message={"outcome": "Conflict"},
        )
        return Traffic(lines=(line,), cut=2)


def _page(world: World, allowed: Any = None, read: object = None, **query: str) -> Page:
    found = build(world.request(allowed, read, query, **_PLACE))
    assert found is not None
    return found


def _world(**given: Any) -> World:
    world = World()
    world.clone_set()
    world.pod("web-1", **given)
    return world


def test_there_is_no_page_of_what_is_missing_or_hidden() -> None:
    world = _world()
    assert build(world.request(namespace="shop", name="gone")) is None
    assert build(world.request(Only(clonesets=["shop"]), **_PLACE)) is None


def test_a_pod_that_serves() -> None:
    shown = _page(_world())
    assert isinstance(shown.blocks[0], Notice)
    assert shown.blocks[0].tone == "ok"
    assert [link.text for link in shown.trail] == ["Fleet", "web"]


def test_last_words() -> None:
    shown = _page(_world(ready=False, statuses=[_CRASHED]))
    containers = table(shown, "containers-main")
    assert column(containers, "words") == ["db: connection refused"]
    assert column(containers, "ended") == ["Error, exit code 3"]
    assert column(containers, "restarts") == ["2"]
    assert "crashes with exit code 3" in texts(shown.blocks[0])


def test_logs_are_links_for_those_who_may_read_them() -> None:
    world = _world(statuses=[_CRASHED])
    found = texts(table(_page(world), "containers-main"))
    assert "/pods/shop/web-1?container=main" in found
    assert "container=main&previous=1" in found
    assert "container=main" not in texts(_page(world, Only(pods=["shop"])))


def test_readiness_gates() -> None:
    conditions = [{"type": "InPlaceUpdateReady", "status": "False", "reason": "StartInPlaceUpdate"}]
    world = _world(gates=["InPlaceUpdateReady", "example.com/lb"], conditions=conditions)
    gates = table(_page(world), "gates")
    assert column(gates, "gate") == ["InPlaceUpdateReady", "example.com/lb"]
    assert column(gates, "state") == ["False", "not set"]


def test_in_place_updates() -> None:
    state = '{"revision":"web-2","updateTimestamp":"2026-01-01T00:00:00Z","nextContainerImages":{"b":"nginx:2"}}'
    annotations = {"apps.kruise.io/inplace-update-state": state}
    assert "to web-2 at 2026-01-01T00:00:00Z, then b" in texts(_page(_world(annotations=annotations)))
    annotations = {"apps.kruise.io/inplace-update-state": "{"}
    assert "unreadable: " in texts(_page(_world(annotations=annotations)))


def test_sidecar_sets_are_links_for_those_who_may_see_them() -> None:
    world = _world(annotations={"kruise.io/sidecarset-injected-list": "logs"})
    world.put(SIDECAR_SET, "logs", "")
    assert "/workloads/apps.kruise.io/sidecarsets/-/logs" in texts(_page(world))
    assert "sidecarsets" not in texts(_page(world, Only(pods=["shop"])))


async def test_events_and_the_log_are_read_as_the_user() -> None:
    world, reader = _world(uid="uid-1"), Reader()
    request = world.request(query={"container": "main", "previous": "1"}, **_PLACE)
    details = await read_details(reader, Bus(), request)
    assert reader.read == [("events", "jane", "shop", "uid-1"), ("log", "shop", "web-1", "main", "True")]
    shown = _page(world, read=details, container="main", previous="1")
    assert column(table(shown, "events"), "reason") == ["BackOff"]
    assert "line 1\\nline 2" in texts(shown)


async def test_only_logs_of_containers_are_read() -> None:
    reader = Reader()
    details = await read_details(reader, Bus(), _world().request(query={"container": "../x"}, **_PLACE))
    assert details is not None
    assert details.log is None
    assert [what for what, *_ in reader.read] == ["events"]


async def test_nothing_is_read_about_a_hidden_pod() -> None:
    reader = Reader()
    assert await read_details(reader, Bus(), _world().request(Only(), query={"container": "main"}, **_PLACE)) is None
    assert reader.read == []


async def test_refusals_are_shown() -> None:
    world, reader = _world(), Reader(ApiError(403, "Forbidden", "pods/log is forbidden"))
    prepare = page(reader, Bus()).prepare
    assert prepare is not None
    details = await prepare(world.request(query={"container": "main"}, **_PLACE))
    shown = texts(_page(world, read=details, container="main"))
    assert "The log of main cannot be read: pods/log is forbidden" in shown
    assert "Its events cannot be read: pods/log is forbidden" in shown


def test_an_empty_log() -> None:
    assert "The log is empty." in texts(_page(_world(), read=PodDetails(log=""), container="main"))


def test_events_explain_the_pod() -> None:
    event = PodEvent(
        type="Warning",
        reason="FailedScheduling",
        message="0/3 nodes are available",
        last_timestamp=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    )
    world = _world(node="", phase="Pending", statuses=[], conditions=[])
    assert "0/3 nodes are available" in texts(_page(world, read=PodDetails(events=[event])).blocks[0])


async def test_messages_on_the_bus_are_shown() -> None:
    world = _world()
    details = await read_details(Reader(), Bus(), world.request(**_PLACE))
    found = table(_page(world, read=details), "traffic")
    assert (column(found, "service"), column(found, "cause")) == (["cloneset"], ["in-place update"])
    assert found.rows[0].tone == "bad"
    assert "without 2 older ones" in found.caption
    failed = PodDetails(traffic=Traffic(error="the messages could not be read: no responders"))
    assert "Not all is shown: the messages could not be read: no responders." in texts(_page(world, read=failed))
