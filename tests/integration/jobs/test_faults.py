"""Image pulls and container restarts while the jobs service dies, shares its work, or loses the bus."""

import asyncio

import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import RecreateState
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from tests.integration.jobs.conftest import PullSpace, Running
from tests.integration.jobs.test_image_jobs import job
from tests.integration.recreate.conftest import NODE, Space, state
from tests.support.broker import people
from tests.support.cluster import eventually
from tests.support.fake_agents import HANG

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_two_replicas_share_many_jobs(space: PullSpace, running: Running):
    await running.fleet.start("jobs", replica="b")
    names = [f"job-{number}" for number in range(8)]
    for name in names:
        space.apply(job(f"shared:{name}", name, parallelism=4))
    space.apply(job("shared:job-0", "again", parallelism=4))
    for name in (*names, "again"):
        await asyncio.to_thread(space.done, name, succeeded=4, message="job has completed", seconds=60)
    for node in space.nodes:
        tags = space.tags(node)
        assert {f"shared:{name}" for name in names} <= tags.keys()
        owners = {owner["name"] for owner in tags["shared:job-0"]["ownerReferences"]}
        assert owners == {"job-0", "again"}
    await running.fleet.healthy()
    running.fleet.kill("jobs-b")


async def test_a_service_that_dies_repeats_and_loses_nothing(space: PullSpace, running: Running):
    node, other = space.nodes[:2]
    space.agents.answers[node, "nginx:killed"] = HANG
    names = {"names": [node, other]}
    space.apply(job("nginx:killed", parallelism=2, selector=names))
    await asyncio.to_thread(space.done, succeeded=1, active=1, seconds=60)
    running.fleet.kill("jobs")
    del space.agents.answers[node, "nginx:killed"]
    await running.fleet.start("jobs")
    await asyncio.to_thread(space.done, succeeded=2, message="job has completed", seconds=60)
    pulls = [pull for pull in space.agents.pulls if pull[1] == "nginx:killed"]
    assert sorted(pulls) == [(node, "nginx:killed", 0), (other, "nginx:killed", 0)]


async def test_a_container_restart_goes_on_after_the_death_of_the_service(space: PullSpace, running: Running):
    """The agent repeats the report without an answer; the pod is back in service at the end."""
    client = NatsBus(people(running.fleet.nats), name="agent", inbox_prefix=subjects.node_inbox(NODE))
    await client.ensure_stream(subjects.ACT_STREAM)  # returns when it is connected
    restarts = Space(running.cluster, client, space.name)
    await restarts.pod()
    restarts.request("app", strategy={"unreadyGracePeriodSeconds": 60})
    await restarts.accepted(state("app", "Pending"))
    running.fleet.kill("jobs")
    killed = state("app", "Recreating", killed=True)
    with pytest.raises(BusError):
        await restarts.report(killed)
    await running.fleet.start("jobs")
    await asyncio.wait_for(insist(restarts, killed), 40)
    restarts.restart("app")
    await restarts.accepted(state("app", "Succeeded", killed=True), phase="Completed")
    await eventually(lambda: restarts.condition("web", "KruisePodReady")["status"] == "True")
    await client.close()


async def insist(restarts: Space, killed: RecreateState) -> None:
    """Report as an agent does: repeat until the report is accepted."""
    while True:
        try:
            if (await restarts.report(killed)).accepted:
                return
        except BusError:
            await asyncio.sleep(0.2)


async def test_a_bus_that_is_away_for_a_while(space: PullSpace, running: Running):
    node = space.nodes[2]
    space.agents.answers[node, "nginx:bus"] = HANG
    space.apply(job("nginx:bus", selector={"names": [node]}))
    await asyncio.to_thread(space.done, active=1)
    await eventually(lambda: (node, "nginx:bus", 0) in space.agents.pulls)  # counted before received
    await running.fleet.kill_bus()
    del space.agents.answers[node, "nginx:bus"]
    await eventually(lambda: (node, "nginx:bus", 0) in space.agents.ended)
    assert space.job()["active"] == 1, "the report does not arrive meanwhile"
    await running.fleet.start_bus()
    await asyncio.to_thread(space.done, succeeded=1, message="job has completed", seconds=60)
    await running.fleet.healthy(60)
