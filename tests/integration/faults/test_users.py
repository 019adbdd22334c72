"""Users do everything at once: deletes, quotas, duplicate names, and changes in the middle of a rollout."""

import asyncio
import json
import random
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.fleet import Fleet
from tests.support.observer import Promise, uids
from tests.support.scene import NEW, OLD, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(loop_scope="module")
async def place(flotilla: Fleet) -> AsyncIterator[Scene]:
    async with scene(flotilla) as made:
        yield made


async def test_pods_deleted_during_a_rollout(place: Scene) -> None:
    await place.create(cloneset("web", 60, maxUnavailable="10%"))
    await place.settle("web", OLD, 60)
    place.seen.promise(Promise(cloneset="web", replicas=60, max_unavailable=6, lost=10))
    await place.roll("web", NEW)
    await place.part_way("web", NEW, 20)
    victims = random.Random(0).sample(sorted(uids(place.seen.of("web"))), 10)
    await place.kubectl("delete", "pod", *victims, "--wait=false")
    await place.settle("web", NEW, 60)
    assert not set(victims) & place.seen.pods.keys()
    await place.end()


async def test_image_changed_back_and_forth(place: Scene) -> None:
    """A, B, C, A, with 16 pods held back at first: the end is A, and a pod that never left A never restarts."""
    await place.create(cloneset("web", 40, maxUnavailable=8, partition=16))
    await place.settle("web", OLD, 40)
    before = uids(place.seen.of("web"))
    place.seen.promise(Promise(cloneset="web", replicas=40, max_unavailable=8))
    for image in (NEW, "nginx:3"):
        await place.roll("web", image)
        await place.part_way("web", image, 1)
    await place.roll("web", OLD)
    await place.patch("web", {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    await place.settle("web", OLD, 40)
    assert uids(place.seen.of("web")) == before
    left = {change.pod.metadata.uid for change in place.seen.history if change.pod.spec.containers[0].image != OLD}
    restarted = {pod.metadata.uid for pod in place.seen.of("web") if pod.status.container_statuses[0].restart_count}
    assert restarted <= left
    assert 0 < len(left) <= 24
    revisions = await place.read("controllerrevisions")
    assert len(revisions["items"]) == 3
    await place.end()


async def test_deleted_and_made_again_at_once(place: Scene) -> None:
    """The namesake gets pods of its own; those of the old one go."""
    await place.create(cloneset("web", 20, maxUnavailable=5))
    await place.part_way("web", OLD, 5)
    old = (await place.read("clone", "web"))["metadata"]["uid"]
    await place.kubectl("delete", "clone", "web", "--wait=false")
    await place.create(cloneset("web", 16, NEW, maxUnavailable=5))
    await place.seen.until(lambda: owners(place) == 1 and place.seen.settled("web", NEW, 16), 60, "only the new pods")
    assert old not in {pod.metadata.owner_references[0].uid for pod in place.seen.pods.values()}
    await place.seen.until(lambda: len(place.seen.pods) == 16, 30, "the old pods' end")
    await place.flotilla.healthy()


async def test_deleted_leaving_its_pods(place: Scene) -> None:
    """`--cascade=orphan`: the pods stay as they are, and a namesake makes its own beside them (cloneset.md §4.2)."""
    await place.create(cloneset("web", 6, maxUnavailable=5))
    await place.settle("web", OLD, 6)
    before = uids(place.seen.of("web"))
    await place.kubectl("delete", "clone", "web", "--cascade=orphan")
    await place.create(cloneset("web", 6, NEW, maxUnavailable=5))
    await place.settle("web", NEW, 6)
    assert not before.keys() & uids(place.seen.of("web")).keys()
    left = [pod for pod in place.seen.pods.values() if pod.metadata.name in before]
    assert uids(left) == before
    await place.end()


async def test_namespace_deleted_during_rollouts(flotilla: Fleet) -> None:
    async with scene(flotilla) as doomed, scene(flotilla) as place:
        for one in (doomed, place):
            await one.create(cloneset("web", 20, maxUnavailable=2), cloneset("api", 5, maxUnavailable=5))
        for one in (doomed, place):
            await one.settle("web", OLD, 20)
            await one.settle("api", OLD, 5)
            await one.roll("web", NEW)
        await doomed.part_way("web", NEW, 2)
        await asyncio.to_thread(doomed.cluster.kubectl, "delete", "namespace", doomed.namespace, "--wait=false")
        await place.settle("web", NEW, 20)
        await doomed.seen.until(lambda: not doomed.seen.pods and not doomed.seen.clonesets, 60, "an empty namespace")
        await place.end()


async def test_quota_for_half_of_the_pods(place: Scene) -> None:
    """The other half stays missing, which is reported without haste, and existing pods are updated all the same."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "8"}}}
    await place.create(quota)
    await wait_for_quota(place)
    place.seen.promise(Promise(cloneset="web", replicas=16, max_unavailable=16, in_place=False))
    await place.create(cloneset("web", 16, maxUnavailable=10))
    await place.part_way("web", OLD, 8)
    await place.seen.until(lambda: bool(condition(place, "FailedScale")), 20, "FailedScale")
    assert "exceeded quota" in condition(place, "FailedScale")
    await wait_for_event(place, "FailedCreate", "exceeded quota")
    await comes_to_rest(place)
    assert "exceeded quota" in await why(place, "web")
    await place.roll("web", NEW)
    await place.part_way("web", NEW, 8)
    await place.kubectl("patch", "resourcequota", "few", "-p", '{"spec":{"hard":{"pods":"100"}}}')
    await place.settle("web", NEW, 16)
    await place.end()


async def comes_to_rest(place: Scene) -> None:
    """Wait for three seconds with a handful of passes: the service does not spin."""
    service = place.flotilla.members["cloneset"]
    for _ in range(6):
        before = service.metric("controller_runtime_reconcile_total")
        await asyncio.sleep(3)
        if service.metric("controller_runtime_reconcile_total") - before <= 6:
            return
    raise AssertionError("it never settles")


def owners(place: Scene) -> int:
    return len({pod.metadata.owner_references[0].uid for pod in place.seen.pods.values()})


def condition(place: Scene, kind: str) -> str:
    """Return the message of a condition that is True."""
    found = place.seen.clonesets.get("web")
    conditions = found.status.conditions if found else []
    return next((one.message for one in conditions if one.type == kind and one.status == "True"), "")


async def wait_for_quota(place: Scene) -> None:
    """Wait until the quota's controller has seen it, because it counts from then on."""
    for _ in range(100):
        if (await place.read("resourcequota", "few")).get("status", {}).get("hard"):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the quota has no status")


async def wait_for_event(place: Scene, reason: str, text: str) -> None:
    for _ in range(300):
        events = (await place.read("events", f"--field-selector=reason={reason}"))["items"]
        if any(text in event["message"] for event in events):
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"no event {reason} with {text!r}")


async def why(place: Scene, name: str) -> str:
    """Return the reasons that `explain` reads."""
    async with place.flotilla.bus() as bus:
        message = await bus.get_last("why", f"why.v1.clonesets.{place.namespace}.{name}")
        assert message is not None
        return json.dumps(json.loads(message.data))
