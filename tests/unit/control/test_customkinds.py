"""Kinds that administrators name: found, followed, dropped, read one by one, and reported meanwhile.

See persistentpodstate.md §7, workloadspread.md §3.
"""

import asyncio
from typing import Any

from flotilla_common.api.kinds.persistentpodstate.types import CustomWorkload
from flotilla_common.api.resources import Resource
from flotilla_common.control.customkinds import READ_SECONDS, CustomKinds
from flotilla_common.kube.interface import ApiError
from flotilla_statefulset.persistentpodstate.snapshot import NumberedWorkload
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import metadata

KIND = ("games.io", "GameSet")
GAMES = CustomWorkload("games.io", "v1", "GameSet")
SERVED = [
    {"name": "gamesets/status", "kind": "GameSet", "namespaced": True},
    {"name": "gamesets", "kind": "GameSet", "namespaced": True},
    {"name": "arenas", "kind": "Arena", "namespaced": False},
]
OBJECT = {"metadata": metadata("g", "n", uid="1", version=1), "spec": {"replicas": 2**40}}


GAME_SETS = Resource("games.io", "v1", "gamesets", "GameSet")


def apiserver() -> FakeApi:
    """Return an apiserver with one GameSet."""
    made = FakeApi({GAME_SETS: [OBJECT]})
    for version in ("v1", "v2"):
        made.serve(f"games.io/{version}", *SERVED)
    return made


def discovered(server: FakeApi) -> list[str]:
    """Return the paths that discovery has read."""
    return [path for method, path, _ in server.asked if method == "GET"]


class World:
    def __init__(self, server: FakeApi, *wanted: CustomWorkload) -> None:
        self.wanted = list(wanted)
        self.heard: list[tuple[Resource, str]] = []
        self.changed: list[tuple[str, str]] = []
        self.task: asyncio.Future[None] | None = None
        self.needed: list[tuple[str, str]] = []
        self.clock = FakeClock()
        self.kinds = CustomKinds(
            lambda: server.api,
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
    server = apiserver()
    world = World(server, GAMES)
    await world.work()
    assert discovered(server) == ["/apis/games.io/v1"]
    ((resource, table),) = world.kinds.tables()
    assert resource == Resource("games.io", "v1", "gamesets", "GameSet")
    assert table.get("n", "g") is not None
    assert world.kinds.trouble(KIND) == ""
    assert world.heard == [(resource, "g")]
    assert world.changed == [KIND]


async def test_a_kind_is_dropped() -> None:
    world = World(apiserver(), GAMES)
    await world.work(lambda: bool(world.changed) and not world.wanted.clear() and len(world.changed) > 1)
    assert list(world.kinds.tables()) == []
    assert world.changed == [KIND, KIND]
    assert "no ConfigMap names GameSet" in world.kinds.trouble(KIND)


FORBIDDEN = ApiError(403, "Forbidden", "gamesets is forbidden")


async def test_a_missing_right_is_said() -> None:
    server = apiserver()
    server.fail_lists, server.fail_gets = FORBIDDEN, ApiError(403, "Forbidden", "and may not be read")
    world = World(server, GAMES)
    world.needed = [("n", "g")]
    await world.work()
    assert list(world.kinds.tables()) == []
    assert world.kinds.trouble(KIND) == "the apiserver refuses gamesets: gamesets is forbidden; and may not be read"


async def test_those_that_matter_are_read_where_they_may_not_be_listed() -> None:
    server = apiserver()
    server.fail_lists = FORBIDDEN
    world = World(server, GAMES)
    world.needed = [("n", "g"), ("n", "gone")]
    await world.work(lambda: bool(world.heard))
    ((_, table),) = world.kinds.tables()
    assert table.keys() == [("n", "g")]
    assert (world.kinds.trouble(KIND), world.changed) == ("", [KIND])
    server.put(GAME_SETS, {"metadata": {"name": "g", "namespace": "n", "uid": "1"}, "spec": {"replicas": 2}})
    await world.work(lambda: len(world.heard) > 1)
    assert world.clock.time >= READ_SECONDS
    found = table.get("n", "g")
    assert found is not None
    assert found.spec.replicas == 2
    server.replace_all(GAME_SETS)
    await world.work(lambda: len(world.heard) > 2)
    assert table.keys() == []


async def test_a_kind_is_followed_in_the_version_that_is_named() -> None:
    server = apiserver()
    world = World(server, GAMES)
    await world.work()
    world.wanted = [CustomWorkload("games.io", "v2", "GameSet")]
    await world.work()
    ((resource, _),) = world.kinds.tables()
    assert (resource.version, discovered(server)) == ("v2", ["/apis/games.io/v1", "/apis/games.io/v2"])


async def test_a_kind_that_is_not_served_is_looked_for_again() -> None:
    server = apiserver()
    server.discovery.clear()
    world = World(server, GAMES, CustomWorkload("games.io", "v1", "Arena"))
    await world.work()
    assert world.kinds.trouble(KIND) == "games.io/v1 serves no namespaced kind GameSet"
    server.serve("games.io/v1", *SERVED)
    await world.work()
    assert world.kinds.trouble(KIND) == ""
    assert "no namespaced kind Arena" in world.kinds.trouble(("games.io", "Arena"))
