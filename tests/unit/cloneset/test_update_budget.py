"""The pods that the update step takes, and when it stops (cloneset.md §4.8 step 6), one row per rule."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.api.meta import Condition
from flotilla_common.control.plan import Patch
from flotilla_common.workload.inplace.update import STARTED
from tests.testkit.plans import codes
from tests.unit.cloneset.build import NOW, CloneSetBuilder, cloneset, planned, pod, pods, revisions, summary, template

GRACE = {"apps.kruise.io/inplace-update-grace": '{"revision":"sample-new"}'}


def rolling(replicas: int, max_unavailable: int | str, **members: Any) -> CloneSetBuilder:
    builder = cloneset().replicas(replicas).max_unavailable(max_unavailable).in_place()
    builder.spec["updateStrategy"]["rollingUpdate"].update(members)
    return builder


def in_grace() -> Pod:
    """Return a pod in the middle of another update: unavailable, on the old revision, and not to be started now."""
    return pod("x", "o", ready=False, state="Updating", annotations=GRACE)


def taken(name: str, side: str, *, given_back: bool = False) -> Pod:
    """Return a pod that is out of service for an update that has not begun.

    Its gate may be open again, but it is not Ready yet.
    """
    made = pod(name, side)
    gate = Condition(type=IN_PLACE_READY, status="True")
    if not given_back:
        gate = Condition(type=IN_PLACE_READY, status="False", reason=STARTED)
    changed = {gate.type: gate, "Ready": Condition(type="Ready", status="False", reason="ReadinessGatesNotReady")}
    conditions = [changed.get(one.type, one) for one in made.status.conditions]
    return structs.replace(made, status=structs.replace(made.status, conditions=conditions))


def updates(builder: CloneSetBuilder, all_pods: list[Pod], **members: Any) -> list[str]:
    return [text for text in summary(planned(builder, all_pods, **members)) if text.startswith("update ")]


def of(*ids: str) -> list[str]:
    return [f"update {one}" for one in ids]


@pytest.mark.parametrize(
    ("builder", "all_pods", "expected"),
    [
        pytest.param(rolling(4, 2), pods("1o 3o!"), of("o2", "o3"), id="broken ones first, as many as the budget"),
        pytest.param(rolling(4, 2), pods("3o 1o!"), of("o4", "o1"), id="a broken one costs nothing, the next one does"),
        pytest.param(rolling(4, 2), pods("2o 2n!"), [], id="new ones that do not come up stop the rollout"),
        pytest.param(rolling(4, 2), pods("3o 1n!"), of("o1"), id="a new one that does not come up counts"),
        pytest.param(rolling(5, 2), pods("4o! 1n!"), of("o1"), id="and counts against broken ones, too"),
        pytest.param(rolling(3, 1), [in_grace(), *pods("2o")], [], id="one that is down elsewhere uses the budget up"),
        pytest.param(rolling(5, 3), [in_grace(), *pods("4o")], of("o1", "o2"), id="and a part of a larger budget"),
        pytest.param(
            rolling(5, 2),
            [taken("x", "o", given_back=True), taken("y", "o", given_back=True), *pods("3o")],
            of("x", "y"),
            id="what was given back uses the budget up until it is Ready",
        ),
        pytest.param(
            rolling(5, 2),
            [taken("x", "n"), taken("y", "n"), *pods("3o")],
            [],
            id="what this pass gives back is not spent by it",
        ),
        pytest.param(
            rolling(5, 2),
            [taken("x", "o"), taken("y", "o"), *pods("3o")],
            of("x", "y"),
            id="what a dead replica has taken is gone on with",
        ),
        pytest.param(rolling(5, "100%", partition=3), pods("5o"), of("o1", "o2"), id="never more than partition wants"),
    ],
)
def test_budget(builder: CloneSetBuilder, all_pods: list[Pod], expected: list[str]) -> None:
    assert updates(builder, all_pods) == expected


def test_budget_on_the_way_back() -> None:
    """Count, on the way back, the pods of the current revision that do not come up."""
    builder = rolling(6, 2, partition=5)
    assert updates(builder, pods("3n! 2n 1o!"), gates="CloneSetPartitionRollback=true") == of("n1")


@pytest.mark.parametrize("key", ["apps.kruise.io/inplace-update-grace", "inplace-update-grace"])
def test_pods_in_the_grace_period_of_another_update_are_not_started_again(key: str) -> None:
    waiting = pod("x", "o", state="Updating", annotations={key: '{"revision":"sample-new"}'})
    assert updates(rolling(2, 2), [waiting, pod("y", "o", annotations={"a": "b"})]) == of("y")


def test_pods_on_their_way_out_are_not_updated() -> None:
    builder = rolling(2, 2).hook("preDelete", not_ready=True)
    leaving = pod("x", "o", state="PreparingDelete", labels={"hold": "preDelete"})
    assert updates(builder, [*pods("1o"), leaving]) == of("o1")


def test_the_order_is_the_users() -> None:
    vip = {"matchSelector": {"matchLabels": {"tier": "vip"}}, "weight": 50}
    ours = [pod("a", "o"), pod("b", "o", labels={"tier": "vip"}), pod("c", "o")]
    assert updates(rolling(3, 1, priorityStrategy={"weightPriority": [vip]}), ours) == of("b")


def test_users_may_have_pods_scattered() -> None:
    def zoned(name: str, side: str = "o") -> Pod:
        return pod(name, side, labels={"zone": "a"} if name in "abc" else {})

    def scattered(budget: int) -> CloneSetBuilder:
        return rolling(6, budget, scatterStrategy=[{"key": "zone", "value": "a"}])

    assert updates(rolling(6, 3), [zoned(name) for name in "abdefg"]) == of("a", "b", "d")
    assert updates(scattered(3), [zoned(name) for name in "abdefg"]) == of("a", "d", "e")
    # Over all of the set: one of zone a is done, so it is the turn of another one.
    assert updates(scattered(1), [zoned("a", "n"), *[zoned(name) for name in "bcdef"]]) == of("d")


def test_after_a_refusal_those_before_it_count_as_a_change() -> None:
    """Update first after scaling has failed; where the update changes something, scaling waits for its turn."""
    vip = {"matchSelector": {"matchLabels": {"tier": "vip"}}, "weight": 50}
    builder = rolling(4, 4, priorityStrategy={"weightPriority": [vip]})
    strange, first = pod("z", "o", state="Elsewhere"), pod("a", "o", labels={"tier": "vip"})
    result = planned(builder, [first, strange], failures={"scale": "exceeded quota"})
    assert summary(result) == of("a")
    assert [phase for phase, _ in result.errors] == ["update"]
    result = planned(builder, [strange], failures={"scale": "exceeded quota"})
    assert summary(result) == ["create new"]


@pytest.mark.parametrize(
    ("only", "expected"), [pytest.param(False, ["mark o1"], id="else"), pytest.param(True, [], id="only")]
)
def test_in_place_if_possible(only: bool, expected: list[str]) -> None:
    content = template(hostNetwork=True)
    builder = rolling(3, 1).in_place(only=only).template(content)
    result = planned(builder, "3o", revisions=revisions(new=content))
    assert summary(result) == expected
    assert ("InPlaceImpossible" in codes(result)) == only


def test_a_pod_of_a_revision_that_nobody_knows_is_recreated() -> None:
    lost = pod("x", "o", labels={"controller-revision-hash": "sample-lost", "pod-template-hash": "lost"})
    assert summary(planned(rolling(1, 1), [lost])) == ["mark x"]


def hooked(name: str, state: str, **labels: str) -> Pod:
    return pod(name, "o", state=state, labels=labels)


def hooked_too_early() -> Pod:
    """Return a pod whose container has not started again yet."""
    running = '{"revision":"sample-old","lastContainerStatuses":{"nginx":{"imageID":"id"}},"updateImages":true}'
    annotations = {"apps.kruise.io/inplace-update-state": running}
    return pod("x", "o", state="Updating", ready=False, labels={"hold": "inPlaceUpdate"}, annotations=annotations)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param(hooked("x", "Normal", hold="inPlaceUpdate"), "state x PreparingUpdate", id="asked first"),
        pytest.param(hooked("x", "PreparingUpdate", hold="inPlaceUpdate"), "", id="held"),
        pytest.param(hooked("x", "PreparingUpdate"), "update x", id="let go"),
        pytest.param(hooked_too_early(), "update x", id="updated again, hooked too early"),
        pytest.param(hooked("x", "Normal"), "update x", id="not hooked"),
    ],
)
def test_the_hook_of_an_update(held: Pod, expected: str) -> None:
    builder = rolling(1, 1).hook("inPlaceUpdate")
    assert summary(planned(builder, [held])) == ([expected] if expected else [])


def test_a_hook_that_was_not_given_back_is_set_for_the_next_update() -> None:
    (action,) = planned(rolling(1, 1).hook("inPlaceUpdate"), [hooked("x", "Updated")]).actions
    assert isinstance(action, Patch)
    labels = action.body["metadata"]["labels"]
    assert labels == {"lifecycle.apps.kruise.io/state": "PreparingUpdate", "hold": "inPlaceUpdate"}
    (action,) = planned(rolling(1, 1).hook("inPlaceUpdate"), [hooked("x", "Normal", hold="inPlaceUpdate")]).actions
    assert isinstance(action, Patch)
    assert action.body["metadata"]["labels"] == {"lifecycle.apps.kruise.io/state": "PreparingUpdate"}


@pytest.mark.parametrize(
    ("strategy", "seconds"),
    [(None, None), ({}, None), ({"gracePeriodSeconds": 0}, None), ({"gracePeriodSeconds": 1}, 1)],
    ids=["no strategy", "no grace", "zero", "one second"],
)
def test_the_end_of_a_grace_period_is_waited_for(strategy: dict[str, int] | None, seconds: int | None) -> None:
    builder = cloneset().replicas(1).max_unavailable(1)
    rolling_update = builder.spec["updateStrategy"]["rollingUpdate"]
    rolling_update |= {"podUpdatePolicy": "InPlaceIfPossible"}
    if strategy is not None:
        rolling_update["inPlaceUpdateStrategy"] = strategy
    result = planned(builder, "1o")
    assert summary(result) == of("o1")
    assert result.wake_at == (None if seconds is None else NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(("gates", "label"), [("", "sample-new"), ("CloneSetShortHash=true", "new")])
def test_the_label_may_be_short(gates: str, label: str) -> None:
    *_, action = planned(rolling(1, 1), "1o", gates=gates).actions
    assert isinstance(action, Patch)
    assert action.body["metadata"]["labels"]["controller-revision-hash"] == label
