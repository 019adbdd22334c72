"""CloneSets that the webhook would have refused: they are reported, cost nothing, and disturb no others."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from tests.support.fleet import Fleet, install
from tests.support.observer import Promise
from tests.support.scene import NEW, OLD, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

CONFIGURATIONS = (
    ("mutatingwebhookconfiguration", MUTATING_CONFIGURATION),
    ("validatingwebhookconfiguration", VALIDATING_CONFIGURATION),
)
FEW = 60
"""Passes that all bad objects together may cause in five seconds, a while after they came."""


def broken(name: str, **spec: Any) -> dict[str, Any]:
    """Return a CloneSet with these members of its spec replaced; None removes a member."""
    document = cloneset(name, 1)
    document["spec"] = {key: value for key, value in {**document["spec"], **spec}.items() if value is not None}
    return document


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """Return a template with this pod spec."""
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def rolling(**members: Any) -> dict[str, Any]:
    """Return an update strategy."""
    return {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", **members}}


UNKNOWN_OPERATOR = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}

HOPELESS = {
    "other-labels": ({"template": pod("somebody-else", containers=[{"name": "main", "image": OLD}])}, "selector"),
    "no-selector": ({"selector": {}}, "spec.selector is empty"),
    "operator": ({"selector": UNKNOWN_OPERATOR}, "spec.selector"),
    "no-values": ({"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}}, "spec.selector"),
    "empty-template": ({"template": {}}, ""),
    "no-containers": ({"template": pod("no-containers")}, "spec.containers"),
    "text-for-spec": ({"template": {"metadata": {"labels": {"app": "text-for-spec"}}, "spec": "containers"}}, ""),
    "text-for-containers": ({"template": pod("text-for-containers", containers="main")}, ""),
    "list-for-labels": ({"template": {"metadata": {"labels": ["app"]}, "spec": {"containers": []}}}, ""),
    "number-for-claims": ({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": 5}]}, ""),
    "scale-limit": ({"scaleStrategy": {"maxUnavailable": "some"}}, "scaleStrategy.maxUnavailable"),
}
"""Specs without any valid result, and the text that `explain` has to contain for each."""

TOLERABLE = {
    "no-strategy": {"updateStrategy": None},
    "no-replicas": {"replicas": None},
    "words-for-limits": {"updateStrategy": rolling(maxUnavailable="many", maxSurge="few", partition="some")},
    "negative-limits": {"updateStrategy": rolling(maxUnavailable=-5, maxSurge=-5, partition=-5)},
    "huge-percent": {"updateStrategy": rolling(maxUnavailable="1000%", maxSurge="1000%")},
    "negative-times": {"minReadySeconds": -1, "progressDeadlineSeconds": -1, "revisionHistoryLimit": -1},
    "policy": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "Magic"}}},
    "hooks": {"lifecycle": {"preDelete": {}, "inPlaceUpdate": {"labelsHandler": {}}}},
    "nameless-claim": {"volumeClaimTemplates": [{"spec": {"accessModes": ["ReadWriteOnce"]}}]},
    "names": {"scaleStrategy": {"podsToDelete": ["", "../x", "nobody"]}},
}
"""Partly invalid specs that still get their one pod."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def unguarded(flotilla: Fleet) -> AsyncIterator[Fleet]:
    """Take the webhook away for the time of the file, as before its installation."""
    flotilla.kill("webhook")
    for configuration in CONFIGURATIONS:
        await asyncio.to_thread(flotilla.cluster.kubectl, "delete", *configuration)
    yield flotilla
    await asyncio.to_thread(install, flotilla.cluster, flotilla.webhook_url)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(unguarded: Fleet) -> AsyncIterator[Scene]:
    """Create all bad CloneSets at once."""
    async with scene(unguarded) as made:
        documents = [broken(name, **spec) for name, (spec, _) in HOPELESS.items()]
        await made.create(*documents, *(broken(name, **spec) for name, spec in TOLERABLE.items()))
        yield made


async def test_all_are_reported(place: Scene) -> None:
    """On the bus, and for objects without any action also in an event."""
    async with place.flotilla.bus() as bus:
        for name, (_, text) in HOPELESS.items():
            said = b""
            for _ in range(100):
                message = await bus.get_last("why", f"why.v1.clonesets.{place.namespace}.{name}")
                said = message.data if message else b""
                why = msgspec.json.decode(said, type=dict[str, Any]) if said else {}
                if text in said.decode() and (why.get("errors") or why.get("reasons")):
                    break
                await asyncio.sleep(0.1)
            else:
                raise AssertionError(f"{name}: {said.decode()} lacks {text!r}")
    assert [pod for name in HOPELESS for pod in place.seen.of(name)] == []


async def test_none_is_refused_in_silence(place: Scene) -> None:
    """An event or a condition reports it to users who look at the object only."""

    async def silent() -> list[str]:
        events = (await place.read("events"))["items"]
        reported = {event["involvedObject"]["name"] for event in events if event["type"] == "Warning"}
        reported |= {name for name, one in place.seen.clonesets.items() if one.status.conditions}
        reported.add("scale-limit")  # it works, with a limit of 0
        return sorted(HOPELESS.keys() - reported)

    for _ in range(300):
        if not await silent():
            break
        await asyncio.sleep(0.1)
    assert await silent() == []


async def test_the_rest_gets_its_pod(place: Scene) -> None:
    for name in TOLERABLE:
        await place.settle(name, OLD, 1)


async def test_they_cost_nothing(place: Scene) -> None:
    service = place.flotilla.members["cloneset"]
    await asyncio.sleep(3)  # the first, quick retries are over
    passes, cpu = service.metric("controller_runtime_reconcile_total"), service.cpu_seconds()
    await asyncio.sleep(5)
    assert service.metric("controller_runtime_reconcile_total") - passes <= FEW
    assert service.cpu_seconds() - cpu < 1


async def test_others_go_on(place: Scene) -> None:
    await place.create(cloneset("web", 20, maxUnavailable=5))
    await place.settle("web", OLD, 20)
    place.seen.promise(Promise(cloneset="web", replicas=20, max_unavailable=5))
    await place.roll("web", NEW)
    await place.settle("web", NEW, 20)
    await place.end()


async def test_corrected_they_work(place: Scene) -> None:
    """The error disappears with the object's next version; a service that starts beside the others copes as well."""
    for name in ("no-selector", "no-containers", "text-for-spec"):
        right = cloneset(name, 2)["spec"]
        patch = [{"op": "replace", "path": f"/spec/{member}", "value": right[member]} for member in right]
        await place.kubectl("patch", "clone", name, "--type=json", "-p", json.dumps(patch))
        await place.settle(name, OLD, 2)
    await place.flotilla.restart("cloneset")
    await place.roll("web", "nginx:3")
    await place.settle("web", "nginx:3", 20)
    await place.end()
