"""Deletion: preconditions, finalizers, grace periods, namespaces."""

from collections.abc import Awaitable

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CLAIM, CONFIG_MAP, NAMESPACE, POD
from flotilla_common.control.plan import Json
from tests.simulation.contract.apiserver.bench import (
    STRATEGIC,
    Bench,
    Play,
    causes,
    cloneset,
    config_map,
    eventually,
    meta,
    pod,
    refused,
    version_of,
)


class DeleteContract:
    def test_what_is_deleted_is_gone(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            made = await bench.create(CLONE_SET, cloneset("web"))
            async with bench.watching(CLONE_SET) as watched:
                answer = await bench.delete(CLONE_SET, "web")
                assert (answer["kind"], answer["status"]) == ("Status", "Success")
                assert answer["details"]["uid"] == meta(made)["uid"]
                await watched.until(1)
            (kind, last), *_ = watched.events
            assert (kind, meta(last)["uid"]) == ("DELETED", meta(made)["uid"])
            assert version_of(last) > version_of(made)
            assert "deletionTimestamp" not in meta(last)
            again = await bench.create(CLONE_SET, cloneset("web"))
            assert meta(again)["uid"] != meta(made)["uid"]

        play(scene)

    def test_preconditions(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            other = "12345678-1234-1234-1234-123456789012"
            for resource, document in (
                (POD, pod("web")),
                (CLONE_SET, cloneset("web")),
                (CONFIG_MAP, config_map("web")),
            ):
                made = await bench.create(resource, document)
                uid, version = meta(made)["uid"], meta(made)["resourceVersion"]
                space = bench.namespace
                error = await refused(bench.api.delete(resource, space, "web", uid=other))
                assert (error.code, error.reason) == (409, "Conflict")
                told = f"the UID in the precondition ({other}) does not match the UID in record ({uid}). "
                assert f"{told}The object might have been deleted and then recreated" in error.message
                error = await refused(bench.api.delete(resource, space, "web", uid=uid, resource_version="1"))
                assert (error.code, error.reason) == (409, "Conflict")
                told = f"does not match the ResourceVersion in record ({version}). The object might have been modified"
                assert f"the ResourceVersion in the precondition (1) {told}" in error.message
                await bench.api.delete(resource, space, "web", uid=uid, resource_version=version)
                assert not await bench.exists(resource, "web")

        play(scene)

    def test_finalizers_keep_an_object(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            made = await bench.create(CLONE_SET, cloneset("web", finalizers=["x.io/a", "x.io/b"]))
            async with bench.watching(CLONE_SET) as watched:
                marked = await bench.delete(CLONE_SET, "web")
                assert meta(marked)["deletionTimestamp"]
                assert (meta(marked)["deletionGracePeriodSeconds"], meta(marked)["generation"]) == (0, 2)
                assert version_of(await bench.delete(CLONE_SET, "web")) == version_of(marked)
                more = {"metadata": {"finalizers": ["x.io/a", "x.io/b", "x.io/c"]}}
                error = await refused(bench.patch(CLONE_SET, "web", more))
                assert (error.code, error.reason) == (422, "Invalid")
                assert 'found new finalizers []string{"x.io/c"}' in error.message
                await bench.patch(CLONE_SET, "web", {"metadata": {"finalizers": ["x.io/b"], "labels": {"a": "b"}}})
                last = await bench.patch(CLONE_SET, "web", {"metadata": {"finalizers": None}})
                assert meta(last)["uid"] == meta(made)["uid"]
                await watched.until(3)
            assert [kind for kind, _ in watched.events] == ["MODIFIED", "MODIFIED", "DELETED"]
            assert not await bench.exists(CLONE_SET, "web")

        play(scene)

    def test_a_pod_that_runs_gets_time(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            await bench.create(POD, pod("web", node="nowhere"))
            marked = await bench.delete(POD, "web")
            assert (meta(marked)["deletionGracePeriodSeconds"], meta(marked)["generation"]) == (30, 2)
            assert version_of(await bench.delete(POD, "web")) == version_of(marked)
            longer = await bench.delete(POD, "web", {"gracePeriodSeconds": 60})
            assert version_of(longer) == version_of(marked)
            shorter = await bench.delete(POD, "web", {"gracePeriodSeconds": 5})
            assert (meta(shorter)["deletionGracePeriodSeconds"], meta(shorter)["generation"]) == (5, 2)
            assert meta(shorter)["deletionTimestamp"] < meta(marked)["deletionTimestamp"]
            async with bench.watching(POD) as watched:
                await bench.delete(POD, "web", {"gracePeriodSeconds": 0})
                await watched.until(2)
            assert [kind for kind, _ in watched.events] == ["MODIFIED", "DELETED"]
            assert meta(watched.events[0][1])["deletionGracePeriodSeconds"] == 0

        play(scene)

    def test_a_pod_that_does_not_run_goes_at_once(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            await bench.create(POD, pod("waiting"))
            await bench.create(POD, pod("done", node="nowhere"))
            await bench.patch(POD, "done", {"status": {"phase": "Succeeded"}}, STRATEGIC, "status")
            for name in ("waiting", "done"):
                async with bench.watching(POD) as watched:
                    answer = await bench.delete(POD, name)
                    assert (answer["kind"], meta(answer)["deletionGracePeriodSeconds"]) == ("Pod", 0)
                    await watched.until(2)
                assert [kind for kind, _ in watched.events] == ["MODIFIED", "DELETED"]

        play(scene)

    def test_a_pod_with_a_finalizer_waits_for_both(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            await bench.create(POD, pod("web", node="nowhere", finalizers=["x.io/keep"]))
            await bench.delete(POD, "web")
            forced = await bench.delete(POD, "web", {"gracePeriodSeconds": 0})
            assert (meta(forced)["deletionGracePeriodSeconds"], meta(forced)["finalizers"]) == (0, ["x.io/keep"])
            assert await bench.exists(POD, "web")
            await bench.patch(POD, "web", {"metadata": {"finalizers": None}})
            assert not await bench.exists(POD, "web")
            await bench.create(POD, pod("two", node="nowhere", finalizers=["x.io/keep"]))
            await bench.delete(POD, "two")
            await bench.patch(POD, "two", {"metadata": {"finalizers": None}})
            assert await bench.exists(POD, "two")
            await bench.delete(POD, "two", {"gracePeriodSeconds": 0})
            assert not await bench.exists(POD, "two")

        play(scene)

    def test_nothing_begins_in_a_namespace_that_ends(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            short = pod("web", node="nowhere", finalizers=["x.io/keep"])
            short["spec"]["terminationGracePeriodSeconds"] = 1
            await bench.create(POD, short)
            await bench.create(CONFIG_MAP, config_map("one"))
            marked = await bench.delete(NAMESPACE, bench.namespace)
            assert marked["status"]["phase"] == "Terminating"
            error = await refused(bench.create(POD, pod("new")))
            assert (error.code, error.reason) == (403, "Forbidden")
            assert "because it is being terminated" in error.message
            assert causes(error) >= {
                ("metadata.namespace", "NamespaceTerminating", f"namespace {bench.namespace} is being terminated")
            }
            assert meta(await bench.patch(POD, "web", {"metadata": {"labels": {"a": "b"}}}))["labels"] == {"a": "b"}
            again = await bench.delete(NAMESPACE, bench.namespace)
            assert meta(again)["deletionTimestamp"] == meta(marked)["deletionTimestamp"]
            await eventually(lambda: _deleting(bench))
            assert await bench.exists(CONFIG_MAP, "one"), "pods go before everything else"
            await bench.patch(POD, "web", {"metadata": {"finalizers": None}})
            await bench.delete(POD, "web", {"gracePeriodSeconds": 0})
            await eventually(lambda: _no_namespace(bench))

        play(scene)

    def test_a_claim_is_protected_while_a_pod_uses_it(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            made = await bench.create(CLAIM, CLAIMED)
            assert meta(made)["finalizers"] == ["kubernetes.io/pvc-protection"]
            await bench.create(POD, _with_claim(pod("web", node="nowhere")))
            await eventually(lambda: bench.exists(POD, "web"))
            answer = await bench.delete(CLAIM, "data")
            assert meta(answer)["deletionTimestamp"]
            assert await bench.exists(CLAIM, "data")
            await bench.delete(POD, "web", {"gracePeriodSeconds": 0})
            await eventually(lambda: _not(bench.exists(CLAIM, "data")))

        play(scene)

    def test_a_pod_without_a_node_does_not_use_its_claims_yet(self, play: Play) -> None:
        async def scene(bench: Bench) -> None:
            await bench.create(CLAIM, CLAIMED)
            await bench.create(POD, _with_claim(pod("web")))
            await bench.delete(CLAIM, "data")
            await eventually(lambda: _not(bench.exists(CLAIM, "data")))
            assert await bench.exists(POD, "web")

        play(scene)


CLAIMED: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def _with_claim(user: Json) -> Json:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return user | {"spec": user["spec"] | {"volumes": volumes}}


async def _not(answer: Awaitable[bool]) -> bool:
    return not await answer


async def _deleting(bench: Bench) -> bool:
    return "deletionTimestamp" in meta(await bench.get(POD, "web"))


async def _no_namespace(bench: Bench) -> bool:
    page = await bench.api.list(NAMESPACE, field_selector=f"metadata.name={bench.namespace}")
    return not page.items
