"""Measures how many pods are not Ready at once in rollouts of 200 pods while services are killed at random.

    python -m tests.support.random_kills [ROUNDS] [SEED]     # prints the maximum of each round

A killed service is restarted at once under the same holder of leases, as `flotilla run --split` and a kubelet do: so
the next process continues where the last one was interrupted.
"""

import asyncio
import random
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from flotilla_common.api.core import Pod
from flotilla_common.clock import SystemClock
from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.observer import Change
from tests.support.scene import Rollout, rollout

PODS, MOST = 200, 40
KILLING_SECONDS = 6.0
PAUSE = (0.2, 1.5)  # seconds between two kills
START_AGAIN = 0.1  # seconds after a kill


def unready(history: Sequence[Change], since: int) -> Iterator[int]:
    """Yield how many pods are not Ready after each change of the history from `since` on."""
    pods: dict[str, Pod] = {}
    for number, change in enumerate(history):
        pods.pop(change.pod.metadata.name, None)
        if not change.gone:
            pods[change.pod.metadata.name] = change.pod
        if number >= since:
            yield sum(not pod.ready for pod in pods.values())


async def start_again(flotilla: Fleet, service: str) -> None:
    """kill -9 of a service, if it runs, and its next process."""
    if service in flotilla.members:
        flotilla.kill(service)
    await SystemClock().sleep(START_AGAIN)
    await flotilla.start(service, wait=False, flags=[f"--lease-holder={service}-of-the-test"])


async def kill_at_random(flotilla: Fleet, dice: random.Random) -> list[str]:
    """Kill services for a while; return their names."""
    clock, killed = SystemClock(), list[str]()
    end = clock.monotonic() + KILLING_SECONDS
    while clock.monotonic() < end:
        killed.append(dice.choice(SERVICES))
        await start_again(flotilla, killed[-1])
        await clock.sleep(dice.uniform(*PAUSE))
    return killed


async def kill_round(flotilla: Fleet, web: Rollout, dice: random.Random) -> tuple[int, list[str]]:
    """Change the image, kill at random, wait for the end; return the most unready pods, and the killed services."""
    await web.begin(0)
    since = len(web.place.seen.history)
    killed = await kill_at_random(flotilla, dice)
    await web.end()
    return max(unready(web.place.seen.history, since)), killed


@asynccontextmanager
async def under_one_holder(flotilla: Fleet) -> AsyncGenerator[None]:
    """Have each service's processes hold their leases under one name for the time of the block."""
    for service in SERVICES:
        await start_again(flotilla, service)
    await flotilla.healthy()
    yield
    for service in SERVICES:
        await flotilla.restart(service)


async def main(rounds: int, seed: int) -> None:
    """Run and report this many rounds."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            control_plane(Path(folder)) as cluster,
            fleet(cluster) as flotilla,
            under_one_holder(flotilla),
            rollout(flotilla, PODS, MOST) as web,
        ):
            for number in range(1, rounds + 1):
                most, killed = await kill_round(flotilla, web, dice)
                print(f"round {number}: at most {most} not Ready; killed {' '.join(killed)}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*map(int, (sys.argv[1:] + ["10", "29"][len(sys.argv[1:]) :])[:2])))
