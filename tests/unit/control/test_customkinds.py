"""Kinds that administrators name: found, followed, dropped, read one by one, and reported meanwhile.

See persistentpodstate.md §7, workloadspread.md §3.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec

from flotilla_common.api.kinds.persistentpodstate.whitelist import CustomWorkload
from flotilla_common.api.resources import Resource
from flotilla_common.control.customkinds import READ_SECONDS, CustomKinds
from flotilla_common.kube.interface import Api, ApiError, Page, WatchEvent
from flotilla_statefulset.persistentpodstate.snapshot import NumberedWorkload
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
        self.held: dict[tuple[str, str], dict[str, Any]] = {("n", "g"): OBJECT}
        self.gets: ApiError | None = None
        """The error of GET."""

    async def raw(self, method: str, path: str) -> bytes:
        self.asked.append(path)
        if self.served is None:
            raise ApiError(404, "NotFound", "no such group")
        return msgspec.json.encode({"resources": self.served})

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        if self.gets:
            raise self.gets
        try:
            return msgspec.json.encode(self.held[namespace, name])
        except KeyError:
            raise ApiError(404, "NotFound", "there is none") from None

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
        self.task: asyncio.Future[None] | None = None
        self.needed: list[tuple[str, str]] = []
        self.clock = FakeClock()
        self.kinds = CustomKinds(
            lambda: cast("Api", server),
            NumberedWorkload,
            self.clock,
            wanted=lambda: self.wanted,
            needed=lambda kind: self.needed,
            listener=lambda resource, old, new: self.heard.append((resource, new.metadata.name if new else "")),
            changed=self.changed.append,
        )

    async def work(self, until: Any = lambda: False) -> None:
        self.task = self.task or asyncio.ensure_future(self.kinds.run())
        for _ in range(200):
            await asyncio.sleep(0)
            if until():
                break
        assert not self.task.done()


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


FORBIDDEN = ApiError(403, "Forbidden", "gamesets is forbidden")


async def test_a_missing_right_is_said() -> None:
    server = Apiserver()
    server.refusal, server.gets = FORBIDDEN, ApiError(403, "Forbidden", "and may not be read")
    world = World(server, GAMES)
    world.needed = [("n", "g")]
    await world.work()
    assert list(world.kinds.tables()) == []
    assert world.kinds.trouble(KIND) == "the apiserver refuses gamesets: gamesets is forbidden; and may not be read"


async def test_those_that_matter_are_read_where_they_may_not_be_listed() -> None:
    server = Apiserver()
    server.refusal = FORBIDDEN
    world = World(server, GAMES)
    world.needed = [("n", "g"), ("n", "gone")]
    await world.work(lambda: bool(world.heard))
    ((_, table),) = world.kinds.tables()
    assert table.keys() == [("n", "g")]
    assert (world.kinds.trouble(KIND), world.changed) == ("", [KIND])
    server.held["n", "g"] = OBJECT | {
        "metadata": OBJECT["metadata"] | {"resourceVersion": "6"},
        "spec": {"replicas": 2},
    }
    await world.work(lambda: len(world.heard) > 1)
    assert world.clock.time >= READ_SECONDS
    found = table.get("n", "g")
    assert found is not None
    assert found.spec.replicas == 2
    del server.held["n", "g"]
    await world.work(lambda: len(world.heard) > 2)
    assert table.keys() == []


async def test_a_kind_is_followed_in_the_version_that_is_named() -> None:
    server = Apiserver()
    world = World(server, GAMES)
    await world.work()
    world.wanted = [CustomWorkload("games.io", "v2", "GameSet")]
    await world.work()
    ((resource, _),) = world.kinds.tables()
    assert (resource.version, server.asked) == ("v2", ["/apis/games.io/v1", "/apis/games.io/v2"])


async def test_a_kind_that_is_not_served_is_looked_for_again() -> None:
    server = Apiserver()
    server.served = None
    world = World(server, GAMES, CustomWorkload("games.io", "v1", "Arena"))
    await world.work()
    assert world.kinds.trouble(KIND) == "games.io/v1 serves no namespaced kind GameSet"
    server.served = SERVED
    await world.work()
    assert world.kinds.trouble(KIND) == ""
    assert "no namespaced kind Arena" in world.kinds.trouble(("games.io", "Arena"))
