"""kill -9 of every process in the middle of a rollout of 200 pods: it ends right, and nothing is broken on the way."""

import random

import pytest

from tests.support.fleet import SERVICES, Fleet
from tests.support.random_kills import MOST, kill_round, under_one_holder
from tests.support.scene import Rollout

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service(flotilla: Fleet, web: Rollout, service: str) -> None:
    await web.begin()
    assert web.done < 200
    await flotilla.restart(service)
    await web.end()


async def test_nats_server(flotilla: Fleet, web: Rollout) -> None:
    await web.begin()
    await flotilla.kill_bus()
    await flotilla.start_bus()
    await web.end()


@pytest.mark.parametrize("components", [["kube-apiserver"], ["etcd"], ["kube-apiserver", "etcd"]], ids="+".join)
async def test_the_control_plane(flotilla: Fleet, web: Rollout, components: list[str]) -> None:
    await web.begin()
    await flotilla.kill_component(*components)
    await flotilla.repair_control_plane()
    await web.end()


async def test_everything_at_once(flotilla: Fleet, web: Rollout) -> None:
    await web.begin()
    for service in SERVICES:
        flotilla.kill(service)
    await flotilla.kill_bus()
    await flotilla.kill_component("kube-apiserver", "etcd")
    await flotilla.repair_control_plane()
    await flotilla.start_bus()
    for service in SERVICES:
        await flotilla.start(service, wait=False)
    await web.end()


async def test_kills_at_random(flotilla: Fleet, web: Rollout) -> None:
    """The next process finishes or undoes what a killed one has begun: no more pods than allowed are not Ready."""
    async with under_one_holder(flotilla):
        most, killed = await kill_round(flotilla, web, random.Random(29))
    assert len(killed) > 3
    assert most <= MOST
