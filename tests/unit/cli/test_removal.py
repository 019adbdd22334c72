"""Waiting for objects that are being removed, and the messages about those that stay."""

from typing import cast

import msgspec
import pytest

from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.installation.manifests import manifests
from flotilla_insight.installation.objects import GONE_SECONDS, gone, holds_up
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json

DEFINITION = next(document for document in manifests(Gates.parse("")) if document["kind"] == "CustomResourceDefinition")
WHY = "CustomResource deletion is in progress"


def leaving(*conditions: tuple[str, str, str]) -> Json:
    return {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [{"type": kind, "status": is_so, "message": why} for kind, is_so, why in conditions]},
    }


class Leaving:
    """An apiserver whose object is gone at a certain time."""

    def __init__(self, clock: FakeClock, until: float) -> None:
        self._clock, self._until = clock, until
        self.nudges = 0

    async def get(self, *_: object) -> bytes:
        if self._clock.monotonic() >= self._until:
            raise ApiError(404, "NotFound", "not found")
        return msgspec.json.encode(leaving(("Established", "True", "accepted"), ("Terminating", "True", WHY)))

    async def patch(self, *_: object) -> bytes:
        self.nudges += 1
        return b"{}"


@pytest.mark.parametrize(
    ("seconds", "why", "lines", "nudges"),
    [
        pytest.param(0, "", 0, 0, id="gone already"),
        pytest.param(1, "", 0, 0, id="a moment is not worth a word"),
        pytest.param(57, "", 1, 11, id="said once, nudged every five seconds"),
        pytest.param(GONE_SECONDS + 60, WHY, 1, 23, id="never"),
    ],
)
async def test_waiting_until_an_object_is_gone(seconds: float, why: str, lines: int, nudges: int):
    clock, told = FakeClock(), list[str]()
    server = Leaving(clock, seconds)
    assert await gone(cast("Api", server), clock, DEFINITION, told.append) == why
    assert len(told) == lines
    assert server.nudges == pytest.approx(nudges, abs=1)
    assert all(WHY in line for line in told)


@pytest.mark.parametrize(
    ("live", "says"),
    [
        pytest.param(leaving(("Terminating", "True", WHY)), WHY, id="definition"),
        pytest.param(
            leaving(
                ("NamespaceDeletionDiscoveryFailure", "False", "all resources found"),
                ("NamespaceContentRemaining", "True", "pods. has 1 resource instances"),
                ("NamespaceFinalizersRemaining", "True", "example.com/hold in 1 resource instances"),
            ),
            "pods. has 1 resource instances; example.com/hold in 1 resource instances",
            id="namespace",
        ),
        pytest.param(leaving(), "the apiserver reports no reason", id="nothing"),
    ],
)
def test_what_holds_an_object_up(live: Json, says: str):
    assert holds_up(live) == says
