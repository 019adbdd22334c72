"""Invariants of every plan and every rollout, for any pods."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Patch
from flotilla_sidecar.sidecarset.plan import plan
from tests.unit.sidecarset.build import (
    NOW,
    Builder,
    hot_pod,
    hot_side,
    image,
    pod_patches,
    pods,
    side,
    snapshot,
    updated,
)
from tests.unit.sidecarset.world import World

TOKENS = st.tuples(st.sampled_from("ABC"), st.sampled_from(["", "!", "~", "?", "?!", "P", "F", "T", "!T", "~!"]))
SITUATIONS = st.lists(TOKENS.map("".join), max_size=9)
NUMBERS = st.one_of(st.integers(0, 6), st.sampled_from(["0%", "1%", "30%", "50%", "99%", "100%"]))
LABELS = st.dictionaries(st.integers(0, 8), st.fixed_dictionaries({"a": st.sampled_from("12")}))


@st.composite
def builders(draw: st.DrawFn) -> Builder:
    builder = side(draw(st.sampled_from("ABC"))).m(draw(NUMBERS)).p(draw(NUMBERS))
    builder.strategy(
        type=draw(st.sampled_from(["RollingUpdate", "RollingUpdate", "NotUpdate"])),
        paused=draw(st.sampled_from([False, False, True])),
    )
    if draw(st.booleans()):
        builder.strategy(scatterStrategy=[{"key": "a", "value": draw(st.sampled_from("12*"))}])
    if draw(st.booleans()):
        builder.strategy(priorityStrategy={"orderPriority": [{"orderedKey": "a"}]})
    if draw(st.booleans()):
        builder.strategy(selector={"matchLabels": {"a": "1"}})
    return builder


def resolved(value: int | str, total: int) -> int:
    """Resolve by the specification, without the planner's help: percentages are rounded up."""
    return value if isinstance(value, int) else -(-int(value[:-1]) * total // 100)


@settings(max_examples=300, deadline=None)
@given(builders(), SITUATIONS, LABELS)
def test_a_plan_is_the_same_each_time_and_writes_no_pod_twice(
    builder: Builder, there: list[str], labels: dict[int, dict[str, str]]
) -> None:
    view = snapshot(builder, pods(" ".join(there), labels=labels))
    result = plan(view, NOW)
    assert result == plan(view, NOW)
    written = Counter(chain[-1].name for stage in result.stages for chain in stage.chains)
    assert all(number == 1 for number in written.values())
    for action in result.actions:
        assert isinstance(action, Patch)
        assert action.resource_version or action.after_previous, "on the version that was looked at"


@settings(max_examples=400, deadline=None)
@given(builders(), SITUATIONS, LABELS)
def test_no_more_pods_are_disturbed_than_allowed(
    builder: Builder, there: list[str], labels: dict[int, dict[str, str]]
) -> None:
    """Counts serving pods. An update of a pod that does not serve was counted before."""
    result = plan(snapshot(builder, pods(" ".join(there), labels=labels)), NOW)
    active = {f"p{at:02}": token for at, token in enumerate(there) if not set(token) & set("FT")}
    newest = builder.spec["containers"][0]["image"][-1]
    down = sum(token[0] == newest and bool(set(token) & set("!~P")) for token in active.values())
    strategy = builder.spec["updateStrategy"]
    allowed = max(resolved(strategy["maxUnavailable"], len(active)) - down, 0)
    disturbed = [name for name in updated(result) if not set(active[name]) & set("!P")]
    assert len(disturbed) <= allowed
    if strategy["paused"] or strategy["type"] == "NotUpdate":
        assert pod_patches(result) == []


@settings(max_examples=400, deadline=None)
@given(builders(), SITUATIONS)
def test_the_partition_is_kept(builder: Builder, there: list[str]) -> None:
    """At least that number of the updatable pods stay unchanged."""
    result = plan(snapshot(builder, pods(" ".join(there))), NOW)
    active = [token for token in there if not set(token) & set("FT")]
    newest = builder.spec["containers"][0]["image"][-1]
    could = [token for token in active if token[0] != newest and "?" not in token]
    partition = builder.spec["updateStrategy"]["partition"]
    kept = resolved(partition, len(active))
    if isinstance(partition, str) and partition != "100%" and kept == len(active) > 1:
        kept -= 1
    assert len(updated(result)) <= max(len(could) - kept, 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 3), st.lists(st.sampled_from("ABC"), max_size=4))
def test_a_whole_rollout_keeps_its_numbers(number: int, most: int, partition: int, specs: list[str]) -> None:
    """Images change while pods restart, and one breaks them: never are more down than allowed.

    Pods that are down when another image comes cost nothing.
    """
    world = World(side("A").m(most).p(partition), pods(f"Ax{number}"))
    world.broken = {image("C")}
    for letter in [*specs, "B"]:
        free = world.down()
        world.change(side(letter).m(most).p(partition))
        for _ in range(3 if letter != "B" else 40):
            world.reconcile()
            world.tick()
            free &= world.down()
            assert len(world.down() - free) <= most
    assert world.images().count(image("B")) >= number - partition


HOT_IMAGES = st.sampled_from([image("A"), image("B"), "empty:1"])


@st.composite
def hot_pods(draw: st.DrawFn) -> Pod:
    return hot_pod(
        draw(HOT_IMAGES),
        draw(HOT_IMAGES),
        draw(st.sampled_from(["mesh-1", "mesh-2", "mesh-3"])),
        hash_of=draw(st.sampled_from("AB")),
        ready=draw(st.booleans()),
        readies=(draw(st.booleans()), draw(st.booleans())),
        running=draw(st.one_of(st.none(), st.tuples(HOT_IMAGES, HOT_IMAGES))),
        last=draw(st.one_of(st.none(), st.just({"mesh-1": "id-empty:1"}), st.just({"mesh-2": "id-empty:1"}))),
    )


def pair(document: dict[str, object] | Pod) -> list[str]:
    spec = msgspec.to_builtins(document)["spec"]
    return [one["image"] for one in spec["containers"] if one["name"].startswith("mesh")]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from("AB"), hot_pods())
def test_never_do_both_of_a_pair_idle(letter: str, there: Pod) -> None:
    """Unless they did so before: then one gets to work."""
    result = plan(snapshot(hot_side(letter), [there]), NOW)
    images = dict(zip(("mesh-1", "mesh-2"), pair(there), strict=True))
    for patch in pod_patches(result):
        images |= {one["name"]: one["image"] for one in patch.body.get("spec", {}).get("containers", [])}
    before = pair(there)
    assert list(images.values()).count("empty:1") < 2 or before.count("empty:1") == 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("ABC"), min_size=1, max_size=5), st.integers(0, 3))
def test_a_whole_upgrade_never_stops_working(letters: list[str], ticks: int) -> None:
    """For all images and steps, one of the two runs a real image, and in the end one idles."""
    world = World(hot_side("A"), [hot_pod(image("A"), "empty:1")])
    for letter in letters:
        world.change(hot_side(letter))
        for _ in range(ticks):
            world.reconcile()
            assert pair(world.pods[0]).count("empty:1") < 2
            world.tick()
    world.settle()
    assert sorted(pair(world.pods[0])) == sorted([image(letters[-1]), "empty:1"])
    assert world.counts == (1, 1, 1, 1)
