"""The order in which containers are started, as the pod webhook writes it (container-extras.md §B2, §B5)."""

from typing import Any

import pytest

from flotilla_webhook.pods.startup import order_launch
from tests.support.dice import Dice
from tests.testkit.documents import Json

ORDERED = {"apps.kruise.io/container-launch-priority": "Ordered"}


def container(name: str, priority: str | None = None, *more: str) -> Json:
    env = [] if priority is None else [{"name": "KRUISE_CONTAINER_PRIORITY", "value": priority}]
    env += [{"name": one, "value": "x"} for one in more]
    return {"name": name, "env": env} if env else {"name": name}


def pod(*containers: Json, annotations: Json | None = None, name: str = "web") -> Json:
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {"containers": list(containers)}}


def keys(document: Json) -> list[str | None]:
    """Return the key that each container waits for."""
    return [_key(one) for one in document["spec"]["containers"]]


def _key(one: Json) -> str | None:
    last: Any = (one.get("env") or [{}])[-1]
    if last.get("name") != "KRUISE_CONTAINER_BARRIER":
        return None
    reference = last["valueFrom"]["configMapKeyRef"]
    assert reference.keys() == {"name", "key"}
    return reference["key"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(pod(container("a"), container("b", "10")), ["p_0", "p_10"], id="row 1"),
        pytest.param(pod(container("a"), container("b")), [None, None], id="row 2"),
        pytest.param(pod(container("a", "5"), container("b", "5")), [None, None], id="row 3"),
        pytest.param(pod(container("a", "0"), container("b")), [None, None], id="row 4"),
        pytest.param(pod(container("a", "-5"), container("b")), ["p_-5", "p_0"], id="row 5"),
        pytest.param(
            pod(container("a"), container("b"), container("c"), annotations=ORDERED),
            ["p_0", "p_-1", "p_-2"],
            id="row 6",
        ),
        pytest.param(pod(container("a", "1"), container("b", "9"), annotations=ORDERED), ["p_0", "p_-1"], id="row 7"),
        pytest.param(pod(container("a"), annotations=ORDERED), [None], id="row 8"),
        pytest.param(
            pod(container("a", "3"), container("b", "3"), container("c", "1")), ["p_3", "p_3", "p_1"], id="row 12"
        ),
        pytest.param(pod(container("a", "x")), [None], id="one container is not looked at"),
        pytest.param(pod(container("a", "+2"), container("b")), ["p_2", "p_0"], id="a sign"),
    ],
)
def test_keys(document: Json, expected: list[str | None]) -> None:
    order_launch(document, Dice())
    assert keys(document) == expected


@pytest.mark.parametrize("value", ["x", "", " 1", "1.0", "9" * 19])
def test_a_priority_that_is_no_integer(value: str) -> None:
    with pytest.raises(ValueError, match="env KRUISE_CONTAINER_PRIORITY of container a"):
        order_launch(pod(container("a", value), container("b")), Dice())


def test_the_last_one_counts_and_the_barrier_comes_last() -> None:
    first = container("a", "1", "test")
    first["env"].append({"name": "KRUISE_CONTAINER_PRIORITY", "value": "7"})
    document = pod(first, container("b", None, "test"))
    order_launch(document, Dice())
    assert keys(document) == ["p_7", "p_0"]
    names = [[entry["name"] for entry in one["env"]] for one in document["spec"]["containers"]]
    assert names[1] == ["test", "KRUISE_CONTAINER_BARRIER"]


def test_a_name_is_chosen_where_there_is_none() -> None:
    document = pod(container("a"), container("b", "1"))
    document["metadata"] = {"generateName": "w" * 60 + "-"}
    order_launch(document, Dice())
    name = document["metadata"]["name"]
    assert (name[:58], len(name)) == ("w" * 58, 63)
    assert set(name[58:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    reference = document["spec"]["containers"][0]["env"][-1]["valueFrom"]["configMapKeyRef"]
    assert reference["name"] == f"{name}-barrier"


def test_a_second_time_nothing_changes() -> None:
    document = pod(container("a"), container("b", "1"))
    order_launch(document, Dice())
    again = {**document, "spec": {"containers": [dict(one) for one in document["spec"]["containers"]]}}
    order_launch(again, Dice())
    assert again == document
