"""Interruptions: pods that are deleted, agents that repeat themselves or lie, dying services, timeouts."""

import asyncio
import json
from datetime import datetime

import pytest
import pytest_asyncio

from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from tests.integration.recreate.conftest import NODE, PATIENCE, Space, state
from tests.support.cluster import eventually
from tests.support.fleet import Fleet

pytestmark = pytest.mark.asyncio(loop_scope="module")
OWN_PLANE = True
ACTIVE = "crr.apps.kruise.io/active"


def ended(space: Space) -> tuple[str, str]:
    status = space.status()
    return status.get("phase", ""), status.get("message", "")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def silent(flotilla: Fleet, bus: NatsBus) -> Space:
    """Return a namespace whose agent never reports on a request."""
    flotilla.cluster.kubectl("create", "namespace", "silent")
    space = Space(flotilla.cluster, bus, "silent")
    await space.pod()
    space.request("app")
    return space


async def test_a_jobs_service_that_dies_loses_nothing(flotilla: Fleet, space: Space):
    await space.pod()
    space.request("app", strategy={"unreadyGracePeriodSeconds": 60})
    await space.accepted(state("app", "Pending"))
    flotilla.kill("jobs")
    with pytest.raises(BusError):
        await space.report(state("app", "Recreating", killed=True))
    await flotilla.start("jobs")

    async def repeated() -> None:
        while True:
            try:
                if (await space.report(state("app", "Recreating", killed=True))).accepted:
                    return
            except BusError:
                await asyncio.sleep(0.2)

    await asyncio.wait_for(repeated(), 40)
    space.restart("app")
    await space.accepted(state("app", "Succeeded", killed=True), phase="Completed")
    await eventually(lambda: space.condition("web", "KruisePodReady")["status"] == "True", PATIENCE)


async def test_a_request_waits_for_its_agent(silent: Space):
    request = silent.read("crr", "restart")
    assert request["metadata"]["labels"]["crr.apps.kruise.io/node-name"] == NODE
    assert ended(silent) == ("", "")


async def test_the_pod_is_deleted_meanwhile(space: Space):
    await space.pod()
    space.request("app", strategy={"unreadyGracePeriodSeconds": 60})
    await space.accepted(state("app", "Pending"))
    space.kubectl("delete", "pod", "web", "--wait=false")
    await eventually(lambda: ended(space) == ("Completed", "pod has gone"), PATIENCE)
    await eventually(lambda: not space.read("crr", "restart")["metadata"].get("finalizers"), PATIENCE)
    (ended_state,) = space.status()["containerRecreateStates"]
    assert ended_state == {"name": "app", "phase": "Failed", "message": "pod has gone"}


async def test_a_pod_of_the_same_name_is_another_pod(space: Space):
    await space.pod()
    space.request("app")
    await space.accepted(state("app", "Pending"))
    space.kubectl("delete", "pod", "web", "--grace-period=0", "--force")
    await space.pod()
    await eventually(lambda: ended(space) == ("Completed", "pod has gone"), PATIENCE)
    space.request("app", name="second")
    await space.accepted(state("app", "Pending"), name="second")
    assert space.status("second")["phase"] == "Recreating"


async def test_reports_that_do_not_count(space: Space):
    await space.pod()
    space.request("app")
    other = await space.report(uid="00000000-0000-0000-0000-000000000000")
    assert (other.accepted, other.again) == (False, False)
    assert "no object with uid" in other.why
    missing = await space.report(name="nobody", uid="x")
    assert (missing.accepted, missing.again) == (False, False)
    unknown = await space.report(state("db", "Pending"))
    assert unknown.why == "container 'db' is not in the request"
    assert space.status() == {}


async def test_a_node_speaks_only_for_itself(space: Space):
    """The bus guarantees the node in the subject; this is how the service uses it."""
    await space.pod()
    space.request("app")
    with pytest.raises(BusError):  # no answer: it would go to the inbox of another node
        await space.report(node="node-1")
    assert space.status() == {}


async def test_reports_may_be_repeated_and_come_out_of_order(space: Space):
    await space.pod()
    space.request("app")
    reports = [
        space.report(state("app", "Pending")),
        space.report(state("app", "Pending")),
        space.report(state("app", "Recreating", killed=True)),
    ]
    answers = await asyncio.gather(*reports)
    assert all(answer.accepted or answer.again for answer in answers)
    await space.accepted(state("app", "Recreating", killed=True))
    await space.accepted(state("app", "Succeeded", killed=True), phase="Completed")
    before = space.read("crr", "restart")["metadata"]["resourceVersion"]
    await eventually(lambda: ACTIVE not in space.read("crr", "restart")["metadata"]["labels"], PATIENCE)
    late = await space.report(state("app", "Pending"))
    assert late.accepted
    assert int(late.resource_version) >= int(before)
    assert space.status()["containerRecreateStates"] == [{"name": "app", "phase": "Succeeded", "isKilled": True}]


async def test_the_deadline_and_a_kill_that_ends_after_it(space: Space):
    await space.pod()
    made = space.request("app", "side", activeDeadlineSeconds=3)
    await space.accepted(state("app", "Pending"), state("side", "Pending"))
    reason = "recreating has exceeded the activeDeadlineSeconds"
    await eventually(lambda: ended(space) == ("Completed", reason), PATIENCE)
    created = datetime.fromisoformat(made["metadata"]["creationTimestamp"])
    done = datetime.fromisoformat(space.status()["completionTime"])
    assert 3 <= (done - created).total_seconds() <= 30
    await space.accepted(state("app", "Recreating", killed=True), state("side", "Pending"))
    assert space.status()["containerRecreateStates"] == [
        {"name": "app", "phase": "Failed", "message": reason, "isKilled": True},
        {"name": "side", "phase": "Failed", "message": reason},
    ]
    assert ended(space) == ("Completed", reason)


async def test_somebody_else_holds_the_pod_too(space: Space):
    await space.pod()
    entry = {"userAgent": "Lifecycle", "key": "preUpdateHook"}
    body = {"type": "KruisePodReady", "status": "False", "message": json.dumps([entry], separators=(",", ":"))}
    patch = json.dumps({"status": {"conditions": [body]}})
    space.kubectl("patch", "pod", "web", "--subresource=status", "--type=strategic", "-p", patch)
    space.request("app", strategy={"unreadyGracePeriodSeconds": 0})
    await space.accepted()
    holders = json.loads(space.condition("web", "KruisePodReady")["message"])
    assert [holder["userAgent"] for holder in holders] == ["ContainerRecreateRequest", "Lifecycle"]
    await space.accepted(phase="Completed")
    await eventually(lambda: json.loads(space.condition("web", "KruisePodReady")["message"]) == [entry], PATIENCE)
    assert space.condition("web", "KruisePodReady")["status"] == "False"


async def test_nobody_answers(silent: Space):
    """Its minute has been running since the second test of this file."""
    reason = "daemon has not responded for a long time"
    await eventually(lambda: ended(silent) == ("Completed", reason), 60 + PATIENCE)
    request = silent.read("crr", "restart")
    created, completed = request["metadata"]["creationTimestamp"], request["status"]["completionTime"]
    assert (datetime.fromisoformat(completed) - datetime.fromisoformat(created)).total_seconds() >= 60
    assert "containerRecreateStates" not in request["status"]
