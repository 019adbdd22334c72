"""LIST, then WATCH: pages, resuming, 410, a kind that is not installed, back-off. Fake time, fake apiserver."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.resources import POD
from flotilla_common.kube.interface import Api, ApiError, Page, Unreachable, WatchEvent
from flotilla_common.kube.reflector import HeadMeta, Reflector
from tests.support.fake_clock import FakeClock


def raw(name: str, version: int) -> msgspec.Raw:
    meta = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": str(version)}
    return msgspec.Raw(msgspec.json.encode({"metadata": meta}))


class FakeApi:
    """Plays the given steps: pages and errors for lists, events and errors for watches."""

    def __init__(self, lists: list[Any], watches: list[Any]) -> None:
        self.lists, self.watches = lists, watches
        self.asked: list[str] = []

    async def list(
        self, resource: object, namespace: str = "", *, field_selector: str = "", token: str = "", **_: object
    ) -> Page:
        self.asked.append(" ".join(filter(None, ("list", field_selector, token))))
        step = self.lists.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def watch(
        self, resource: object, version: str, *, namespace: str = "", field_selector: str = "", timeout: float = 0
    ) -> AsyncIterator[WatchEvent]:
        self.asked.append(" ".join(filter(None, ("watch", field_selector, version))))
        if not self.watches:
            await asyncio.Event().wait()
        for step in self.watches.pop(0):
            if isinstance(step, Exception):
                raise step
            yield step


class Record:
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.troubles: list[str] = []

    async def listing(self) -> None:
        self.steps.append("listing")

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self.steps.append(f"listed {head.name}")

    async def complete(self, version: str) -> None:
        self.steps.append(f"complete {version}")

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        self.steps.append(f"{kind} {head.name}@{head.resource_version}")

    async def progress(self, version: str) -> None:
        self.steps.append(f"progress {version}")

    def state(self, trouble: str) -> None:
        self.troubles.append(trouble)


async def play(lists: list[Any], watches: list[Any]) -> tuple[FakeApi, Record, FakeClock]:
    api, record, clock = FakeApi(lists, watches), Record(), FakeClock()
    task = asyncio.create_task(Reflector(cast("Api", api), POD, record, clock).run())
    await until(lambda: not api.lists and not api.watches)
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
        "listing", "listed a", "listed b", "complete 5", "MODIFIED a@6", "progress 9", "MODIFIED b@11",
    ]  # fmt: skip


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
    assert record.steps[-3:] == ["listing", "complete 50", "ADDED c@51"]


async def test_an_expired_page_token_starts_the_list_over() -> None:
    lists = [Page([raw("a", 1)], "5", "next"), ApiError(410, "Expired", ""), Page([raw("a", 1)], "7")]
    api, record, _ = await play(lists, [])
    assert api.asked == ["list", "list next", "list", "watch 7"]
    assert record.steps.count("listing") == 2


async def test_a_kind_that_is_not_installed_is_a_state() -> None:
    _, record, clock = await play([ApiError(404, "NotFound", "")] * 8 + [Page([], "3")], [])
    assert "waiting for CRD" in record.troubles[0]
    assert record.troubles[-1] == ""
    assert clock.sleeps == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


async def test_the_apiserver_may_ask_for_patience() -> None:
    _, record, clock = await play([ApiError(429, "TooManyRequests", "slow down", 3.0), Page([], "3")], [])
    assert "refuses" in record.troubles[0]
    assert clock.sleeps == [3.0]
