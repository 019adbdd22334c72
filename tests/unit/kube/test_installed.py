"""Waiting for a CRD."""

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import Resource
from flotilla_common.kube.discovery import LOOK_SECONDS, until_installed
from flotilla_common.kube.interface import ApiError, Page, Unreachable
from tests.unit.control.fakes import ManualClock

MISSING = ApiError(404, "NotFound", "the server could not find the requested resource")


class Discovery:
    def __init__(self, *answers: Exception) -> None:
        self._answers = list(answers)

    async def list(self, resource: Resource, namespace: str = "", **_: object) -> Page:
        if self._answers:
            raise self._answers.pop(0)
        return Page([], "1")


@pytest.mark.parametrize(
    ("answers", "told", "looks"),
    [
        pytest.param([], [], 0, id="there"),
        pytest.param([MISSING] * 3, ["waiting for CRD clonesets.apps.kruise.io"], 3, id="said once, looked for again"),
        pytest.param([ApiError(403, "Forbidden", "no")], [], 0, id="not allowed to look: assumed to exist"),
        pytest.param(
            [Unreachable("refused"), MISSING],
            ["the apiserver is unreachable: refused", "waiting for CRD clonesets.apps.kruise.io"],
            2,
            id="apiserver away",
        ),
    ],
)
async def test_until_installed(answers: list[Exception], told: list[str], looks: int) -> None:
    clock, said = ManualClock(), list[str]()
    started = clock.monotonic()
    await until_installed(Discovery(*answers), clock, CLONE_SET, said.append)  # type: ignore[arg-type]
    assert said == told
    assert clock.monotonic() - started == looks * LOOK_SECONDS
