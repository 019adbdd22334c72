"""Garbage collection: what becomes of dependents."""

from collections.abc import Awaitable

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, JOB, POD, REVISION
from tests.simulation.contract.apiserver.bench import (
    Bench,
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
        async def scene(bench: Bench) -> None:
            owner = await bench.create(CLONE_SET, cloneset("web"))
            mine = [owned_by(owner, controller=True, blocks=True)]
            await bench.create(POD, pod("web", ownerReferences=mine))
            await bench.create(REVISION, {"metadata": {"name": "web", "ownerReferences": mine}, "data": {"a": 1}})
            await bench.create(POD, pod("other"))
            await bench.delete(CLONE_SET, "web", {"propagationPolicy": "Background"})
            assert not await bench.exists(CLONE_SET, "web")
            await eventually(lambda: _not(bench.exists(POD, "web")))
            await eventually(lambda: _not(bench.exists(REVISION, "web")))
            assert await bench.exists(POD, "other")

        play(scene)

    def test_foreground(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            owner = await bench.create(CLONE_SET, cloneset("web"))
            mine = [owned_by(owner, controller=True, blocks=True)]
            await bench.create(POD, pod("web", node="nowhere", ownerReferences=mine))
            marked = await bench.delete(CLONE_SET, "web", {"propagationPolicy": "Foreground"})
            assert meta(marked)["finalizers"] == ["foregroundDeletion"]
            assert meta(marked)["generation"] == 2
            await eventually(lambda: _terminating(bench, "web"))
            assert await bench.exists(CLONE_SET, "web")
            await bench.delete(POD, "web", {"gracePeriodSeconds": 0})
            await eventually(lambda: _not(bench.exists(CLONE_SET, "web")))

        play(scene)

    def test_orphan(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            owner = await bench.create(CLONE_SET, cloneset("web"))
            other = await bench.create(CONFIG_MAP, config_map("other"))
            both = [owned_by(owner, controller=True, blocks=True), owned_by(other)]
            await bench.create(POD, pod("web", ownerReferences=both))
            await bench.delete(CLONE_SET, "web", {"propagationPolicy": "Orphan"})
            await eventually(lambda: _not(bench.exists(CLONE_SET, "web")))
            assert [one["name"] for one in meta(await bench.get(POD, "web"))["ownerReferences"]] == ["other"]

        play(scene)

    def test_who_says_nothing_leaves_the_pods_of_a_job_behind(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            for name, options in (("kept", {}), ("gone", {"propagationPolicy": "Background"})):
                owner = await bench.create(JOB, job(name))
                await bench.create(POD, pod(name, ownerReferences=[owned_by(owner, controller=True, blocks=True)]))
                await bench.delete(JOB, name, options)
                await eventually(lambda name=name: _not(bench.exists(JOB, name)))
            await eventually(lambda: _not(bench.exists(POD, "gone")))
            assert "ownerReferences" not in meta(await bench.get(POD, "kept"))

        play(scene)

    def test_the_last_word_on_how_to_delete_counts(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            await bench.create(CLONE_SET, cloneset("web", finalizers=["x.io/keep"]))
            for policy, asked in (
                ("Foreground", ["x.io/keep", "foregroundDeletion"]),
                ("Background", ["x.io/keep"]),
                ("Background", ["x.io/keep"]),
            ):
                marked = await bench.delete(CLONE_SET, "web", {"propagationPolicy": policy})
                assert (meta(marked)["finalizers"], meta(marked)["generation"]) == (asked, 2)

        play(scene)

    def test_one_of_two_owners_goes(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            one = await bench.create(CONFIG_MAP, config_map("one"))
            two = await bench.create(CONFIG_MAP, config_map("two"))
            await bench.create(CONFIG_MAP, config_map("child", ownerReferences=[owned_by(one), owned_by(two)]))
            await bench.delete(CONFIG_MAP, "one")
            await eventually(lambda: _has_one_owner(bench, "child"))
            await bench.delete(CONFIG_MAP, "two")
            await eventually(lambda: _not(bench.exists(CONFIG_MAP, "child")))

        play(scene)

    def test_an_owner_that_never_was(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            namesake = await bench.create(CLONE_SET, cloneset("web"))
            stranger = owned_by(namesake) | {"uid": "12345678-1234-1234-1234-123456789012"}
            await bench.create(POD, pod("web", ownerReferences=[stranger]))
            await eventually(lambda: _not(bench.exists(POD, "web")))
            assert await bench.exists(CLONE_SET, "web")

        play(scene)


async def _terminating(bench: Bench, name: str) -> bool:
    return "deletionTimestamp" in meta(await bench.get(POD, name))


async def _has_one_owner(bench: Bench, name: str) -> bool:
    return len(meta(await bench.get(CONFIG_MAP, name))["ownerReferences"]) == 1
