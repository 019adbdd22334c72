"""How far back history goes: versions that are forgotten, and bookmarks that say how far a watch is."""

import asyncio

import pytest

from flotilla_common.api.resources import CONFIG_MAP, LEASE
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import ApiError
from tests.simulation.contract.apiserver.bench import Bench, Play, Watched, config_map, meta, refused, version_of

FORGETTABLE = LEASE
"""The kind whose history ends where etcd's does."""

SHORT_SECONDS = 5
"""A watch that lasts so long; its bookmark comes two seconds before its end."""

TRIES = 5
"""Watches until there was a bookmark: a slow apiserver may miss the moment."""


def lease(name: str) -> Json:
    """Nobody's lease."""
    return {"metadata": {"name": name}, "spec": {}}


async def expired(bench: Bench, since: str) -> ApiError:
    """The end of a watch that begins too long ago."""
    watched = Watched()
    error = await refused(watched.follow(bench.api.watch(FORGETTABLE, since, namespace=bench.namespace, timeout=10)))
    assert watched.bookmarks == [since]  # it was accepted, and ended in mid-stream
    assert watched.events == []
    return error


class HistoryContract:
    def test_a_watch_of_what_is_forgotten_ends_in_mid_stream(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            since = await bench.version()
            for name in "ab":
                await bench.create(FORGETTABLE, lease(name))
            await bench.forget()
            error = await expired(bench, since)
            assert (error.code, error.reason) == (410, "Expired")

        play(scene)

    def test_a_list_that_began_before_what_is_forgotten_is_over(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            for name in "abc":
                await bench.create(FORGETTABLE, lease(name))
            page = await bench.api.list(FORGETTABLE, bench.namespace, limit=1)
            await bench.create(FORGETTABLE, lease("d"))
            await bench.forget()
            error = await refused(bench.api.list(FORGETTABLE, bench.namespace, limit=1, token=page.next_token))
            assert (error.code, error.reason) == (410, "Expired")
            assert "inconsistent list" in error.message

        play(scene)

    def test_who_keeps_up_or_starts_over_loses_nothing(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            async with bench.watching(FORGETTABLE) as watched:
                await bench.create(FORGETTABLE, lease("a"))
                await watched.until(1)
                await bench.forget()
                await bench.create(FORGETTABLE, lease("b"))
                await watched.until(2)
            listed = await bench.api.list(FORGETTABLE, bench.namespace)
            assert len(listed.items) == 2
            async with bench.watching(FORGETTABLE, since=listed.resource_version) as again:
                await bench.create(FORGETTABLE, lease("c"))
                await again.until(1)
            assert again.told == [("ADDED", "c")]

        play(scene)

    def test_a_bookmark_says_how_far_a_watch_is(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            for number in range(TRIES):
                name, since, watched = f"a{number}", await bench.version(), Watched()
                watch = bench.api.watch(CONFIG_MAP, since, namespace=bench.namespace, timeout=SHORT_SECONDS)
                task = asyncio.create_task(watched.follow(watch))
                await bench.create(CONFIG_MAP, config_map(name))
                await task
                assert watched.told == [("ADDED", name)]
                assert watched.bookmarks[0] == since
                if len(watched.bookmarks) > 1:
                    break
            else:
                pytest.fail("no watch got a bookmark")
            assert int(watched.bookmarks[-1]) >= version_of(watched.events[0][1])
            await bench.create(CONFIG_MAP, config_map("b"))
            async with bench.watching(CONFIG_MAP, since=watched.bookmarks[-1]) as resumed:
                await resumed.until(1)
            assert [meta(document)["name"] for _, document in resumed.events] == ["b"]

        play(scene)
