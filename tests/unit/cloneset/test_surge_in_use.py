"""A surge in use counts until the pods that it replaces are gone (cloneset.md §4.3).

The end of a rollout depends neither on how many pods one pass creates nor on creates that were refused for a while; and
maxSurge, replicas and the template may change in its middle, with immediate effect.
"""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.core import Pod
from tests.testkit.plans import codes
from tests.unit.cloneset.build import NOW, CloneSetBuilder, cloneset, planned, pod, summary, template
from tests.unit.cloneset.world import World

FOREVER = 2147483646
"""minReadySeconds as rollout controllers set it: no pod becomes available before they lower it."""


def surging(most: int | str = "100%") -> CloneSetBuilder:
    """Build a CloneSet of five replicas, none of which may be missing."""
    return cloneset().replicas(5).max_unavailable(0).max_surge(most)


def started(count: int, first: int = 1) -> list[Pod]:
    """Return new pods that have become ready just now."""
    return [pod(f"n{number}", ready_since=NOW - timedelta(seconds=1)) for number in range(first, first + count)]


def old(count: int) -> list[Pod]:
    return [pod(f"o{number}", "o") for number in range(1, count + 1)]


@pytest.mark.parametrize(
    ("builder", "found", "expected"),
    [
        pytest.param(surging().min_ready(FOREVER), "5o 3n", ["create new"] * 2, id="half of it is there"),
        pytest.param(surging(), "5o 3n!", ["create new"] * 2, id="half of it is starting"),
        pytest.param(surging().in_place(), "5o 1n!", ["create new"] * 4, id="in place"),
        pytest.param(surging(3), "5o 3n!", [], id="maxSurge bounds it"),
        pytest.param(surging(), "5o 5n!", [], id="all of it is there"),
        pytest.param(surging().min_ready(FOREVER), "5o 5n", [], id="all stay while none is available"),
        pytest.param(surging(), "5o 5n", [f"delete o{n}" for n in range(1, 6)], id="all are available"),
        pytest.param(surging(), "2o 4n", ["create new"], id="a new pod was lost while the old ones went"),
        pytest.param(surging().partition(2), "5o 2n!", ["create new"], id="to a partition"),
        pytest.param(surging().partition(2), "5o 3n!", [], id="at the partition"),
        pytest.param(surging().replicas(8), "5o 3n!", ["create new"] * 5, id="replicas raised"),
        pytest.param(surging(4), "5o 3n!", ["create new"], id="maxSurge raised"),
        pytest.param(surging(1), "5o 3n!", ["delete n1", "delete n2"], id="maxSurge lowered: what does not serve goes"),
        pytest.param(surging(1), "5o 3n", ["delete o1", "delete o2"], id="maxSurge lowered: old pods are not missed"),
        pytest.param(
            surging(1).max_unavailable(1), "5o 3n!", ["delete o1"], id="maxSurge lowered: the budget first, this pass …"
        ),
        pytest.param(surging(1).max_unavailable(1), "4o 3n!", ["delete n1"], id="… and the rest in the next one"),
        pytest.param(
            surging(1).min_ready(30),
            [*old(5), *started(3)],
            ["delete n1", "delete n2"],
            id="new pods ready too shortly",
        ),
        pytest.param(
            surging(1).min_ready(FOREVER), "5o 3n", ["delete n1", "delete n2"], id="… and none is available at all"
        ),
        pytest.param(surging(1).in_place(), "4o 1o* 3n!", ["delete n1"], id="what is to go anyway is not counted"),
        pytest.param(
            cloneset().replicas(5).max_unavailable(1), "4o 3n!", ["delete n1", "delete n2"], id="replicas lowered"
        ),
        pytest.param(surging(3).partition(2).paused(), "5o 3n!", [], id="a pause keeps the surge"),
        pytest.param(surging(1).partition(2).paused(), "5o 3n!", ["delete n1", "delete n2"], id="but no more than it"),
        pytest.param(surging(), "5o 3o!", ["create new"] * 2, id="third template"),
        pytest.param(surging(), "5o 3o! 2n!", ["mark o6", "mark o7", "mark o8"], id="third template, recreate"),
        pytest.param(
            surging().in_place(), "5o 3o! 2n!", ["update o6", "update o7", "update o8"], id="third template, in place"
        ),
    ],
)
def test_pass(builder: CloneSetBuilder, found: str | list[Pod], expected: list[str]) -> None:
    created = [text for text in expected if text.startswith("create")]
    done: list[str] = []
    result = planned(builder, found)
    done = summary(result)
    if created:  # a pass creates some of them, and the next one does not think otherwise
        assert set(done) == set(created)
        assert result.numbers["scaleUp"] == len(created)
    else:
        assert done == expected


def test_what_is_taken_back_is_told() -> None:
    result = planned(surging(1), "5o 3n!")
    assert {"Deleting", "WaitingForDeleteBudget"} <= codes(result)
    assert any("more than replicas and maxSurge allow" in reason.message for reason in result.reasons)


def test_gone_back_to_the_old_template_in_the_middle() -> None:
    """The five that never went are the new ones then, and available; those of the other side have just become ready."""
    others = [pod(f"o{n}", "o", ready_since=NOW - timedelta(seconds=1)) for n in range(1, 4)]
    found = [*others, *[pod(f"n{n}") for n in range(1, 6)]]
    assert summary(planned(surging().min_ready(60), found)) == ["delete o1", "delete o2", "delete o3"]


@pytest.mark.parametrize("most", [1, 2, None])
@pytest.mark.parametrize("policy", ["ReCreate", "InPlaceIfPossible"])
def test_blue_green(most: int | None, policy: str) -> None:
    """As rollout controllers do: all new pods beside all old ones, then either the old or the new ones are deleted."""
    builder = surging().template(template("nginx:1"))
    builder.spec["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] = policy
    world = World(builder)
    world.most_creates = most
    world.settle()
    names = set(world.objects["Pod"])
    world.change(builder.min_ready(FOREVER).template(template("nginx:2")))
    world.settle()
    assert images(world) == {"nginx:1": 5, "nginx:2": 5}
    world.change(builder.template(template("nginx:3")))
    world.settle()
    assert images(world) == {"nginx:1": 5, "nginx:3": 5}
    world.change(builder.min_ready(0).template(template("nginx:1")))
    world.settle()
    assert set(world.objects["Pod"]) == names
    world.change(builder.min_ready(FOREVER).template(template("nginx:4")))
    world.settle()
    world.change(builder.min_ready(0))
    world.settle()
    assert images(world) == {"nginx:4": 5}


@pytest.mark.parametrize("first", ["a", "z"], ids=["by name before", "by name after"])
def test_a_third_template_takes_the_pods_of_the_second(first: str) -> None:
    """All have become ready in the same second.

    The old ones would be missed and must not be deleted: if they were chosen, the rollout would never continue.
    """
    blue = [pod(f"{first}{number}", "o") for number in range(5)]
    labels = {"controller-revision-hash": "sample-mid", "pod-template-hash": "mid"}
    green = [pod(f"m{number}", "o", labels=labels) for number in range(2)]
    result = planned(surging().min_ready(FOREVER), [*blue, *green, *started(3)])
    assert summary(result) == ["mark m0", "mark m1"]


@settings(max_examples=40, deadline=None)
@given(
    replicas=st.integers(1, 7),
    surge=st.sampled_from([1, 2, 3, "50%", "100%"]),
    unavailable=st.sampled_from([0, 0, 1, 2]),
    partition=st.sampled_from([0, 0, 1, 2, "50%"]),
    policy=st.sampled_from(["ReCreate", "InPlaceIfPossible"]),
    held=st.booleans(),
    later=st.sampled_from([{}, {"maxSurge": 1}, {"maxSurge": "100%"}, {"maxUnavailable": 2}]),
    image=st.sampled_from(["nginx:1", "nginx:2", "nginx:3"]),
)
def test_the_end_does_not_depend_on_how_many_pods_a_pass_creates(
    replicas: int,
    surge: int | str,
    unavailable: int,
    partition: int | str,
    policy: str,
    held: bool,
    later: dict[str, int | str],
    image: str,
) -> None:
    def ends(most: int | None) -> list[dict[str, int]]:
        builder = cloneset().replicas(replicas).max_unavailable(unavailable).max_surge(surge).partition(partition)
        rolling = builder.spec["updateStrategy"]["rollingUpdate"]
        rolling["podUpdatePolicy"] = policy
        world = World(builder.template(template("nginx:1")))
        world.settle()
        world.most_creates = most
        found: list[dict[str, int]] = []
        builder.min_ready(FOREVER if held else 0).template(template("nginx:2"))
        for _ in range(3):
            world.change(builder)
            world.settle()
            found.append(images(world))
            rolling |= later
            builder.template(template(image)).min_ready(0)
        return found

    assert ends(1) == ends(2) == ends(None)


def images(world: World) -> dict[str, int]:
    """Return how many pods run each image."""
    return dict(Counter(found["spec"]["containers"][0]["image"] for found in world.pods))
