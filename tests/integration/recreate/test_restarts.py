"""Container restarts on a real apiserver, as users see them with kubectl and flotilla; the test acts as the agent."""

import asyncio
import json
import subprocess
import sys
from datetime import datetime

import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_nodeagent.reader import Reader
from tests.integration.recreate.conftest import NODE, PATIENCE, Space, request, state
from tests.support.broker import environment
from tests.support.cluster import eventually
from tests.support.fleet import Fleet
from tests.testkit.documents import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")
ACTIVE, FINALIZER = "crr.apps.kruise.io/active", "crr.apps.kruise.io/unready-acquired"
SYNC = "crr.apps.kruise.io/sync-container-statuses"


def said(fleet: Fleet, *arguments: str) -> str:
    line = [sys.executable, "-m", "flotilla_cli", *arguments, f"--nats={fleet.nats.url}"]
    env = environment(fleet.nats)
    reply = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert reply.returncode == 0, reply.stderr
    return reply.stdout


async def test_a_restart_from_creation_to_completion(space: Space):
    """The request is written in the older version, and read in both."""
    pod = await space.pod()
    made = space.request("app", version="v1alpha1")
    identity = pod["status"]["containerStatuses"][0]["containerID"]
    assert made["apiVersion"] == "apps.kruise.io/v1alpha1"
    assert made["metadata"]["labels"] == {
        ACTIVE: "true",
        "crr.apps.kruise.io/pod-uid": pod["metadata"]["uid"],
        "crr.apps.kruise.io/node-name": NODE,
    }
    assert made["spec"]["strategy"] == {"failurePolicy": "Fail", "terminationGracePeriodSeconds": 30}
    (container,) = made["spec"]["containers"]
    assert container["statusContext"] == {"containerID": identity, "restartCount": 0}
    assert container["preStop"]["httpGet"] == {"path": "/bye", "port": "http", "scheme": "HTTP"}
    assert container["ports"] == [{"name": "http", "containerPort": 80, "protocol": "TCP"}]

    await space.accepted()
    assert space.status() == {"phase": "Recreating"}
    await space.accepted(state("app", "Pending"))
    await space.accepted(state("app", "Recreating", killed=True))
    new = space.restart("app")
    seen = [{"name": "app", "ready": True, "restartCount": 1, "containerID": new}]
    await eventually(lambda: space.status().get("containerStatusSnapshot") == seen, PATIENCE)
    alpha = space.read("containerrecreaterequests.v1alpha1.apps.kruise.io", "restart")
    assert json.loads(alpha["metadata"]["annotations"][SYNC]) == seen
    assert "containerStatusSnapshot" not in alpha["status"]

    await space.accepted(state("app", "Succeeded", killed=True), phase="Completed")
    await eventually(lambda: ACTIVE not in space.read("crr", "restart")["metadata"]["labels"], PATIENCE)
    status = space.status()
    assert status["containerRecreateStates"] == [{"name": "app", "phase": "Succeeded", "isKilled": True}]
    assert (status["phase"], "message" in status) == ("Completed", False)
    assert datetime.fromisoformat(status["completionTime"])
    header, row = space.kubectl("get", "crr").splitlines()
    assert header.split() == ["NAME", "PHASE", "POD", "NODE", "AGE"]
    assert row.split()[:4] == ["restart", "Completed", "web", NODE]
    assert space.kubectl("get", "containerrecreaterequests.v1alpha1.apps.kruise.io").split()[:5] == header.split()
    stored = space.read("containerrecreaterequests.v1beta1.apps.kruise.io", "restart")
    assert "annotations" not in stored["metadata"]


async def test_what_the_agent_is_given(bus: NatsBus, space: Space):
    """A request as long as it is active; it goes after its time to live."""
    await space.pod()
    made = space.request("side", strategy={"forceRecreate": True}, ttlSecondsAfterFinished=0)
    given: dict[str, Json] = {}

    def take(message: Message) -> None:
        given[message.subject] = json.loads(message.data) if message.data else {}

    reader = Reader(
        bus=bus,
        clock=SystemClock(),
        entropy=SystemEntropy(),
        node=NODE,
        resource=RECREATE_REQUEST,
        on_message=take,
        on_reset=given.clear,
    )
    reading = asyncio.create_task(reader.run())
    subject = subjects.node_object(NODE, RECREATE_REQUEST, space.name, "restart")
    await eventually(lambda: given.get(subject, {}).get("spec") == made["spec"], PATIENCE)
    assert given[subject]["metadata"]["uid"] == made["metadata"]["uid"]
    await space.accepted(phase="Completed", message="enough")
    await eventually(lambda: given[subject] == {} and not space.read("crr")["items"], PATIENCE)
    reading.cancel()
    await asyncio.wait([reading])


async def test_the_pod_is_out_of_service_for_the_grace_period(space: Space):
    await space.pod()
    space.request("app", strategy={"unreadyGracePeriodSeconds": 30})
    await space.accepted()
    held = json.dumps(
        [{"userAgent": "ContainerRecreateRequest", "key": f"{space.name}/restart"}], separators=(",", ":")
    )
    condition = space.condition("web", "KruisePodReady")
    assert (condition["status"], condition["message"]) == ("False", held)
    assert space.condition("web", "Ready")["status"] == "False"
    beta, alpha = (
        space.read(f"containerrecreaterequests.{version}.apps.kruise.io", "restart")
        for version in ("v1beta1", "v1alpha1")
    )
    (grace,) = beta["status"]["conditions"]
    assert (grace["type"], grace["status"], grace["reason"]) == ("PreRecreateGrace", "True", "PreRecreateGrace")
    assert beta["metadata"]["finalizers"] == [FINALIZER]
    assert alpha["metadata"]["annotations"][FINALIZER] == grace["lastTransitionTime"]
    again = space.refused(
        "annotate", "--overwrite", "containerrecreaterequests.v1alpha1.apps.kruise.io", "restart", f"{FINALIZER}=x"
    )
    assert f"not allowed to update immutable annotation {FINALIZER}" in again
    await space.accepted(state("app", "Succeeded", killed=True), phase="Completed")
    await eventually(lambda: space.condition("web", "Ready")["status"] == "True", PATIENCE)
    assert space.condition("web", "KruisePodReady")["message"] == "[]"
    assert "finalizers" not in space.read("crr", "restart")["metadata"]
    assert space.status()["conditions"] == [grace]


async def test_deleted_while_it_keeps_the_pod_out_of_service(space: Space):
    await space.pod()
    space.request("app", strategy={"unreadyGracePeriodSeconds": 300})
    await space.accepted()
    space.kubectl("delete", "crr", "restart", "--timeout=20s")
    assert space.condition("web", "KruisePodReady")["status"] == "True"


async def test_what_flotilla_tells(shared: Fleet, space: Space):
    await space.pod(gated=False)
    space.request("app", "side", activeDeadlineSeconds=600)
    where = ("-n", space.name)
    await eventually(lambda: "WaitingForNodeAgent" in said(shared, "explain", "crr", "restart", *where), PATIENCE)
    await space.accepted(state("app", "Recreating", killed=True), state("side", "Pending"))
    card = said(shared, "get", "crr", "restart", *where, f"--kubeconfig={shared.cluster.kubeconfig}")
    assert card.splitlines()[0].startswith(
        f"ContainerRecreateRequest {space.name}/restart  Recreating: pod web on {NODE}"
    )
    assert "waiting: the kubelet has not started container app again yet" in card
    assert [line.split()[-5:-2] for line in card.splitlines()[-2:]] == [
        ["app", "Recreating", "yes"],
        ["side", "Pending", "no"],
    ]


async def test_many_requests_at_once(space: Space):
    await asyncio.gather(*(space.pod(f"web-{number}") for number in range(4)))
    names = [f"r-{number}" for number in range(20)]
    documents = [
        request("app", name=name, pod=f"web-{number % 4}", strategy={"unreadyGracePeriodSeconds": 0})
        for number, name in enumerate(names)
    ]
    space.create(*documents)
    uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in space.read("crr")["items"]}

    async def work(name: str) -> None:
        await space.accepted(state("app", "Pending"), name=name, uid=uids[name])
        await space.accepted(state("app", "Succeeded", killed=True), phase="Completed", name=name, uid=uids[name])

    await asyncio.gather(*map(work, names))
    done = space.read("crr")["items"]
    assert {item["status"]["phase"] for item in done} == {"Completed"}

    def all_given_back() -> bool:
        return all(not {"finalizers"} & item["metadata"].keys() for item in space.read("crr")["items"]) and all(
            space.condition(f"web-{number}", "KruisePodReady")["message"] == "[]" for number in range(4)
        )

    await eventually(all_given_back, PATIENCE)
