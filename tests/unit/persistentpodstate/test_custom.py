"""Kinds that administrators name: found, followed, dropped, and what is said meanwhile (persistentpodstate.md §7)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec

from flotilla_common.api.kinds.persistentpodstate.whitelist import CustomWorkload
from flotilla_common.api.resources import Resource
from flotilla_common.kube.interface import Api, ApiError, Page, WatchEvent
from flotilla_statefulset.persistentpodstate.custom import CustomKinds
from tests.support.fake_clock import FakeClock

KIND = ("games.io", "GameSet")
GAMES = CustomWorkload("games.io", "v1", "GameSet")
SERVED = [
    {"name": "gamesets/status", "kind": "GameSet", "namespaced": True},
    {"name": "gamesets", "kind": "GameSet", "namespaced": True},
    {"name": "arenas", "kind": "Arena", "namespaced": False},
]
OBJECT = {"metadata": {"name": "g", "namespace": "n", "uid": "1", "resourceVersion": "5"}, "spec": {"replicas": 2**40}}


class Apiserver:
    """Serves discovery and one GameSet. `refusal` is what LIST meets."""

    def __init__(self) -> None:
        self.served: list[dict[str, Any]] | None = SERVED
        self.refusal: ApiError | None = None
        self.asked: list[str] = []

    async def raw(self, method: str, path: str) -> bytes:
        self.asked.append(path)
        if self.served is None:
            raise ApiError(404, "NotFound", "no such group")
        return msgspec.json.encode({"resources": self.served})

    async def list(self, *_: Any, **__: Any) -> Page:
        if self.refusal:
            raise self.refusal
        return Page([msgspec.Raw(msgspec.json.encode(OBJECT))], "9")

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        await asyncio.Event().wait()
        yield WatchEvent("", msgspec.Raw(b"{}"))


class World:
    def __init__(self, server: Apiserver, *wanted: CustomWorkload) -> None:
        self.wanted = list(wanted)
        self.heard: list[tuple[Resource, str]] = []
        self.changed: list[tuple[str, str]] = []
        self.kinds = CustomKinds(
            lambda: cast("Api", server),
            FakeClock(),
            wanted=lambda: self.wanted,
            listener=lambda resource, old, new: self.heard.append((resource, new.metadata.name if new else "")),
            changed=self.changed.append,
        )

    async def work(self, until: Any = lambda: False) -> None:
        task = asyncio.ensure_future(self.kinds.run())
        for _ in range(200):
            await asyncio.sleep(0)
            if until():
                break
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_kind_is_found_and_followed() -> None:
    server = Apiserver()
    world = World(server, GAMES)
    await world.work()
    assert server.asked == ["/apis/games.io/v1"]
    ((resource, table),) = world.kinds.tables()
    assert resource == Resource("games.io", "v1", "gamesets", "GameSet")
    assert table.get("n", "g") is not None
    assert world.kinds.trouble(KIND) == ""
    assert world.heard == [(resource, "g")]
    assert world.changed == [KIND]


async def test_a_kind_is_dropped() -> None:
    world = World(Apiserver(), GAMES)
    await world.work(lambda: bool(world.changed) and not world.wanted.clear() and len(world.changed) > 1)
    assert list(world.kinds.tables()) == []
    assert world.changed == [KIND, KIND]
    assert "no ConfigMap names GameSet" in world.kinds.trouble(KIND)


async def test_a_missing_right_is_said() -> None:
    server = Apiserver()
    server.refusal = ApiError(403, "Forbidden", "gamesets is forbidden")
    world = World(server, GAMES)
    await world.work()
    assert list(world.kinds.tables()) == []
    assert "gamesets is forbidden" in world.kinds.trouble(KIND)


async def test_a_kind_that_is_not_served_is_looked_for_again() -> None:
    server = Apiserver()
    server.served = None
    world = World(server, GAMES, CustomWorkload("games.io", "v1", "Arena"))
    await world.work()
    assert "no such group" in world.kinds.trouble(KIND)
    server.served = SERVED
    await world.work()
    assert world.kinds.trouble(KIND) == ""
    assert "no namespaced kind Arena" in world.kinds.trouble(("games.io", "Arena"))
