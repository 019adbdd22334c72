"""Interruptions: pods that are deleted, agents that repeat themselves or lie, others who hold the pod."""

import asyncio
import json

import pytest

from flotilla_common.bus.interface import BusError
from tests.integration.recreate.conftest import PATIENCE, Space, state
from tests.support.cluster import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
ACTIVE = "crr.apps.kruise.io/active"


def ended(space: Space) -> tuple[str, str]:
    status = space.status()
    return status.get("phase", ""), status.get("message", "")


async def test_the_pod_is_deleted_meanwhile(space: Space):
    await space.pod()
    space.request("app", strategy={"unreadyGracePeriodSeconds": 60})
    await space.accepted(state("app", "Pending"))
    space.kubectl("delete", "pod", "web", "--wait=false")
    await eventually(lambda: ended(space) == ("Completed", "pod has gone"), PATIENCE)
    await eventually(lambda: not space.read("crr", "restart")["metadata"].get("finalizers"), PATIENCE)
    (ended_state,) = space.status()["containerRecreateStates"]
    assert ended_state == {"name": "app", "phase": "Failed", "message": "pod has gone"}


async def test_reports_that_do_not_count(space: Space):
    """The bus guarantees the node in the subject: the answer for another node goes to an inbox of its own."""
    await space.pod()
    space.request("app")
    other = await space.report(uid="00000000-0000-0000-0000-000000000000")
    assert (other.accepted, other.again) == (False, False)
    assert "no object with uid" in other.why
    missing = await space.report(name="nobody", uid="x")
    assert (missing.accepted, missing.again) == (False, False)
    unknown = await space.report(state("db", "Pending"))
    assert unknown.why == "container 'db' is not in the request"
    with pytest.raises(BusError):
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
