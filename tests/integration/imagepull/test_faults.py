"""Image pulls while the jobs service dies, shares its work, has its clock set, or loses the bus."""

import asyncio

import pytest

from tests.integration.imagepull.conftest import PullSpace, Running
from tests.integration.imagepull.test_jobs import job
from tests.support import set_clock
from tests.support.cluster import eventually
from tests.support.fake_agents import HANG

pytestmark = pytest.mark.asyncio(loop_scope="module")
FLAGS = ("--shards=4", "--lease-duration=4s", "--lease-retry-period=500ms")


async def test_two_replicas_share_many_jobs(space: PullSpace, running: Running):
    await running.fleet.start("jobs", replica="b")
    names = [f"job-{number}" for number in range(12)]
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


async def test_the_clock_of_the_service_is_set(space: PullSpace, running: Running):
    """Deadlines and TTLs depend on that clock, as in Kubernetes' own controllers.

    An hour forward ends what had half an hour left. Nothing else ends, nothing is pulled twice, and when the clock is
    set back, work continues.
    """
    node = space.nodes[0]
    file = running.cluster.plane.places.state_dir / "jobs.clock"
    running.fleet.kill("jobs")
    await running.fleet.start("jobs", program=set_clock.command(file, "flotilla_cli"))
    plenty, never = {"type": "Always", "activeDeadlineSeconds": 1800}, {"type": "Always"}
    kept = never | {"ttlSecondsAfterFinished": 1800}
    for name, policy in (("limited", plenty), ("patient", never)):
        space.agents.answers[node, f"clock:{name}"] = HANG
        space.apply(job(f"clock:{name}", name, selector={"names": [node]}, completionPolicy=policy))
        await asyncio.to_thread(space.done, name, active=1)
    space.apply(job("clock:kept", "kept", selector={"names": [node]}, completionPolicy=kept))
    await asyncio.to_thread(space.done, "kept", succeeded=1, message="job has completed")
    set_clock.put(file, 3600)
    for name in ("limited", "patient", "kept"):
        await asyncio.to_thread(touch, space, name)
    await asyncio.to_thread(space.done, "limited", failed=1, failedNodes=[node], active=0)
    await eventually(lambda: not space.seen("ImagePullJob", "kept"))
    set_clock.put(file, -3600)
    del space.agents.answers[node, "clock:patient"]
    await asyncio.to_thread(space.done, "patient", succeeded=1, message="job has completed")
    for name in ("limited", "patient"):
        assert space.job(name)["startTime"] <= space.job(name)["completionTime"]
    pulls = sorted(pull for pull in space.agents.pulls if pull[1].startswith("clock:"))
    assert pulls == [(node, f"clock:{name}", 0) for name in ("kept", "limited", "patient")]
    running.fleet.kill("jobs")
    await running.fleet.start("jobs")


def touch(space: PullSpace, job: str) -> None:
    """Have it looked at, if it is still there."""
    space.cluster.kubectl("-n", space.name, "annotate", "imagepulljob", job, "look=again", check=False)


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
