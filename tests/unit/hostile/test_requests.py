"""Every request to the webhook gets a verdict, in bounded time: no text blocks its only thread.

`REQUESTS` by default; FLOTILLA_HOSTILE sets the number.
"""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from flotilla_common.api.webhooks import CONVERT_PATH
from flotilla_common.clock import SystemClock
from flotilla_common.gates import Gates
from flotilla_common.settings import Settings
from flotilla_webhook.chain import chain_of
from flotilla_webhook.kinds import handlers_of
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.server.http_server import build
from flotilla_webhook.server.reviews import convert
from tests.support.dice import Dice
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.support.hostile.amount import amount
from tests.support.hostile.reviews import Reviews
from tests.support.timing import measured
from tests.testkit.apiserver import FakeApi
from tests.unit.webhook.asgi import call
from tests.unit.webhook.fakes import records

REQUESTS = 700
MOST_SECONDS = 3.0
"""CPU limit of a request, for which all others wait."""

MOST_BYTES = 4096
"""Maximum size of a message, which a user has to read."""


@pytest.mark.timeout(7200)
async def test_every_request_gets_a_verdict() -> None:
    app, paths = _application()
    reviews = Reviews(seed=0)
    problems: list[str] = []
    for number in range(amount(REQUESTS)):
        path = paths[number % len(paths)]
        body = reviews.draw(path)
        with measured() as seconds:
            status, answer = await call(app, path, body)
            spent = seconds()
        problems += [f"request {number} to {path}: {text}" for text in _problems(status, answer, spent)]
    assert not problems, "\n".join(problems[:20])


def _application() -> tuple[FastAPI, list[str]]:
    """Return the webhook with an apiserver that takes everything, and its paths."""
    api, clock, settings, gates = FakeApi().api, FakeClock(), Settings(), Gates.parse("")
    metrics = Metrics(CollectorRegistry())
    handlers = handlers_of(api, clock, settings, gates, metrics)
    chain = chain_of(api, FakeBus(), clock, Dice(), settings, gates, records(FakeApi()))
    handlers |= chain.handlers()
    return build(handlers, convert, metrics, SystemClock()), sorted([*handlers, CONVERT_PATH])


def _problems(status: int, answer: bytes, spent: float) -> Iterator[str]:
    if status >= 500:
        yield f"status {status}"
    if b"panic: " in answer:
        yield answer[:300].decode()
    if spent > MOST_SECONDS:
        yield f"took {spent:.1f} s"
