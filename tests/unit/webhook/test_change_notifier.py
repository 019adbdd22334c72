"""Noticing changes: through bookmarks, ends of watches, and lost history."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import msgspec

from flotilla_common.api.resources import MUTATING, SECRET
from flotilla_common.kube.interface import Api, ApiError, Page, WatchEvent
from flotilla_webhook.server.rotation import ChangeNotifier
from tests.support.fake_clock import FakeClock


def event(kind: str, name: str, version: str) -> WatchEvent:
    body = {"metadata": {"name": name, "resourceVersion": version}}
    return WatchEvent(kind, msgspec.Raw(msgspec.json.encode(body)))


class Watches:
    """An apiserver whose watches are scripted; the version that each one starts from is kept."""

    def __init__(self, *scripts: list[WatchEvent] | ApiError) -> None:
        self.scripts = list(scripts)
        self.started: list[str] = []
        self.done = asyncio.Event()

    async def list(self, *_: Any, **__: Any) -> Page:
        return Page([], "100")

    async def watch(self, _: Any, version: str, **__: Any) -> AsyncGenerator[WatchEvent]:
        self.started.append(version)
        if not self.scripts:
            self.done.set()
            await asyncio.Event().wait()
        script = self.scripts.pop(0)
        if isinstance(script, ApiError):
            raise script
        for item in script:
            yield item


class NoWaiting:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_one_name_alone_is_asked_for() -> None:
    """So no right to other objects is needed."""
    asked: list[str] = []

    class Named(Watches):
        async def list(self, *_: Any, field_selector: str = "", **__: Any) -> Page:
            asked.append(field_selector)
            return Page([], "100")

        async def watch(self, _: Any, version: str, **how: Any) -> AsyncGenerator[WatchEvent]:
            asked.append(how["field_selector"])
            async for one in super().watch(_, version):
                yield one

    api = Named()
    notifier = ChangeNotifier(cast("Api", api), FakeClock(), SECRET, lambda: None, lambda _: True, "ns", only="certs")
    following = asyncio.create_task(notifier.run())
    await api.done.wait()
    following.cancel()
    assert asked == ["metadata.name=certs"] * 2


async def test_following() -> None:
    watches = Watches(
        [event("MODIFIED", "ours", "101"), event("MODIFIED", "theirs", "102"), event("BOOKMARK", "", "110")],
        ApiError(410, "Gone", "too old"),
        [event("DELETED", "ours", "111")],
    )
    clock, noticed = NoWaiting(), 0

    def notify() -> None:
        nonlocal noticed
        noticed += 1

    notifier = ChangeNotifier(
        cast("Api", watches), cast("Any", clock), MUTATING, notify, interesting=lambda name: name == "ours"
    )
    task = asyncio.create_task(notifier.run())
    await asyncio.wait_for(watches.done.wait(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert watches.started == ["100", "110", "100", "111"]
    assert noticed == 4  # at each of the two starts, and for the two events of ours
    assert clock.slept == [2.0]
