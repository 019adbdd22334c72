"""The observer finds every violation, wherever in the history: one that never reports any would be useless."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from tests.support.observer import Change, Promise, violations
from tests.testkit import pods as pods_of
from tests.testkit.documents import conditions, owner
from tests.testkit.pods import container

PROMISE = Promise(cloneset="web", replicas=3, max_unavailable=1, image="new", updated=3)


def pod(name: str, *, image: str = "old", ready: bool = True, gate: str = "True", **status: Any) -> Change:
    document = pods_of.pod(
        name,
        "",
        uid=name,
        labels={"apps.kruise.io/cloneset-instance-id": status.pop("instance", name)},
        ownerReferences=[owner("CloneSet", "web", "u")],
        node=status.pop("node", "n1"),
        containers=[container("main", image)],
        conditions=conditions({"Ready": ready, "InPlaceUpdateReady": gate}),
        status={"podIP": "10.0.0.1", **status},
    )
    return Change(msgspec.convert(document, type=Pod))


START = [pod("a"), pod("b"), pod("c")]
UPDATE = [
    pod("a", gate="False"),
    pod("a", gate="False", ready=False, image="new"),
    pod("a", gate="True", ready=False, image="new"),
    pod("a", image="new"),
]


def test_a_right_update_breaks_nothing() -> None:
    assert violations([*START, *UPDATE], PROMISE, start=3) == []


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        pytest.param(
            [pod("a", gate="False"), pod("b", gate="False")], "1 pods are available, 2 must be", id="two at once"
        ),
        pytest.param([pod("a", image="new")], "while it was not marked unready", id="changed while in service"),
        pytest.param([pod("a", node="n2")], "moved from n1 to n2", id="another node"),
        pytest.param([pod("a", podIP="10.0.0.2")], "its IP changed", id="another IP"),
        pytest.param([pod("d")], "4 active pods, 3 may be", id="a pod too many"),
        pytest.param([pod("a", instance="b")], "share the instance id 'b'", id="two of one instance"),
        pytest.param([Change(START[0].pod, gone=True)], "removed in an in-place rollout", id="removed"),
    ],
)
def test_what_is_wrong_for_a_moment_is_found(wrong: list[Change], text: str) -> None:
    found = violations([*START, *wrong, *START], PROMISE, start=3)
    assert any(text in one for one in found), found


def test_a_partition_is_kept() -> None:
    promise = msgspec.structs.replace(PROMISE, updated=0)
    assert "1 pods run new, 0 may" in violations([*START, *UPDATE], promise, start=3)[0]


def test_a_list_is_one_moment_and_steps_before_it_may_be_missing() -> None:
    """`a` was updated and `b` begun while no watch ran; the LIST has `b` first."""
    listed = [
        msgspec.structs.replace(change, listed=True) for change in (pod("b", gate="False"), pod("a", image="new"))
    ]
    seen = [*START, pod("a", gate="False"), *listed]
    assert violations(seen, PROMISE, start=3) == []
    worse = [*seen[:-1], msgspec.structs.replace(pod("a", gate="False"), listed=True)]
    assert "1 pods are available, 2 must be" in violations(worse, PROMISE, start=3)[0]
