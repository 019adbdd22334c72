"""LIST and WATCH: streamed or in pages, resuming, 410, no such kind, back-off. Fake time, fake apiserver."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from flotilla_common.api.resources import POD
from flotilla_common.api.uidranges import UidRange
from flotilla_common.kube.interface import Api, ApiError, Page, Unreachable, WatchEvent
from flotilla_common.kube.reflector import PAGES_SECONDS, STREAM_SECONDS, WATCH_SECONDS, HeadMeta, Reflector, Way
from flotilla_common.kube.watch import bookmark
from tests.support.fake_clock import FakeClock


def raw(name: str, version: int) -> msgspec.Raw:
    meta = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": str(version)}
    return msgspec.Raw(msgspec.json.encode({"metadata": meta}))


UNSUPPORTED = ApiError(422, "Invalid", "sendInitialEvents is forbidden for watch")


class FakeApi:
    """Plays the given steps: pages and errors for lists, events and errors for watches and streams.

    A step may be a function, which is called when it comes. Without streams there are no streaming lists.
    """

    def __init__(self, lists: list[Any], watches: list[Any], streams: list[Any] | None = None) -> None:
        self.lists, self.watches, self.streams = lists, watches, streams or []
        self.streaming = streams is not None
        self.asked: list[str] = []
        self.selectors: list[str] = []
        """Selectors of shards, of all requests."""
        self.ended = 0
        """Streams that were closed."""
        self.closed = 0
        """Watches that were closed."""

    async def stream(
        self,
        resource: object,
        *,
        namespace: str = "",
        field_selector: str = "",
        timeout: float = 0,
        shard_selector: str = "",
    ) -> AsyncGenerator[WatchEvent]:
        assert timeout == STREAM_SECONDS
        self.selectors.append(shard_selector)
        if not self.streaming:
            raise UNSUPPORTED
        self.asked.append(" ".join(filter(None, ("stream", field_selector))))
        try:
            async for event in self._play(self.streams):
                yield event
        finally:
            self.ended += 1

    async def list(
        self,
        resource: object,
        namespace: str = "",
        *,
        field_selector: str = "",
        token: str = "",
        shard_selector: str = "",
        **_: object,
    ) -> Page:
        self.selectors.append(shard_selector)
        self.asked.append(" ".join(filter(None, ("list", field_selector, token))))
        step = self.lists.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def watch(
        self,
        resource: object,
        version: str,
        *,
        namespace: str = "",
        field_selector: str = "",
        timeout: float = 0,
        shard_selector: str = "",
    ) -> AsyncGenerator[WatchEvent]:
        self.selectors.append(shard_selector)
        self.asked.append(" ".join(filter(None, ("watch", field_selector, version))))
        try:
            async for event in self._play(self.watches):
                yield event
        finally:
            self.closed += 1

    async def _play(self, scripts: Any) -> AsyncGenerator[WatchEvent]:
        if not scripts:
            await asyncio.Event().wait()
        for step in scripts.pop(0):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, WatchEvent):
                yield step
            else:
                step()


class Record:
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.troubles: list[str] = []

    async def listing(self, way: Way) -> None:
        self.steps.append(f"listing {way}")

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self.steps.append(f"listed {head.name}@{head.resource_version}")

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self.steps.append(f"unlisted {head.name}@{head.resource_version}")

    async def complete(self, version: str) -> None:
        self.steps.append(f"complete {version}")

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        self.steps.append(f"{kind} {head.name}@{head.resource_version}")

    async def progress(self, version: str) -> None:
        self.steps.append(f"progress {version}")

    def state(self, trouble: str) -> None:
        self.troubles.append(trouble)


async def play(
    lists: list[Any], watches: list[Any], streams: list[Any] | None = None, clock: FakeClock | None = None
) -> tuple[FakeApi, Record, FakeClock]:
    api, record, clock = FakeApi(lists, watches, streams), Record(), clock or FakeClock()
    task = asyncio.create_task(Reflector(cast("Api", api), POD, record, clock).run())
    await until(lambda: not api.lists and not api.watches and not api.streams)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return api, record, clock


async def until(check: Callable[[], bool]) -> None:
    for _ in range(200):
        await asyncio.sleep(0)
        if check():
            break
    for _ in range(20):
        await asyncio.sleep(0)


def changed(name: str, version: int, kind: str = "MODIFIED") -> WatchEvent:
    return WatchEvent(kind, raw(name, version))


async def test_pages_then_events_then_a_resumed_watch() -> None:
    lists = [Page([raw("a", 1)], "5", "next"), Page([raw("b", 2)], "5")]
    watches = [[changed("a", 6), WatchEvent("BOOKMARK", raw("", 9))], [Unreachable("broken")], [changed("b", 11)]]
    api, record, _ = await play(lists, watches)
    assert api.asked == ["list", "list next", "watch 5", "watch 9", "watch 9", "watch 11"]
    assert record.steps == [
        "listing streamed", "listing pages", "listed a@1", "listed b@2", "complete 5",
        "MODIFIED a@6", "progress 9", "MODIFIED b@11",
    ]  # fmt: skip


class Full(Record):
    """A sink that fails at its first event."""

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        raise OverflowError


async def test_a_watch_whose_events_cannot_be_taken_is_closed() -> None:
    """Its connection would stay open until the garbage collector finds it."""
    api = FakeApi([Page([raw("a", 1)], "5")], [[changed("a", 6), changed("a", 7)]])
    with pytest.raises(OverflowError):
        await Reflector(cast("Api", api), POD, Full(), FakeClock()).run()
    assert api.closed == 1


async def test_objects_of_one_name_are_asked_for_by_it() -> None:
    api, record, clock = FakeApi([Page([raw("a", 1)], "5")], [[changed("a", 6)]]), Record(), FakeClock()
    task = asyncio.create_task(Reflector(cast("Api", api), POD, record, clock, name="a").run())
    await until(lambda: len(record.steps) > 3)
    task.cancel()
    assert api.asked == ["list metadata.name=a", "watch metadata.name=a 5", "watch metadata.name=a 6"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError(410, "Expired", ""), id="forgotten"),
        pytest.param(ApiError(504, "Timeout", "Too large resource version: 5, current: 3"), id="not reached yet"),
    ],
)
async def test_a_history_that_is_not_there_is_listed_again(error: ApiError) -> None:
    lists = [Page([raw("a", 1)], "5"), Page([], "50")]
    api, record, _ = await play(lists, [[error], [changed("c", 51, "ADDED")]])
    assert api.asked[:4] == ["list", "watch 5", "list", "watch 50"]
    assert record.steps[-3:] == ["listing pages", "complete 50", "ADDED c@51"]


async def test_an_expired_page_token_starts_the_list_over() -> None:
    lists = [Page([raw("a", 1)], "5", "next"), ApiError(410, "Expired", ""), Page([raw("a", 1)], "7")]
    api, record, _ = await play(lists, [])
    assert api.asked == ["list", "list next", "list", "watch 7"]
    assert record.steps.count("listing pages") == 2


async def test_a_kind_that_is_not_installed_is_a_state() -> None:
    _, record, clock = await play([ApiError(404, "NotFound", "")] * 8 + [Page([], "3")], [])
    assert "waiting for CRD" in record.troubles[0]
    assert record.troubles[-1] == ""
    assert clock.sleeps == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


async def test_the_apiserver_may_ask_for_patience() -> None:
    _, record, clock = await play([ApiError(429, "TooManyRequests", "slow down", 3.0), Page([], "3")], [])
    assert "refuses" in record.troubles[0]
    assert clock.sleeps == [3.0]


def advance(clock: FakeClock, seconds: float) -> Callable[[], None]:
    """Return a step at which time passes."""

    def step() -> None:
        clock.time += seconds

    return step


def end(version: int) -> WatchEvent:
    """Return the bookmark that ends a list."""
    return WatchEvent("BOOKMARK", bookmark(str(version), ends_list=True))


async def test_a_streamed_list_is_followed_by_changes_and_a_resumed_watch() -> None:
    listed = [changed("a", 1, "ADDED"), changed("b", 2, "ADDED"), end(5)]
    progress = WatchEvent("BOOKMARK", raw("", 9))
    api, record, _ = await play([], [[changed("b", 11)]], [[*listed, changed("a", 6), progress]])
    assert api.asked == ["stream", "watch 9", "watch 11"]
    assert record.steps == [
        "listing streamed", "listed a@1", "listed b@2", "complete 5", "MODIFIED a@6", "progress 9", "MODIFIED b@11",
    ]  # fmt: skip
    assert record.troubles[0] == ""


async def test_changes_within_a_streamed_list_belong_to_it() -> None:
    stream = [changed("a", 1, "ADDED"), changed("b", 2, "ADDED"), changed("a", 4), changed("b", 5, "DELETED"), end(5)]
    _, record, _ = await play([], [], [stream])
    assert record.steps == ["listing streamed", "listed a@1", "listed b@2", "listed a@4", "unlisted b@5", "complete 5"]


async def test_objects_of_one_name_are_streamed_by_it() -> None:
    api, record, clock = FakeApi([], [], [[changed("a", 1, "ADDED"), end(5)]]), Record(), FakeClock()
    task = asyncio.create_task(Reflector(cast("Api", api), POD, record, clock, name="a").run())
    await until(lambda: "complete 5" in record.steps)
    task.cancel()
    assert api.asked[0] == "stream metadata.name=a"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([changed("a", 1, "ADDED")], id="ended"),
        pytest.param([changed("a", 1, "ADDED"), Unreachable("reset")], id="cut"),
        pytest.param([changed("a", 1, "ADDED"), ApiError(410, "Expired", "")], id="expired"),
        pytest.param([ApiError(504, "Timeout", "Too large resource version: 5, current: 3")], id="not reached yet"),
    ],
)
async def test_a_stream_that_breaks_within_the_list_is_no_list(broken: list[Any]) -> None:
    api, record, _ = await play([], [], [broken, [changed("a", 3, "ADDED"), end(5)]])
    assert api.asked[:2] == ["stream", "stream"]
    assert [step for step in record.steps if step.startswith("complete")] == ["complete 5"]
    assert record.steps[-3:] == ["listing streamed", "listed a@3", "complete 5"]


@pytest.mark.parametrize("error", [UNSUPPORTED, ApiError(400, "BadRequest", "unknown parameter")])
async def test_an_apiserver_without_streaming_lists_is_read_in_pages(error: ApiError) -> None:
    api, record, clock = await play([Page([raw("a", 1)], "5")], [], [[error]])
    assert api.asked == ["stream", "list", "watch 5"]
    assert record.steps == ["listing streamed", "listing pages", "listed a@1", "complete 5"]
    assert clock.sleeps == []


async def test_an_apiserver_that_ignores_the_request_is_read_in_pages() -> None:
    stream = [changed("a", 1, "ADDED"), WatchEvent("BOOKMARK", raw("", 3)), changed("b", 4, "ADDED")]
    api, record, _ = await play([Page([raw("a", 1)], "5")], [], [stream])
    assert api.asked == ["stream", "list", "watch 5"]
    assert record.steps == ["listing streamed", "listed a@1", "listing pages", "listed a@1", "complete 5"]
    assert api.ended == 1


async def test_the_refusal_is_remembered_for_a_while() -> None:
    clock = FakeClock()

    gone = ApiError(410, "Expired", "")
    watches = [[advance(clock, PAGES_SECONDS - 1), gone], [advance(clock, 2), gone]]
    api, _, _ = await play([Page([], "5"), Page([], "6")], watches, [[UNSUPPORTED], [end(7)]], clock)
    assert api.asked[:6] == ["stream", "list", "watch 5", "list", "watch 6", "stream"]


@pytest.mark.parametrize(
    "error",
    [Unreachable("cut"), ApiError(410, "Expired", ""), ApiError(504, "Timeout", "Too large resource version: 5")],
    ids=["cut", "expired", "not reached yet"],
)
async def test_streams_that_keep_breaking_give_way_to_pages(error: Exception) -> None:
    cut = [changed("a", 1, "ADDED"), error]
    api, record, _ = await play([Page([raw("a", 1)], "5")], [], [cut, cut])
    assert api.asked == ["stream", "stream", "list", "watch 5"]
    assert record.steps[-1] == "complete 5"


@pytest.mark.parametrize(
    "error",
    [Unreachable("refused", sent=False), ApiError(404, "NotFound", ""), ApiError(429, "TooManyRequests", "")],
    ids=["away", "no such kind", "too many requests"],
)
async def test_an_apiserver_that_is_away_or_refuses_says_nothing_about_streams(error: Exception) -> None:
    away = [error]
    api, record, _ = await play([], [], [away] * 5 + [[end(5)]])
    assert api.asked == ["stream"] * 6 + ["watch 5"]
    assert record.steps[-1] == "complete 5"


async def test_a_watch_that_began_with_a_list_ends_when_others_do() -> None:
    """Its timeout is that of the list."""
    clock = FakeClock()
    stream = [advance(clock, STREAM_SECONDS / 2), end(5), changed("a", 6), advance(clock, WATCH_SECONDS)]
    api, record, _ = await play([], [], [[*stream, changed("a", 7), changed("a", 8)]], clock)
    assert record.steps[-2:] == ["MODIFIED a@6", "MODIFIED a@7"]
    assert (api.ended, api.asked) == (1, ["stream", "watch 7"])


HALF = UidRange(0, 2)


def named(inside: bool) -> str:
    """Return a name whose object is in the range, or not."""
    return next(name for name in map(str, range(100)) if HALF.covers(f"u-{name}") is inside)


OURS, FOREIGN = named(True), named(False)


@pytest.mark.parametrize("streaming", [True, False])
async def test_objects_of_other_ranges_are_skipped(streaming: bool) -> None:
    """An apiserver without shards sends them all, and watches do not show that."""
    events = [changed(OURS, 6), changed(FOREIGN, 7), changed(FOREIGN, 8, "DELETED")]
    listed = [changed(OURS, 1, "ADDED"), changed(FOREIGN, 2, "ADDED"), changed(FOREIGN, 3, "DELETED"), end(5)]
    pages = [] if streaming else [Page([raw(OURS, 1), raw(FOREIGN, 2)], "5")]
    api = FakeApi(pages, [events], [listed] if streaming else None)
    record, clock = Record(), FakeClock()
    with capture_logs() as logs:
        task = asyncio.create_task(Reflector(cast("Api", api), POD, record, clock, uids=HALF).run())
        await until(lambda: not api.watches)
        task.cancel()
    way = ["listing streamed"] if streaming else ["listing streamed", "listing pages"]
    assert record.steps == [*way, f"listed {OURS}@1", "complete 5", f"MODIFIED {OURS}@6"]
    assert api.asked[-1] == "watch 8", "what was skipped is not asked for again"
    assert set(api.selectors) == {HALF.selector}
    assert [line["event"] for line in logs].count(
        "the apiserver sends objects of other shards, too; they are skipped"
    ) == 1


async def test_without_a_range_no_selector_is_sent() -> None:
    api, _, _ = await play([Page([raw("a", 1)], "5")], [[changed("a", 6)]])
    assert set(api.selectors) == {""}
