"""Garbage collection: what becomes of dependents."""

from collections.abc import Awaitable

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, JOB, POD, REVISION
from tests.simulation.contract.apiserver.harness import (
    Harness,
    Play,
    cloneset,
    config_map,
    eventually,
    job,
    meta,
    owned_by,
    pod,
)


async def _not(answer: Awaitable[bool]) -> bool:
    return not await answer


class OwnershipContract:
    def test_background(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            owner = await harness.create(CLONE_SET, cloneset("web"))
            mine = [owned_by(owner, controller=True, blocks=True)]
            await harness.create(POD, pod("web", ownerReferences=mine))
            await harness.create(REVISION, {"metadata": {"name": "web", "ownerReferences": mine}, "data": {"a": 1}})
            await harness.create(POD, pod("other"))
            await harness.delete(CLONE_SET, "web", {"propagationPolicy": "Background"})
            assert not await harness.exists(CLONE_SET, "web")
            await eventually(lambda: _not(harness.exists(POD, "web")))
            await eventually(lambda: _not(harness.exists(REVISION, "web")))
            assert await harness.exists(POD, "other")

        play(exchange)

    def test_foreground(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            owner = await harness.create(CLONE_SET, cloneset("web"))
            mine = [owned_by(owner, controller=True, blocks=True)]
            await harness.create(POD, pod("web", node="nowhere", ownerReferences=mine))
            marked = await harness.delete(CLONE_SET, "web", {"propagationPolicy": "Foreground"})
            assert meta(marked)["finalizers"] == ["foregroundDeletion"]
            assert meta(marked)["generation"] == 2
            await eventually(lambda: _terminating(harness, "web"))
            assert await harness.exists(CLONE_SET, "web")
            await harness.delete(POD, "web", {"gracePeriodSeconds": 0})
            await eventually(lambda: _not(harness.exists(CLONE_SET, "web")))

        play(exchange)

    def test_orphan(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            owner = await harness.create(CLONE_SET, cloneset("web"))
            other = await harness.create(CONFIG_MAP, config_map("other"))
            both = [owned_by(owner, controller=True, blocks=True), owned_by(other)]
            await harness.create(POD, pod("web", ownerReferences=both))
            await harness.delete(CLONE_SET, "web", {"propagationPolicy": "Orphan"})
            await eventually(lambda: _not(harness.exists(CLONE_SET, "web")))
            assert [one["name"] for one in meta(await harness.get(POD, "web"))["ownerReferences"]] == ["other"]

        play(exchange)

    def test_who_says_nothing_leaves_the_pods_of_a_job_behind(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for name, options in (("kept", {}), ("gone", {"propagationPolicy": "Background"})):
                owner = await harness.create(JOB, job(name))
                await harness.create(POD, pod(name, ownerReferences=[owned_by(owner, controller=True, blocks=True)]))
                await harness.delete(JOB, name, options)
                await eventually(lambda name=name: _not(harness.exists(JOB, name)))
            await eventually(lambda: _not(harness.exists(POD, "gone")))
            assert "ownerReferences" not in meta(await harness.get(POD, "kept"))

        play(exchange)

    def test_the_last_word_on_how_to_delete_counts(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(CLONE_SET, cloneset("web", finalizers=["x.io/keep"]))
            for policy, asked in (
                ("Foreground", ["x.io/keep", "foregroundDeletion"]),
                ("Background", ["x.io/keep"]),
                ("Background", ["x.io/keep"]),
            ):
                marked = await harness.delete(CLONE_SET, "web", {"propagationPolicy": policy})
                assert (meta(marked)["finalizers"], meta(marked)["generation"]) == (asked, 2)

        play(exchange)

    def test_one_of_two_owners_goes(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            one = await harness.create(CONFIG_MAP, config_map("one"))
            two = await harness.create(CONFIG_MAP, config_map("two"))
            await harness.create(CONFIG_MAP, config_map("child", ownerReferences=[owned_by(one), owned_by(two)]))
            await harness.delete(CONFIG_MAP, "one")
            await eventually(lambda: _has_one_owner(harness, "child"))
            await harness.delete(CONFIG_MAP, "two")
            await eventually(lambda: _not(harness.exists(CONFIG_MAP, "child")))

        play(exchange)

    def test_an_owner_that_never_was(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            namesake = await harness.create(CLONE_SET, cloneset("web"))
            stranger = owned_by(namesake) | {"uid": "12345678-1234-1234-1234-123456789012"}
            await harness.create(POD, pod("web", ownerReferences=[stranger]))
            await eventually(lambda: _not(harness.exists(POD, "web")))
            assert await harness.exists(CLONE_SET, "web")

        play(exchange)


async def _terminating(harness: Harness, name: str) -> bool:
    return "deletionTimestamp" in meta(await harness.get(POD, name))


async def _has_one_owner(harness: Harness, name: str) -> bool:
    return len(meta(await harness.get(CONFIG_MAP, name))["ownerReferences"]) == 1
