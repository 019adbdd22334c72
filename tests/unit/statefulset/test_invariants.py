"""Invariants of every plan, for any pods."""

from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.control.plan import Create, Delete, Patch, Plan
from flotilla_statefulset.statefulset.plan import plan
from tests.unit.statefulset.build import NOW, Builder, pods, snapshot, sts, summary

TOKENS = st.tuples(
    st.sampled_from("ABC"),
    st.sampled_from(["", "!", "P", "F", "S", "T", "*", "!T", "*T", "!*"]),
    st.sampled_from(["", ":Updating", ":PreparingUpdate", ":PreparingDelete", ":PreparingNormal", ":Updated"]),
    st.sampled_from(["", "@3"]),
).map("".join)
SITUATIONS = st.dictionaries(st.integers(0, 8), TOKENS, max_size=9)


@st.composite
def builders(draw: st.DrawFn) -> Builder:
    builder = sts(draw(st.integers(0, 7)), draw(st.sampled_from("AB")))
    builder.m(draw(st.integers(1, 4))).p(draw(st.integers(0, 4)))
    builder.rolling(minReadySeconds=draw(st.sampled_from([0, 5])), paused=draw(st.booleans()))
    if draw(st.booleans()):
        builder.in_place()
    if draw(st.booleans()):
        builder.set(reserveOrdinals=draw(st.lists(st.integers(0, 5), max_size=2)))
    if draw(st.booleans()):
        return builder.ordered().m(1)
    if draw(st.booleans()):
        builder.unordered()
    if draw(st.booleans()):
        builder.set(scaleStrategy={"maxUnavailable": draw(st.integers(1, 3))})
    return builder


def written(result: Plan) -> list[str]:
    """Return the pods that are written, each write chain once."""
    return [chain[-1].name for stage in result.stages for chain in stage.chains if chain[-1].resource.kind == "Pod"]


def disturbed(result: Plan, kinds: tuple[str, ...]) -> set[int]:
    """Return the ordinals of pods that the plan makes unavailable."""
    return {int(one.split()[1].rstrip("ABC")) for one in summary(result) if one.split()[0] in kinds}


def out_of_service(situation: dict[int, str], least_seconds: int) -> set[int]:
    """Return ordinals out of service for a user: broken, terminating, held in a state, or not ready for long."""
    return {
        ordinal
        for ordinal, token in situation.items()
        if set(token[1:].partition(":")[0]) & set("!PFST") or ":" in token or ("@3" in token and least_seconds > 3)
    }


@settings(max_examples=400, deadline=None)
@given(builders(), SITUATIONS)
def test_a_plan_is_the_same_each_time_and_writes_no_pod_twice(builder: Builder, situation: dict[int, str]) -> None:
    text = " ".join(f"{ordinal}{token}" for ordinal, token in situation.items())
    view = snapshot(builder, pods(text))
    result = plan(view, NOW)
    assert result == plan(view, NOW)
    assert len(written(result)) == len(set(written(result)))
    assert all(isinstance(one, Create | Patch | Delete) for one in result.actions)


@settings(max_examples=400, deadline=None)
@given(builders(), SITUATIONS)
def test_no_more_pods_are_taken_out_of_service_than_allowed(builder: Builder, situation: dict[int, str]) -> None:
    """Wanted pods that serve: updates and specified deletes leave all but maxUnavailable of them, or take none."""
    text = " ".join(f"{ordinal}{token}" for ordinal, token in situation.items())
    result = plan(snapshot(builder, pods(text)), NOW)
    reserved = set(builder.spec.get("reserveOrdinals", []))
    wanted = [one for one in range(20) if one not in reserved][: builder.spec["replicas"]]
    rolling = builder.spec["updateStrategy"]["rollingUpdate"]
    down = out_of_service(situation, rolling["minReadySeconds"]) | (set(wanted) - situation.keys())
    taken = disturbed(result, ("delete", "update")) & set(wanted) - down
    allowed = max(rolling["maxUnavailable"] - len(down & set(wanted)), 0)
    assert len(taken) <= allowed, summary(result)


@settings(max_examples=400, deadline=None)
@given(builders(), SITUATIONS)
def test_an_ordered_set_does_one_thing_at_a_time(builder: Builder, situation: dict[int, str]) -> None:
    text = " ".join(f"{ordinal}{token}" for ordinal, token in situation.items())
    result = plan(snapshot(builder.ordered().m(1), pods(text)), NOW)
    made = [one for one in summary(result) if one.split()[0] in ("create", "delete", "update")]
    assert len(made) <= 1
