"""The history of an apiserver: compacted versions, and bookmarks that report the progress of a watch."""

import asyncio

import pytest

from flotilla_common.api.resources import CONFIG_MAP, LEASE
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import ApiError
from tests.simulation.contract.apiserver.harness import Harness, Play, Watched, config_map, meta, refused, version_of

FORGETTABLE = LEASE
"""The kind whose history ends where etcd's does."""

SHORT_SECONDS = 5
"""Seconds of a short watch; its bookmark comes two seconds before its end."""

TRIES = 5
"""Watches until there was a bookmark: a slow apiserver may miss the moment."""


def lease(name: str) -> Json:
    """Nobody's lease."""
    return {"metadata": {"name": name}, "spec": {}}


async def expired(harness: Harness, since: str) -> ApiError:
    """Return the error of a watch that begins too long ago."""
    watched = Watched()
    error = await refused(
        watched.follow(harness.api.watch(FORGETTABLE, since, namespace=harness.namespace, timeout=10))
    )
    assert watched.bookmarks == [since]  # it was accepted, and ended in mid-stream
    assert watched.events == []
    return error


class HistoryContract:
    def test_a_watch_of_what_is_forgotten_ends_in_mid_stream(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            since = await harness.version()
            for name in "ab":
                await harness.create(FORGETTABLE, lease(name))
            await harness.forget()
            error = await expired(harness, since)
            assert (error.code, error.reason) == (410, "Expired")

        play(exchange)

    def test_a_list_that_began_before_what_is_forgotten_is_over(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for name in "abc":
                await harness.create(FORGETTABLE, lease(name))
            page = await harness.api.list(FORGETTABLE, harness.namespace, limit=1)
            await harness.create(FORGETTABLE, lease("d"))
            await harness.forget()
            error = await refused(harness.api.list(FORGETTABLE, harness.namespace, limit=1, token=page.next_token))
            assert (error.code, error.reason) == (410, "Expired")
            assert "inconsistent list" in error.message

        play(exchange)

    def test_who_keeps_up_or_starts_over_loses_nothing(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            async with harness.watching(FORGETTABLE) as watched:
                await harness.create(FORGETTABLE, lease("a"))
                await watched.until(1)
                await harness.forget()
                await harness.create(FORGETTABLE, lease("b"))
                await watched.until(2)
            listed = await harness.api.list(FORGETTABLE, harness.namespace)
            assert len(listed.items) == 2
            async with harness.watching(FORGETTABLE, since=listed.resource_version) as again:
                await harness.create(FORGETTABLE, lease("c"))
                await again.until(1)
            assert again.told == [("ADDED", "c")]

        play(exchange)

    def test_a_bookmark_says_how_far_a_watch_is(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for number in range(TRIES):
                name, since, watched = f"a{number}", await harness.version(), Watched()
                watch = harness.api.watch(CONFIG_MAP, since, namespace=harness.namespace, timeout=SHORT_SECONDS)
                task = asyncio.create_task(watched.follow(watch))
                await harness.create(CONFIG_MAP, config_map(name))
                await task
                assert watched.told == [("ADDED", name)]
                assert watched.bookmarks[0] == since
                if len(watched.bookmarks) > 1:
                    break
            else:
                pytest.fail("no watch got a bookmark")
            assert int(watched.bookmarks[-1]) >= version_of(watched.events[0][1])
            await harness.create(CONFIG_MAP, config_map("b"))
            async with harness.watching(CONFIG_MAP, since=watched.bookmarks[-1]) as resumed:
                await resumed.until(1)
            assert [meta(document)["name"] for _, document in resumed.events] == ["b"]

        play(exchange)
