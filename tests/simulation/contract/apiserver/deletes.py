"""Deletion: preconditions, finalizers, grace periods, namespaces."""

from collections.abc import Awaitable

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CLAIM, CONFIG_MAP, NAMESPACE, POD
from flotilla_common.control.plan import Json
from tests.simulation.contract.apiserver.harness import (
    STRATEGIC,
    Harness,
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
        async def exchange(harness: Harness) -> None:
            made = await harness.create(CLONE_SET, cloneset("web"))
            async with harness.watching(CLONE_SET) as watched:
                answer = await harness.delete(CLONE_SET, "web")
                assert (answer["kind"], answer["status"]) == ("Status", "Success")
                assert answer["details"]["uid"] == meta(made)["uid"]
                await watched.until(1)
            (kind, last), *_ = watched.events
            assert (kind, meta(last)["uid"]) == ("DELETED", meta(made)["uid"])
            assert version_of(last) > version_of(made)
            assert "deletionTimestamp" not in meta(last)
            again = await harness.create(CLONE_SET, cloneset("web"))
            assert meta(again)["uid"] != meta(made)["uid"]

        play(exchange)

    def test_preconditions(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            other = "12345678-1234-1234-1234-123456789012"
            for resource, document in (
                (POD, pod("web")),
                (CLONE_SET, cloneset("web")),
                (CONFIG_MAP, config_map("web")),
            ):
                made = await harness.create(resource, document)
                uid, version = meta(made)["uid"], meta(made)["resourceVersion"]
                space = harness.namespace
                error = await refused(harness.api.delete(resource, space, "web", uid=other))
                assert (error.code, error.reason) == (409, "Conflict")
                told = f"the UID in the precondition ({other}) does not match the UID in record ({uid}). "
                assert f"{told}The object might have been deleted and then recreated" in error.message
                error = await refused(harness.api.delete(resource, space, "web", uid=uid, resource_version="1"))
                assert (error.code, error.reason) == (409, "Conflict")
                told = f"does not match the ResourceVersion in record ({version}). The object might have been modified"
                assert f"the ResourceVersion in the precondition (1) {told}" in error.message
                await harness.api.delete(resource, space, "web", uid=uid, resource_version=version)
                assert not await harness.exists(resource, "web")

        play(exchange)

    def test_finalizers_keep_an_object(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(CLONE_SET, cloneset("web", finalizers=["x.io/a", "x.io/b"]))
            async with harness.watching(CLONE_SET) as watched:
                marked = await harness.delete(CLONE_SET, "web")
                assert meta(marked)["deletionTimestamp"]
                assert (meta(marked)["deletionGracePeriodSeconds"], meta(marked)["generation"]) == (0, 2)
                assert version_of(await harness.delete(CLONE_SET, "web")) == version_of(marked)
                more = {"metadata": {"finalizers": ["x.io/a", "x.io/b", "x.io/c"]}}
                error = await refused(harness.patch(CLONE_SET, "web", more))
                assert (error.code, error.reason) == (422, "Invalid")
                assert 'found new finalizers []string{"x.io/c"}' in error.message
                await harness.patch(CLONE_SET, "web", {"metadata": {"finalizers": ["x.io/b"], "labels": {"a": "b"}}})
                last = await harness.patch(CLONE_SET, "web", {"metadata": {"finalizers": None}})
                assert meta(last)["uid"] == meta(made)["uid"]
                await watched.until(3)
            assert [kind for kind, _ in watched.events] == ["MODIFIED", "MODIFIED", "DELETED"]
            assert not await harness.exists(CLONE_SET, "web")

        play(exchange)

    def test_a_pod_that_runs_gets_time(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web", node="nowhere"))
            marked = await harness.delete(POD, "web")
            assert (meta(marked)["deletionGracePeriodSeconds"], meta(marked)["generation"]) == (30, 2)
            assert version_of(await harness.delete(POD, "web")) == version_of(marked)
            longer = await harness.delete(POD, "web", {"gracePeriodSeconds": 60})
            assert version_of(longer) == version_of(marked)
            shorter = await harness.delete(POD, "web", {"gracePeriodSeconds": 5})
            assert (meta(shorter)["deletionGracePeriodSeconds"], meta(shorter)["generation"]) == (5, 2)
            assert meta(shorter)["deletionTimestamp"] < meta(marked)["deletionTimestamp"]
            async with harness.watching(POD) as watched:
                await harness.delete(POD, "web", {"gracePeriodSeconds": 0})
                await watched.until(2)
            assert [kind for kind, _ in watched.events] == ["MODIFIED", "DELETED"]
            assert meta(watched.events[0][1])["deletionGracePeriodSeconds"] == 0

        play(exchange)

    def test_a_pod_that_does_not_run_goes_at_once(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("waiting"))
            await harness.create(POD, pod("done", node="nowhere"))
            await harness.patch(POD, "done", {"status": {"phase": "Succeeded"}}, STRATEGIC, "status")
            for name in ("waiting", "done"):
                async with harness.watching(POD) as watched:
                    answer = await harness.delete(POD, name)
                    assert (answer["kind"], meta(answer)["deletionGracePeriodSeconds"]) == ("Pod", 0)
                    await watched.until(2)
                assert [kind for kind, _ in watched.events] == ["MODIFIED", "DELETED"]

        play(exchange)

    def test_a_pod_with_a_finalizer_waits_for_both(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web", node="nowhere", finalizers=["x.io/keep"]))
            await harness.delete(POD, "web")
            forced = await harness.delete(POD, "web", {"gracePeriodSeconds": 0})
            assert (meta(forced)["deletionGracePeriodSeconds"], meta(forced)["finalizers"]) == (0, ["x.io/keep"])
            assert await harness.exists(POD, "web")
            await harness.patch(POD, "web", {"metadata": {"finalizers": None}})
            assert not await harness.exists(POD, "web")
            await harness.create(POD, pod("two", node="nowhere", finalizers=["x.io/keep"]))
            await harness.delete(POD, "two")
            await harness.patch(POD, "two", {"metadata": {"finalizers": None}})
            assert await harness.exists(POD, "two")
            await harness.delete(POD, "two", {"gracePeriodSeconds": 0})
            assert not await harness.exists(POD, "two")

        play(exchange)

    def test_nothing_begins_in_a_namespace_that_ends(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            short = pod("web", node="nowhere", finalizers=["x.io/keep"])
            short["spec"]["terminationGracePeriodSeconds"] = 1
            await harness.create(POD, short)
            await harness.create(CONFIG_MAP, config_map("one"))
            marked = await harness.delete(NAMESPACE, harness.namespace)
            assert marked["status"]["phase"] == "Terminating"
            error = await refused(harness.create(POD, pod("new")))
            assert (error.code, error.reason) == (403, "Forbidden")
            assert "because it is being terminated" in error.message
            assert causes(error) >= {
                ("metadata.namespace", "NamespaceTerminating", f"namespace {harness.namespace} is being terminated")
            }
            assert meta(await harness.patch(POD, "web", {"metadata": {"labels": {"a": "b"}}}))["labels"] == {"a": "b"}
            again = await harness.delete(NAMESPACE, harness.namespace)
            assert meta(again)["deletionTimestamp"] == meta(marked)["deletionTimestamp"]
            await eventually(lambda: _deleting(harness))
            assert await harness.exists(CONFIG_MAP, "one"), "pods go before everything else"
            await harness.patch(POD, "web", {"metadata": {"finalizers": None}})
            await harness.delete(POD, "web", {"gracePeriodSeconds": 0})
            await eventually(lambda: _no_namespace(harness))

        play(exchange)

    def test_a_claim_is_protected_while_a_pod_uses_it(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(CLAIM, CLAIMED)
            assert meta(made)["finalizers"] == ["kubernetes.io/pvc-protection"]
            await harness.create(POD, _with_claim(pod("web", node="nowhere")))
            await eventually(lambda: harness.exists(POD, "web"))
            answer = await harness.delete(CLAIM, "data")
            assert meta(answer)["deletionTimestamp"]
            assert await harness.exists(CLAIM, "data")
            await harness.delete(POD, "web", {"gracePeriodSeconds": 0})
            await eventually(lambda: _not(harness.exists(CLAIM, "data")))

        play(exchange)

    def test_a_pod_without_a_node_does_not_use_its_claims_yet(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(CLAIM, CLAIMED)
            await harness.create(POD, _with_claim(pod("web")))
            await harness.delete(CLAIM, "data")
            await eventually(lambda: _not(harness.exists(CLAIM, "data")))
            assert await harness.exists(POD, "web")

        play(exchange)


CLAIMED: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def _with_claim(user: Json) -> Json:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return user | {"spec": user["spec"] | {"volumes": volumes}}


async def _not(answer: Awaitable[bool]) -> bool:
    return not await answer


async def _deleting(harness: Harness) -> bool:
    return "deletionTimestamp" in meta(await harness.get(POD, "web"))


async def _no_namespace(harness: Harness) -> bool:
    page = await harness.api.list(NAMESPACE, field_selector=f"metadata.name={harness.namespace}")
    return not page.items
