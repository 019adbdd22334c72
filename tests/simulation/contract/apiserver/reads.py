"""LIST and WATCH."""

import asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, POD
from tests.simulation.contract.apiserver.harness import (
    Harness,
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
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("c", node="n1", labels={"app": "web", "tier": "1"}))
            await harness.create(POD, pod("a", labels={"app": "web", "tier": "2"}))
            await harness.create(POD, pod("b", labels={"app": "db"}))
            for selector, names in {
                "app=web": ["a", "c"],
                "app==web,tier!=1": ["a"],
                "tier": ["a", "c"],
                "!tier": ["b"],
                "app in (web, db),tier notin (1)": ["a", "b"],
                "app=nobody": [],
            }.items():
                assert await harness.names(POD, label_selector=selector) == names
            for selector, names in {
                "spec.nodeName=n1": ["c"],
                "spec.nodeName!=n1": ["a", "b"],
                "metadata.name=a,status.phase=Pending": ["a"],
                "status.phase=Running": [],
            }.items():
                assert await harness.names(POD, field_selector=selector) == names

        play(exchange)

    def test_metadata_alone(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(CONFIG_MAP, config_map("secretive", labels={"mine": "true"}))
            page = await harness.api.list(CONFIG_MAP, harness.namespace, label_selector="mine=true", metadata_only=True)
            (found,) = (decode(item) for item in page.items)
            assert set(found) == {"apiVersion", "kind", "metadata"}
            assert (found["kind"], found["metadata"]["name"]) == ("PartialObjectMetadata", "secretive")

        play(exchange)

    def test_pages_are_of_one_moment(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for name in "abcde":
                await harness.create(CONFIG_MAP, config_map(name, labels={"mine": "true"}))
            mine = "mine=true"
            page = await harness.api.list(CONFIG_MAP, harness.namespace, limit=2, label_selector=mine)
            first = page.resource_version
            await harness.delete(CONFIG_MAP, "d")
            await harness.create(CONFIG_MAP, config_map("dd", labels={"mine": "true"}))
            await harness.patch(CONFIG_MAP, "e", {"metadata": {"labels": {"new": "er"}}})
            found = [decode(item) for item in page.items]
            while page.next_token:
                page = await harness.api.list(
                    CONFIG_MAP, harness.namespace, limit=2, token=page.next_token, label_selector=mine
                )
                assert page.resource_version == first
                found += [decode(item) for item in page.items]
            assert [meta(one)["name"] for one in found] == list("abcde")
            assert "new" not in meta(found[-1])["labels"]
            assert await harness.names(CONFIG_MAP, label_selector=mine) == ["a", "b", "c", "dd", "e"]

        play(exchange)

    def test_a_page_can_be_asked_for_again(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for name in "abc":
                await harness.create(CLONE_SET, cloneset(name))
            token = (await harness.api.list(CLONE_SET, harness.namespace, limit=1)).next_token
            for _ in range(2):
                page = await harness.api.list(CLONE_SET, harness.namespace, limit=1, token=token)
                assert [meta(decode(item))["name"] for item in page.items] == ["b"]
                assert page.next_token

        play(exchange)

    def test_items_of_built_in_kinds_do_not_say_what_they_are(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            await harness.create(CLONE_SET, cloneset("web"))
            pods = await harness.api.list(POD, harness.namespace)
            clones = await harness.api.list(CLONE_SET, harness.namespace)
            assert not {"kind", "apiVersion"} & decode(pods.items[0]).keys()
            assert decode(clones.items[0])["kind"] == "CloneSet"

        play(exchange)

    def test_a_version_that_is_not_reached_yet(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            future = str(int(await harness.version()) + 1_000_000)
            error = await refused(harness.api.list(POD, harness.namespace, resource_version=future))
            assert (error.code, error.reason) == (504, "Timeout")
            assert "Too large resource version" in error.message
            await harness.api.list(POD, harness.namespace, resource_version="0")

        play(exchange)


class WatchContract:
    def test_every_change_in_order(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            async with harness.watching(CONFIG_MAP) as watched:
                await harness.create(CONFIG_MAP, config_map("a"))
                await harness.create(CONFIG_MAP, config_map("b"))
                await harness.patch(CONFIG_MAP, "a", {"data": {"x": "1"}})
                await harness.patch(CONFIG_MAP, "a", {"data": {"x": "1"}})
                await harness.delete(CONFIG_MAP, "b")
                await watched.until(4)
            assert watched.told == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
            versions = [version_of(document) for _, document in watched.events]
            assert versions == sorted(set(versions))
            assert watched.events[2][1]["data"] == {"x": "1"}
            assert all(document["kind"] == "ConfigMap" for _, document in watched.events)

        play(exchange)

    def test_of_one_name_in_all_namespaces(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            name = f"of-{harness.namespace}"
            async with harness.watching(CONFIG_MAP, name=name) as watched:
                await harness.create(CONFIG_MAP, config_map("other"))
                await harness.api.create(CONFIG_MAP, "default", encode(config_map(name)))
                await harness.create(CONFIG_MAP, config_map(name))
                await harness.patch(CONFIG_MAP, name, {"data": {"x": "1"}})
                await harness.delete(CONFIG_MAP, "other")
                await harness.delete(CONFIG_MAP, name)
                await watched.until(4)
            kinds = [kind for kind, _ in watched.events]
            assert kinds == ["ADDED", "ADDED", "MODIFIED", "DELETED"]
            places = [(meta(found)["namespace"], meta(found)["name"]) for _, found in watched.events]
            assert places == [("default", name), *[(harness.namespace, name)] * 3]

        play(exchange)

    def test_it_begins_after_its_version(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            first = meta(await harness.create(CONFIG_MAP, config_map("a")))["resourceVersion"]
            await harness.create(CONFIG_MAP, config_map("b"))
            await harness.delete(CONFIG_MAP, "a")
            async with harness.watching(CONFIG_MAP, since=first) as watched:
                await watched.until(2)
            assert watched.bookmarks[0] == first
            assert watched.told == [("ADDED", "b"), ("DELETED", "a")]

        play(exchange)

    def test_it_sees_its_own_kind_and_namespace_only(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            async with harness.watching(CONFIG_MAP) as watched:
                await harness.create(POD, pod("web"))
                await harness.api.create(CONFIG_MAP, "default", encode(config_map(f"of-{harness.namespace}")))
                await harness.create(CONFIG_MAP, config_map("mine"))
                await watched.until(1)
                await asyncio.sleep(0.2)
            assert watched.told == [("ADDED", "mine")]

        play(exchange)

    def test_it_ends_at_its_time(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            watched, since = Watched(), await harness.version()
            watch = harness.api.watch(CONFIG_MAP, since, namespace=harness.namespace, timeout=1)
            async with asyncio.timeout(10):
                await watched.follow(watch)
            assert watched.bookmarks[0] == since
            assert watched.events == []

        play(exchange)

    def test_a_kind_that_is_not_served(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            unknown = type(POD)("apps.kruise.io", "v1beta1", "nothings", "Nothing")
            error = await refused(Watched().follow(harness.api.watch(unknown, "1")))
            assert error.code == 404

        play(exchange)
