"""The next key of a pod, and the reads and writes for it (container-extras.md §B3, §B5)."""

from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Create, Patch, Plan
from flotilla_sidecar.launchpriority.launch import GOOD_SECONDS, Barrier, is_launching, pending
from flotilla_sidecar.launchpriority.plan import LaunchSnapshot, plan, unproven
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, decoded
from tests.unit.control.fakes import START

COMPLETED = "apps.kruise.io/container-launch-priority-completed"
ABSENT = Barrier()
CREATED, READY = {"containerID": "c://1"}, {"containerID": "c://1", "ready": True}


def pod(keys: dict[str, str | None], statuses: dict[str, Json] | None = None, node: str = "n1", **metadata: Any) -> Pod:
    """Return a pod whose containers wait for these keys (None: for none), and what is known of its containers."""
    references = {name: {"configMapKeyRef": {"name": "web-1-barrier", "key": key}} for name, key in keys.items() if key}
    containers = [
        {"name": name, "env": [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": references[name]}]}
        if name in references
        else {"name": name}
        for name in keys
    ]
    known = {"uid": "u1", "version": 1} | metadata
    shown = [{"name": name} | status for name, status in (statuses or {}).items()]
    document = pods_of.pod("web-1", "shop", **known, node=node, containers=containers, phase="Pending", statuses=shown)
    return decoded(document, Pod)


def barrier(*keys: str, **fields: Any) -> Barrier:
    return Barrier(uid="b1", version="7", keys=frozenset(keys), **fields)


def decided(one: Pod, found: Barrier | None = None) -> Plan:
    return plan(LaunchSnapshot(pod=one, barrier=found), START)


def writes(made: Plan) -> list[str]:
    """Return the writes of a plan in a few words."""
    return [said(action) for action in made.actions]


def said(action: Any) -> str:
    if isinstance(action, Create):
        return f"create {action.name} {action.body['data']}"
    assert isinstance(action, Patch)
    if action.resource.kind == "Pod":
        assert action.body == {"metadata": {"annotations": {COMPLETED: "true"}}}
        return "completed"
    return f"patch {action.name} {action.body['data']}"


TWO = {"a": "p_0", "b": "p_10"}
THREE = {"a": "p_0", "b": "p_-1", "c": "p_-2"}
EQUAL = {"a": "p_3", "b": "p_3", "c": "p_1"}


@pytest.mark.parametrize(
    ("one", "found", "expected"),
    [
        pytest.param(pod(TWO), None, [], id="1: the ConfigMap is being asked for"),
        pytest.param(pod(TWO), ABSENT, ["create web-1-barrier {'p_10': 'true'}"], id="1: the highest first"),
        pytest.param(pod(TWO), barrier("p_10"), [], id="1: b is on its way"),
        pytest.param(pod(TWO, {"b": CREATED}), None, [], id="1: b is not ready yet, and nobody has to ask"),
        pytest.param(
            pod(TWO, {"b": READY}),
            barrier("p_10"),
            ["patch web-1-barrier {'p_0': 'true'}", "completed"],
            id="1: b is ready, and a is the last one",
        ),
        pytest.param(pod(TWO, {"b": READY}), barrier("p_10", "p_0"), ["completed"], id="1: only the pod does not know"),
        pytest.param(pod(TWO, {"a": CREATED, "b": READY}), None, ["completed"], id="1: a proves its own key"),
        pytest.param(pod(TWO, {"a": READY, "b": READY}), None, ["completed"], id="1: all are ready"),
        pytest.param(
            pod({"a": "p_-5", "b": "p_0"}), ABSENT, ["create web-1-barrier {'p_0': 'true'}"], id="5: below zero"
        ),
        pytest.param(pod(THREE), ABSENT, ["create web-1-barrier {'p_0': 'true'}"], id="6: in order"),
        pytest.param(
            pod(THREE, {"a": READY}), barrier("p_0"), ["patch web-1-barrier {'p_-1': 'true'}"], id="6: the second"
        ),
        pytest.param(
            pod(THREE, {"a": READY, "b": READY}),
            barrier("p_0", "p_-1"),
            ["patch web-1-barrier {'p_-2': 'true'}", "completed"],
            id="6: the third",
        ),
        pytest.param(pod(EQUAL), ABSENT, ["create web-1-barrier {'p_3': 'true'}"], id="12: equal ones together"),
        pytest.param(pod(EQUAL, {"a": READY, "b": CREATED}), None, [], id="12: the next when both are ready"),
        pytest.param(
            pod(EQUAL, {"a": READY, "b": READY}),
            barrier("p_3"),
            ["patch web-1-barrier {'p_1': 'true'}", "completed"],
            id="12: both are",
        ),
        pytest.param(pod(TWO, {"b": CREATED}), barrier("p_10"), [], id="14: b is unready again before a started"),
        pytest.param(
            pod(TWO, {"a": CREATED, "b": CREATED}), None, ["completed"], id="14: or after, and the last key is there"
        ),
        pytest.param(
            pod({"a": "priority", "b": "p_10"}, {"b": READY}),
            barrier("p_10"),
            ["patch web-1-barrier {'p_0': 'true'}", "completed"],
            id="a key of somebody else counts as 0",
        ),
        pytest.param(
            pod({"a": None, "b": "p_10"}),
            ABSENT,
            ["create web-1-barrier {'p_10': 'true'}", "completed"],
            id="one without a barrier waits for nothing",
        ),
        pytest.param(
            pod(TWO),
            barrier("p_10", "p_0", "p_-1", earlier=True),
            ["patch web-1-barrier {'p_-1': None, 'p_0': None, 'p_10': 'true'}"],
            id="the ConfigMap of an earlier pod is taken over, and emptied",
        ),
        pytest.param(pod(TWO), barrier("p_10", going=True), [], id="one that is being deleted is waited for"),
        pytest.param(pod(TWO), barrier("p_0", "other", foreign=True), [], id="somebody else's is left alone"),
        pytest.param(pod(TWO, {"b": READY}), barrier(foreign=True), [], id="and later, too"),
    ],
)
def test_the_next_key(one: Pod, found: Barrier | None, expected: list[str]) -> None:
    assert writes(decided(one, found)) == expected


@pytest.mark.parametrize(
    ("one", "waits"),
    [
        pytest.param(pod(TWO), True, id="new"),
        pytest.param(pod({"a": None, "b": None}), False, id="without barriers"),
        pytest.param(pod(TWO, annotations={COMPLETED: "true"}), False, id="done"),
        pytest.param(pod(TWO, annotations={COMPLETED: "no"}), True, id="not done"),
        pytest.param(pod(TWO, deletionTimestamp="2026-01-01T00:00:00Z"), False, id="18: being deleted"),
    ],
)
def test_who_is_looked_after(one: Pod, waits: bool) -> None:
    assert is_launching(one) == waits
    assert (unproven(one) is not None) == waits
    if not waits:
        assert decided(one, ABSENT) == Plan()


def test_a_barrier_that_is_no_key_of_a_config_map_is_none() -> None:
    entry = {"name": "KRUISE_CONTAINER_BARRIER", "value": "p_1"}
    document = {"spec": {"containers": [{"name": "a", "env": [entry]}]}}
    assert not is_launching(decoded(document, Pod))


def test_priorities_that_wait() -> None:
    assert pending(pod(EQUAL, {"b": READY})) == [1, 3]
    assert pending(pod(EQUAL)) == [1, 3, 3]


def test_the_config_map_goes_with_the_pod_and_does_not_hold_it() -> None:
    (stage,) = decided(pod(TWO), ABSENT).stages
    ((create,),) = stage.chains
    assert isinstance(create, Create)
    assert create.body == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "web-1-barrier",
            "namespace": "shop",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "u1"}],
        },
        "data": {"p_10": "true"},
    }


def test_whose_name_is_taken_is_told() -> None:
    made = decided(pod(TWO), barrier("other", foreign=True))
    assert [(event.reason, event.warning) for event in made.events] == [("BarrierNameTaken", True)]
    assert "ConfigMap web-1-barrier" in made.events[0].message
    assert made.wake_at == START + timedelta(seconds=GOOD_SECONDS)
    by_chance = decided(pod(TWO), barrier("p_10", foreign=True))
    assert (by_chance.events, by_chance.wake_at) == ((), made.wake_at)


def test_keys_are_added_to_the_config_map_that_was_seen() -> None:
    (stage,) = decided(pod(THREE, {"a": READY}), barrier("p_0")).stages
    ((patch,),) = stage.chains
    assert isinstance(patch, Patch)
    assert (patch.uid, patch.resource_version, patch.namespace) == ("b1", "", "shop")


def test_the_config_map_of_another_pod_is_taken_over_as_it_was_seen() -> None:
    (stage,) = decided(pod(TWO), barrier("p_10", earlier=True)).stages
    ((patch,),) = stage.chains
    assert isinstance(patch, Patch)
    assert (patch.uid, patch.resource_version) == ("b1", "7")
    assert patch.body["metadata"]["ownerReferences"][0]["uid"] == "u1"


@pytest.mark.parametrize(
    ("one", "found", "seconds"),
    [
        pytest.param(pod(TWO), ABSENT, GOOD_SECONDS, id="a key that was written"),
        pytest.param(pod(TWO), barrier("p_10"), GOOD_SECONDS, id="a key that is there"),
        pytest.param(pod(TWO), barrier("p_10", going=True), 1.0, id="a ConfigMap that is being deleted"),
        pytest.param(pod(TWO, node=""), ABSENT, None, id="nobody can delete what no node waits for"),
        pytest.param(pod(TWO, {"b": CREATED}), None, None, id="the container itself is waited for"),
    ],
)
def test_when_it_is_looked_at_again(one: Pod, found: Barrier | None, seconds: float | None) -> None:
    expected = None if seconds is None else START + timedelta(seconds=seconds)
    assert decided(one, found).wake_at == expected


def test_nothing_is_said_on_the_bus() -> None:
    assert decided(pod(TWO, {"b": CREATED})).reasons == ()
