"""Streaming lists: a LIST and a watch in one request."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, POD
from tests.simulation.contract.apiserver.harness import (
    Harness,
    Play,
    Watched,
    cloneset,
    config_map,
    encode,
    meta,
    pod,
    refused,
    version_of,
)
from tests.simulation.contract.apiserver.history import FORGETTABLE, lease

SHORT_SECONDS = 2


class StreamContract:
    def test_the_objects_come_first_then_the_changes(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for name in "abc":
                await harness.create(POD, pod(name))
            await harness.delete(POD, "b", {"gracePeriodSeconds": 0})
            last = meta(await harness.patch(POD, "c", {"metadata": {"labels": {"x": "1"}}}))["resourceVersion"]
            async with harness.streaming(POD) as watched:
                await watched.until_listed()
                assert watched.names == ["a", "c"]
                found = {meta(document)["name"]: document for _, document in watched.listed}
                assert meta(found["c"])["resourceVersion"] == last
                assert found["a"]["kind"] == "Pod", "items of a LIST do not say what they are, events do"
                assert int(watched.list_end) >= int(last)
                await harness.create(POD, pod("d"))
                await harness.delete(POD, "a", {"gracePeriodSeconds": 0})
                await watched.until_told("DELETED", "a")
            assert ("ADDED", "d") in watched.told
            assert min(version_of(document) for _, document in watched.events) > int(watched.list_end)

        play(exchange)

    def test_a_list_shows_every_earlier_write(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for number in range(5):
                made = await harness.create(CLONE_SET, cloneset(f"n{number}"))
                async with harness.streaming(CLONE_SET) as watched:
                    await watched.until_listed()
                assert watched.names == [f"n{one}" for one in range(number + 1)]
                assert int(watched.list_end) >= version_of(made)

        play(exchange)

    def test_a_list_of_nothing_ends(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            before = int(await harness.version())
            async with harness.streaming(POD) as watched:
                await watched.until_listed()
            assert watched.listed == []
            assert int(watched.list_end) >= before

        play(exchange)

    def test_a_watch_resumes_from_the_end_of_the_list(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(CLONE_SET, cloneset("a"))
            async with harness.streaming(CLONE_SET) as watched:
                await watched.until_listed()
            await harness.create(CLONE_SET, cloneset("b"))
            async with harness.watching(CLONE_SET, since=watched.list_end) as resumed:
                await resumed.until(1)
            assert resumed.told == [("ADDED", "b")]

        play(exchange)

    def test_objects_of_one_name_in_all_namespaces(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            name = f"stream-of-{harness.namespace}"
            await harness.create(CONFIG_MAP, config_map("other"))
            await harness.create(CONFIG_MAP, config_map(name))
            await harness.api.create(CONFIG_MAP, "default", encode(config_map(name)))
            async with harness.streaming(CONFIG_MAP, name=name) as watched:
                await watched.until_listed()
                assert watched.names == [name, name]
                await harness.create(CONFIG_MAP, config_map("another"))
                await harness.delete(CONFIG_MAP, name)
                await watched.until(1)
            assert watched.told == [("DELETED", name)]

        play(exchange)

    def test_a_kind_without_a_watch_cache(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for name in "ab":
                await harness.create(FORGETTABLE, lease(name))
            await harness.forget()
            async with harness.streaming(FORGETTABLE) as watched:
                await watched.until_listed()
                assert watched.names == ["a", "b"]
                await harness.delete(FORGETTABLE, "a")
                await watched.until(1)
            assert watched.told == [("DELETED", "a")]

        play(exchange)

    def test_a_stream_ends_at_its_time(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            watched = Watched()
            await watched.follow(harness.api.stream(POD, namespace=harness.namespace, timeout=SHORT_SECONDS))
            assert watched.list_end
            assert watched.events == []

        play(exchange)

    def test_no_stream_of_a_kind_that_is_not_served(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            unknown = type(POD)("apps.kruise.io", "v1beta1", "nothings", "Nothing")
            error = await refused(Watched().follow(harness.api.stream(unknown)))
            assert error.code == 404

        play(exchange)
