"""Any request to the webhook is answered in time, within the memory that the chart grants (webhooks.md §1).

`REQUESTS` by default; FLOTILLA_HOSTILE sets the number.
"""

import asyncio
import io
import time
from collections import Counter
from pathlib import Path

import aiohttp
import msgspec
import pytest
import yaml

from flotilla_common.api.resources import MUTATING, VALIDATING
from flotilla_common.api.webhooks import CONVERT_PATH, MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.settings import Settings
from tests.support.fleet import Fleet, memory_mib
from tests.support.hostile.amount import amount, is_nightly
from tests.support.hostile.reviews import Reviews

REQUESTS = 100
AT_ONCE = 3
MOST_SECONDS = 3.0
MOST_SECONDS_OF_NEARLY_ALL = 1.0
"""Limit for 99 in a hundred requests."""

VALUES = Path(__file__).parents[2] / "helm" / "flotilla" / "values.yaml"
pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(7200)]


async def test_hostile_requests_are_answered_in_time(shared: Fleet) -> None:
    paths, reviews = await _paths(shared), Reviews(seed=1)
    answers: Counter[int] = Counter()
    seconds: list[float] = []
    broken: list[str] = []

    async def send(session: aiohttp.ClientSession, numbers: "asyncio.Queue[int]") -> None:
        while not numbers.empty():
            number = numbers.get_nowait()
            path = paths[number % len(paths)]
            body = await asyncio.to_thread(reviews.draw, path)
            begun = time.monotonic()
            async with session.post(shared.webhook_url + path, data=io.BytesIO(body), ssl=False) as response:
                text = await response.text()
            seconds.append(time.monotonic() - begun)
            answers[response.status] += 1
            if response.status >= 500 or "panic: " in text:
                broken.append(f"request {number} to {path}: {response.status} {text[:300]}")

    numbers = asyncio.Queue[int]()
    for number in range(amount(REQUESTS)):
        numbers.put_nowait(number)
    async with aiohttp.ClientSession(headers={"Content-Type": "application/json"}) as session:
        await asyncio.gather(*(send(session, numbers) for _ in range(AT_ONCE)))
    peak = memory_mib(shared.members["webhook"].process.pid, "VmHWM")
    seconds.sort()
    print(f"\n{dict(answers)}; slowest {seconds[-1]:.2f} s, 99 in a hundred {seconds[-len(seconds) // 100 - 1]:.2f} s")
    print(f"at most {peak:.0f} MiB")
    assert not broken, "\n".join(broken[:20])
    assert peak <= _memory_limit()
    if is_nightly():  # then it is alone on the machine; test_requests.py counts CPU seconds at any time
        assert seconds[-1] <= MOST_SECONDS
        assert seconds[-len(seconds) // 100 - 1] <= MOST_SECONDS_OF_NEARLY_ALL


async def _paths(flotilla: Fleet) -> list[str]:
    """Return the registered webhooks, and the path of conversions."""
    found = {CONVERT_PATH, "/mutate-pod"}
    api = KubeClient(
        await load_config(Settings(kubeconfig=str(flotilla.cluster.kubeconfig)), reader=read_here), user_agent="test"
    )
    try:
        for resource, name in ((MUTATING, MUTATING_CONFIGURATION), (VALIDATING, VALIDATING_CONFIGURATION)):
            configuration = msgspec.json.decode(await api.get(resource, "", name))
            urls = (str(one["clientConfig"]["url"]) for one in configuration["webhooks"])
            found |= {url.removeprefix(flotilla.webhook_url) for url in urls}
    finally:
        await api.close()
    return sorted(found)


def _memory_limit() -> float:
    """Return the MiB that the chart gives a service."""
    limit = str(yaml.safe_load(VALUES.read_text())["manager"]["resources"]["limits"]["memory"])
    assert limit.endswith("Mi")
    return float(limit.removesuffix("Mi"))
