"""The webhook's certificate changes, or the webhook is dead, during a rollout."""

import asyncio
import json

import pytest

from tests.support.fleet import Fleet
from tests.support.observer import Promise
from tests.support.scene import NEW, OLD, Rollout, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

SECRET = "kruise-webhook-certs"


async def test_certificate_rotated_under_load(flotilla: Fleet, web: Rollout) -> None:
    """First the certificate alone is lost, then the whole Secret with the CA; not one request may fail."""
    await web.begin()
    requests = 0
    finished = asyncio.Event()

    async def keep_patching() -> None:
        nonlocal requests
        while requests <= 10 or not finished.is_set():
            await web.place.kubectl("annotate", "clone", "web", f"round={requests}", "--overwrite")
            await web.place.kubectl("get", "clonesets.v1alpha1.apps.kruise.io", "web")
            requests += 1

    patching = asyncio.create_task(keep_patching())
    first = await certificate(web.place)
    await system(web.place, "patch", "secret", SECRET, "--type=json", "-p", '[{"op":"remove","path":"/data/cert.pem"}]')
    second = await renewed(web.place, first)
    await system(web.place, "delete", "secret", SECRET)
    await renewed(web.place, second)
    await asyncio.sleep(3)  # the old trust is withdrawn
    finished.set()
    await patching
    await web.end()


async def test_dead_webhook_stops_no_rollout(flotilla: Fleet, web: Rollout) -> None:
    await web.begin()
    flotilla.kill("webhook")
    await web.place.seen.until(lambda: web.done == 200)
    refusal = await refused(web.place, "create", "-f", "-", stdin=json.dumps(cloneset("late", 1)))
    assert "failed calling webhook" in refusal
    assert "connection refused" in refusal
    listed = await web.place.kubectl("get", "clonesets.v1beta1.apps.kruise.io", "-o", "name")
    assert listed.split() == ["cloneset.apps.kruise.io/web"]
    # One object is read from etcd; a list may come from the apiserver's cache, converted before.
    assert "conversion webhook" in await refused(web.place, "get", "clonesets.v1alpha1.apps.kruise.io", "web")
    pod = web.place.seen.of("web")[0].metadata.name
    await web.place.kubectl("delete", "pod", pod, "--wait=false")  # it is replaced: pods need no webhook
    await web.place.seen.until(
        lambda: pod not in web.place.seen.pods and web.place.seen.settled("web", web.image, 200), 60, "a replacement"
    )
    await flotilla.start("webhook")
    await web.place.create(cloneset("late", 1))
    await web.place.settle("late", OLD, 1)
    await web.place.flotilla.healthy()


async def test_webhook_restarts_all_the_time(flotilla: Fleet) -> None:
    """Requests fail while there is none, and have no other effect."""
    async with scene(flotilla) as place:
        await place.create(cloneset("web", 50, maxUnavailable=5))
        await place.settle("web", OLD, 50)
        place.seen.promise(Promise(cloneset="web", replicas=50, max_unavailable=5))
        await place.roll("web", NEW)
        for _ in range(3):
            await flotilla.restart("webhook")
        await place.settle("web", NEW, 50)
        await place.end()


async def system(place: Scene, *arguments: str) -> str:
    """Run kubectl in Flotilla's own namespace."""
    return await place.kubectl(*arguments, "-n", "kruise-system")


async def certificate(place: Scene) -> str:
    """Return the server certificate in the Secret; empty while there is none."""
    return await system(place, "get", "secret", SECRET, "--ignore-not-found", "-o", r"jsonpath={.data.cert\.pem}")


async def renewed(place: Scene, old: str) -> str:
    """Wait for another certificate."""
    for _ in range(100):
        now = await certificate(place)
        if now not in ("", old):
            return now
        await asyncio.sleep(0.2)
    raise AssertionError("the certificate was not renewed")


async def refused(place: Scene, *arguments: str, stdin: str = "") -> str:
    """Return kubectl's output for a command that must be refused."""
    with pytest.raises(AssertionError) as refusal:
        await place.kubectl(*arguments, stdin=stdin)
    return str(refusal.value)
