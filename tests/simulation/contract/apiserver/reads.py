"""LIST and WATCH."""

import asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, POD
from tests.simulation.contract.apiserver.bench import (
    Bench,
    Play,
    Watched,
    cloneset,
    config_map,
    decode,
    encode,
    meta,
    pod,
    refused,
    version_of,
)


class ListContract:
    def test_selectors(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            await bench.create(POD, pod("c", node="n1", labels={"app": "web", "tier": "1"}))
            await bench.create(POD, pod("a", labels={"app": "web", "tier": "2"}))
            await bench.create(POD, pod("b", labels={"app": "db"}))
            for selector, names in {
                "app=web": ["a", "c"],
                "app==web,tier!=1": ["a"],
                "tier": ["a", "c"],
                "!tier": ["b"],
                "app in (web, db),tier notin (1)": ["a", "b"],
                "app=nobody": [],
            }.items():
                assert await bench.names(POD, label_selector=selector) == names
            for selector, names in {
                "spec.nodeName=n1": ["c"],
                "spec.nodeName!=n1": ["a", "b"],
                "metadata.name=a,status.phase=Pending": ["a"],
                "status.phase=Running": [],
            }.items():
                assert await bench.names(POD, field_selector=selector) == names

        play(scene)

    def test_metadata_alone(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            await bench.create(CONFIG_MAP, config_map("secretive", labels={"mine": "true"}))
            page = await bench.api.list(CONFIG_MAP, bench.namespace, label_selector="mine=true", metadata_only=True)
            (found,) = (decode(item) for item in page.items)
            assert set(found) == {"apiVersion", "kind", "metadata"}
            assert (found["kind"], found["metadata"]["name"]) == ("PartialObjectMetadata", "secretive")

        play(scene)

    def test_pages_are_of_one_moment(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            for name in "abcde":
                await bench.create(CONFIG_MAP, config_map(name, labels={"mine": "true"}))
            mine = "mine=true"
            page = await bench.api.list(CONFIG_MAP, bench.namespace, limit=2, label_selector=mine)
            first = page.resource_version
            await bench.delete(CONFIG_MAP, "d")
            await bench.create(CONFIG_MAP, config_map("dd", labels={"mine": "true"}))
            await bench.patch(CONFIG_MAP, "e", {"metadata": {"labels": {"new": "er"}}})
            found = [decode(item) for item in page.items]
            while page.next_token:
                page = await bench.api.list(
                    CONFIG_MAP, bench.namespace, limit=2, token=page.next_token, label_selector=mine
                )
                assert page.resource_version == first
                found += [decode(item) for item in page.items]
            assert [meta(one)["name"] for one in found] == list("abcde")
            assert "new" not in meta(found[-1])["labels"]
            assert await bench.names(CONFIG_MAP, label_selector=mine) == ["a", "b", "c", "dd", "e"]

        play(scene)

    def test_a_page_can_be_asked_for_again(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            for name in "abc":
                await bench.create(CLONE_SET, cloneset(name))
            token = (await bench.api.list(CLONE_SET, bench.namespace, limit=1)).next_token
            for _ in range(2):
                page = await bench.api.list(CLONE_SET, bench.namespace, limit=1, token=token)
                assert [meta(decode(item))["name"] for item in page.items] == ["b"]
                assert page.next_token

        play(scene)

    def test_items_of_built_in_kinds_do_not_say_what_they_are(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            await bench.create(POD, pod("web"))
            await bench.create(CLONE_SET, cloneset("web"))
            pods = await bench.api.list(POD, bench.namespace)
            clones = await bench.api.list(CLONE_SET, bench.namespace)
            assert not {"kind", "apiVersion"} & decode(pods.items[0]).keys()
            assert decode(clones.items[0])["kind"] == "CloneSet"

        play(scene)

    def test_a_version_that_is_not_reached_yet(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            future = str(int(await bench.version()) + 1_000_000)
            error = await refused(bench.api.list(POD, bench.namespace, resource_version=future))
            assert (error.code, error.reason) == (504, "Timeout")
            assert "Too large resource version" in error.message
            await bench.api.list(POD, bench.namespace, resource_version="0")

        play(scene)


class WatchContract:
    def test_every_change_in_order(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            async with bench.watching(CONFIG_MAP) as watched:
                await bench.create(CONFIG_MAP, config_map("a"))
                await bench.create(CONFIG_MAP, config_map("b"))
                await bench.patch(CONFIG_MAP, "a", {"data": {"x": "1"}})
                await bench.patch(CONFIG_MAP, "a", {"data": {"x": "1"}})
                await bench.delete(CONFIG_MAP, "b")
                await watched.until(4)
            assert watched.told == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
            versions = [version_of(document) for _, document in watched.events]
            assert versions == sorted(set(versions))
            assert watched.events[2][1]["data"] == {"x": "1"}
            assert all(document["kind"] == "ConfigMap" for _, document in watched.events)

        play(scene)

    def test_of_one_name_in_all_namespaces(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            name = f"of-{bench.namespace}"
            async with bench.watching(CONFIG_MAP, name=name) as watched:
                await bench.create(CONFIG_MAP, config_map("other"))
                await bench.api.create(CONFIG_MAP, "default", encode(config_map(name)))
                await bench.create(CONFIG_MAP, config_map(name))
                await bench.patch(CONFIG_MAP, name, {"data": {"x": "1"}})
                await bench.delete(CONFIG_MAP, "other")
                await bench.delete(CONFIG_MAP, name)
                await watched.until(4)
            kinds = [kind for kind, _ in watched.events]
            assert kinds == ["ADDED", "ADDED", "MODIFIED", "DELETED"]
            places = [(meta(found)["namespace"], meta(found)["name"]) for _, found in watched.events]
            assert places == [("default", name), *[(bench.namespace, name)] * 3]

        play(scene)

    def test_it_begins_after_its_version(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            first = meta(await bench.create(CONFIG_MAP, config_map("a")))["resourceVersion"]
            await bench.create(CONFIG_MAP, config_map("b"))
            await bench.delete(CONFIG_MAP, "a")
            async with bench.watching(CONFIG_MAP, since=first) as watched:
                await watched.until(2)
            assert watched.bookmarks[0] == first
            assert watched.told == [("ADDED", "b"), ("DELETED", "a")]

        play(scene)

    def test_it_sees_its_own_kind_and_namespace_only(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            async with bench.watching(CONFIG_MAP) as watched:
                await bench.create(POD, pod("web"))
                await bench.api.create(CONFIG_MAP, "default", encode(config_map(f"of-{bench.namespace}")))
                await bench.create(CONFIG_MAP, config_map("mine"))
                await watched.until(1)
                await asyncio.sleep(0.2)
            assert watched.told == [("ADDED", "mine")]

        play(scene)

    def test_it_ends_at_its_time(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            watched, since = Watched(), await bench.version()
            watch = bench.api.watch(CONFIG_MAP, since, namespace=bench.namespace, timeout=1)
            async with asyncio.timeout(10):
                await watched.follow(watch)
            assert watched.bookmarks[0] == since
            assert watched.events == []

        play(scene)

    def test_a_kind_that_is_not_served(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            unknown = type(POD)("apps.kruise.io", "v1beta1", "nothings", "Nothing")
            error = await refused(Watched().follow(bench.api.watch(unknown, "1")))
            assert error.code == 404

        play(scene)
