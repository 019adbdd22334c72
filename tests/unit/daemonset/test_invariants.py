"""Invariants of every plan, for any nodes and pods."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.control.plan import Plan
from flotilla_daemonset.daemonset.plan import plan
from tests.unit.daemonset.build import NOW, Builder, ds, node, pods, snapshot, summary

COUNT = 4
TAINTS = st.sampled_from([(), (), (), ("x:NoSchedule",), ("x:NoExecute",)])
NODES = st.tuples(*[TAINTS] * COUNT)
TOKENS = st.tuples(
    st.sampled_from("ABC"),
    st.sampled_from(["", "", "", "!", "P", "F", "T", "!T", "H", "HD", "D", "-", "D!"]),
    st.sampled_from(["", "", "@3"]),
).map("".join)
SITUATIONS = st.lists(st.tuples(st.integers(1, COUNT + 1), TOKENS), max_size=7)


@st.composite
def builders(draw: st.DrawFn) -> Builder:
    builder = ds(draw(st.sampled_from("ABC"))).p(draw(st.sampled_from([0, 0, 1, 3, "50%"])))
    builder.rolling(paused=draw(st.sampled_from([False, False, True])))
    builder.set(minReadySeconds=draw(st.sampled_from([0, 5])), burstReplicas=draw(st.sampled_from([250, 1, 2])))
    if draw(st.booleans()):
        builder.hooked()
    if draw(st.sampled_from([True, False, False])):
        return builder.surge(draw(st.integers(1, 3)))
    builder.m(draw(st.integers(1, 4)))
    return builder.in_place() if draw(st.booleans()) else builder


def planned(builder: Builder, taints: tuple[tuple[str, ...], ...], situation: list[tuple[int, str]]) -> Plan:
    text = " ".join(f"{number}{token}" for number, token in situation)
    on = [node(f"n{number}", taints=mine) for number, mine in enumerate(taints, 1)]
    view = snapshot(builder, pods(text), on=on)
    result = plan(view, NOW)
    assert result == plan(view, NOW)
    return result


def written(result: Plan) -> list[str]:
    """Return the pods that are written, each write chain once."""
    return [chain[-1].name for stage in result.stages for chain in stage.chains if chain[-1].resource.kind == "Pod"]


def living(situation: list[tuple[int, str]], number: int) -> list[str]:
    return [token for where, token in situation if where == number and "T" not in token]


@settings(max_examples=100, deadline=None)
@given(builders(), NODES, SITUATIONS)
def test_no_pod_is_written_twice_and_no_terminating_one_at_all(
    builder: Builder, taints: tuple[tuple[str, ...], ...], situation: list[tuple[int, str]]
) -> None:
    result = planned(builder, taints, situation)
    names = written(result)
    assert len(names) == len(set(names))
    terminating = {f"d-{number}{token[0]}{at}" for at, (number, token) in enumerate(situation) if "T" in token}
    assert not terminating & set(names)


@settings(max_examples=100, deadline=None)
@given(builders(), NODES, SITUATIONS)
def test_pods_are_made_only_where_they_are_wanted_and_missing(
    builder: Builder, taints: tuple[tuple[str, ...], ...], situation: list[tuple[int, str]]
) -> None:
    """At most one of the template's revision, and beside an old one only when surging."""
    newest = builder.spec["template"]["spec"]["containers"][0]["image"][-1]
    surging = bool(builder.spec["updateStrategy"]["rollingUpdate"].get("maxSurge"))
    made = Counter(one[2:] for one in summary(planned(builder, taints, situation)) if one.startswith("+"))
    for name, times in made.items():
        number = int(name)
        assert times == 1
        assert taints[number - 1] == ()
        there = living(situation, number)
        running = [token for token in there if not set(token) & set("FD")]
        assert newest not in {token[0] for token in running}
        if not surging:
            assert not [where for where, _ in situation if where == number]


@settings(max_examples=200, deadline=None)
@given(builders(), NODES, SITUATIONS)
def test_no_more_nodes_are_left_without_a_pod_than_allowed(
    builder: Builder, taints: tuple[tuple[str, ...], ...], situation: list[tuple[int, str]]
) -> None:
    """Counts nodes that should have a pod, and whose only pod serves: updates take as many as maxUnavailable allows."""
    rolling = builder.spec["updateStrategy"]["rollingUpdate"]
    result = planned(builder, taints, situation)
    least = builder.spec["minReadySeconds"]
    taken = {one[1:] for one in summary(result) if one[0] in "-~"}

    def serves(token: str) -> bool:
        return not set(token) & set("!PFTD") and not ("@3" in token and least > 3)

    def is_alone(number: int) -> bool:
        return taints[number - 1] == () and len([one for one in situation if one[0] == number]) == 1

    served = {number: token for number, token in situation if number <= COUNT and is_alone(number) and serves(token)}
    lost = [number for number, token in served.items() if f"{number}{token[0]}" in taken]
    assert len(lost) <= rolling.get("maxUnavailable", 0)


@settings(max_examples=100, deadline=None)
@given(builders(), NODES, SITUATIONS)
def test_a_surging_pod_is_never_alone_removed(
    builder: Builder, taints: tuple[tuple[str, ...], ...], situation: list[tuple[int, str]]
) -> None:
    builder.surge(2).rolling(rollingUpdateType="Standard")
    newest = builder.spec["template"]["spec"]["containers"][0]["image"][-1]
    result = planned(builder, taints, situation)
    gone = set(written(result))
    for number in range(1, COUNT + 1):
        here = {f"d-{where}{token[0]}{at}": token for at, (where, token) in enumerate(situation) if where == number}
        serving = {name for name, token in here.items() if not set(token) & set("!PFTD")}
        letters = Counter(token[0] == newest for token in here.values())
        if taints[number - 1] == () and max(letters.values(), default=0) == 1 and serving:
            assert serving - gone or any("H" in here[name] or "@3" in here[name] for name in serving)
