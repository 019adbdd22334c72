"""States of containers and pods (ephemeraljob.md §7.1)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import ContainerStatus, Pod
from flotilla_jobs.ephemeraljob.targets import Target, container_state, pod_state
from tests.unit.ephemeraljob.world import BROKEN, DONE, RUNS, STATES

S, F, R, W, U = "Succeeded", "Failed", "Running", "Waiting", "Unknown"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(STATES[DONE], S, id="exit code 0"),
        pytest.param({"terminated": {"exitCode": 0}}, U, id="exit code 0, not finished"),
        pytest.param(STATES[BROKEN], F, id="another exit code"),
        pytest.param({"terminated": {"exitCode": 128, "reason": "StartError"}}, F, id="not started"),
        pytest.param(STATES[RUNS], R, id="running"),
        pytest.param(STATES["created"], W, id="being created"),
        pytest.param(STATES["no image"], W, id="back-off"),
        pytest.param({"waiting": {"reason": "ErrImagePull"}}, W, id="image"),
        pytest.param(STATES["no command"], F, id="cannot be run"),
        pytest.param({}, U, id="nothing is said"),
    ],
)
def test_containers(state: dict[str, Any], expected: str):
    assert container_state(msgspec.convert({"name": "dbg", "state": state}, ContainerStatus)) == expected


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"a": F, "b": S}, F),
        ({"a": R, "b": F}, F),
        ({"a": S, "b": S}, S),
        ({"a": S}, U),
        ({"a": S, "b": R}, R),
        ({"a": W, "b": R}, R),
        ({"a": W}, W),
        ({"a": S, "b": W}, W),
        ({"a": S, "b": U}, U),
        ({}, U),
    ],
)
def test_pods(states: dict[str, str], expected: str):
    assert pod_state(states, {"a", "b"}) == expected


def test_without_a_template_nothing_succeeds():
    assert pod_state({}, ()) == U


@pytest.mark.parametrize(
    ("injected", "states", "at_work"),
    [
        pytest.param("", {}, False, id="not injected"),
        pytest.param("ab", {}, True, id="nothing is said yet"),
        pytest.param("ab", {"a": S}, True, id="nothing is said of the other"),
        pytest.param("ab", {"a": W, "b": W}, True, id="waiting"),
        pytest.param("ab", {"a": S, "b": R}, True, id="running"),
        pytest.param("ab", {"a": F, "b": R}, False, id="failed"),
        pytest.param("ab", {"a": S, "b": S}, False, id="succeeded"),
        pytest.param("a", {"a": S}, False, id="the template had one container then"),
    ],
)
def test_what_parallelism_counts(injected: str, states: dict[str, str], at_work: bool):
    target = Target(Pod(), frozenset(injected), states, pod_state(states, {"a", "b"}))
    assert target.at_work == at_work
