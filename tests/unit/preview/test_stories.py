"""Plans of CloneSets, from the live objects of a tiny world."""

from copy import deepcopy
from itertools import cycle

import msgspec
import pytest

from flotilla_cli.preview.render import render
from flotilla_common.model.writes import Write
from flotilla_insight.preview import waves
from flotilla_insight.preview.report import Report
from flotilla_insight.preview.steps import Step, step_of
from tests.unit.cloneset.build import CloneSetBuilder, cloneset, template
from tests.unit.cloneset.world import World
from tests.unit.preview.live import foreseen, settled

NEW = template("nginx:3")
WITH_ENV = deepcopy(template("nginx:2"))
WITH_ENV["spec"]["containers"][0]["env"] = [{"name": "A"}]


def in_place(replicas: int = 3, most: int | str = 1) -> CloneSetBuilder:
    return cloneset().in_place().replicas(replicas).max_unavailable(most)


def done(story: Report) -> list[list[tuple[str, str]]]:
    """Return (action, name or alias) of each wave's pods."""
    waves = [[(step.do, step.name or step.alias) for step in wave.steps if step.kind == "Pod"] for wave in story.waves]
    return [sorted(wave) for wave in waves]


def codes(story: Report) -> list[str]:
    return [reason.code for reason in story.reasons]


def names(world: World) -> list[str]:
    return sorted(world.objects["Pod"])


async def test_in_place_in_waves_of_max_unavailable():
    world = settled(in_place(5, 2))
    before = deepcopy(world.objects)
    story = await foreseen(world, in_place(5, 2).template(NEW))
    waves = done(story)
    assert [len(wave) for wave in waves] == [2, 2, 1]
    assert sorted(name for wave in waves for _, name in wave) == names(world)
    assert {what for wave in waves for what, _ in wave} == {"updateInPlace"}
    first, second, _ = story.waves
    assert (first.ready, set(second.ready)) == ((), {name for _, name in waves[0]})
    change = next(step for step in first.steps if step.kind == "Pod").changes[0]
    assert (change.what, change.before, change.after) == ("nginx image", "nginx:2", "nginx:3")
    assert story.serving is not None
    assert (story.serving.now, story.serving.lowest, story.serving.end) == (5, 3, 5)
    assert (story.totals.updated_in_place, story.totals.writes, codes(story)) == (5, 16, ["Complete"])
    assert story.revision is not None
    assert story.revision.new
    assert world.objects == before


async def test_what_really_happens_in_the_world_is_what_is_foretold():
    world = settled(in_place(4, 1))
    changed = in_place(4, 1).template(NEW)
    story = await foreseen(world, changed)
    world.change(changed)
    real: list[str] = []
    for _ in range(30):
        world.reconcile()
        real += [
            name for name, pod in world.objects["Pod"].items() if pod["spec"]["containers"][0]["image"] == "nginx:3"
        ]
        world.tick()
    assert list(dict.fromkeys(real)) == [name for wave in done(story) for _, name in wave]


async def test_a_change_that_no_running_pod_can_take_says_which():
    story = await foreseen(settled(in_place(2)), in_place(2).template(WITH_ENV))
    recreated = [step for wave in story.waves for step in wave.steps if step.do == "recreate"]
    assert {step.why for step in recreated} == {"template.spec.containers[nginx].env cannot be changed in place"}
    assert [what for wave in done(story) for what, _ in wave] == ["create", "recreate"] * 2
    assert [name for wave in done(story) for what, name in wave if what == "create"] == ["new pod 1", "new pod 2"]
    assert (story.totals.recreated, story.totals.created, story.totals.deleted) == (2, 0, 0)


async def test_recreation_by_policy_says_so():
    story = await foreseen(settled(cloneset().replicas(1)), cloneset().replicas(1).template(NEW))
    assert [step.why for wave in story.waves for step in wave.steps if step.do == "recreate"] == [
        "podUpdatePolicy is ReCreate"
    ]


@pytest.mark.parametrize(
    ("changed", "waves", "code"),
    [
        (in_place().template(NEW).paused(), 0, "PausedByUser"),
        (in_place().template(NEW).partition(2), 1, "PartitionReached"),
        (cloneset().template(NEW).on_delete(), 0, "OnDelete"),
        (in_place().template(NEW).hook("inPlaceUpdate"), 1, "WaitingForHook"),
    ],
)
async def test_where_it_ends(changed: CloneSetBuilder, waves: int, code: str):
    story = await foreseen(settled(in_place()), changed)
    assert len([wave for wave in done(story) if wave]) == waves
    assert code in codes(story)


async def test_a_hook_that_holds_pods_has_to_be_answered():
    held = template("nginx:2")
    held["metadata"]["labels"]["hold"] = "inPlaceUpdate"
    story = await foreseen(settled(in_place(2).template(held).hook("inPlaceUpdate")), _hooked("nginx:3"))
    assert [what for wave in done(story) for what, _ in wave] == ["hold"]
    assert "WaitingForHook" in codes(story)


def _hooked(image: str) -> CloneSetBuilder:
    content = template(image)
    content["metadata"]["labels"]["hold"] = "inPlaceUpdate"
    return in_place(2).template(content).hook("inPlaceUpdate")


async def test_seconds_that_have_to_pass_are_told():
    story = await foreseen(settled(in_place(2).min_ready(30)), in_place(2).min_ready(30).template(NEW))
    assert [wave.seconds for wave in story.waves] == [0, 30]
    grace = cloneset().in_place(grace=10).replicas(1)
    story = await foreseen(settled(grace), cloneset().in_place(grace=10).replicas(1).template(NEW))
    assert [[what for what, _ in wave] for wave in done(story)] == [["grace"], ["updateInPlace"]]
    assert story.waves[1].seconds == 10


async def test_nothing_changes():
    world = settled(in_place())
    story = await foreseen(world, in_place())
    assert (story.verdict, story.changes, story.waves, codes(story)) == ("unchanged", (), (), ["Complete"])


async def test_growing_and_shrinking():
    world = settled(in_place(2).claims("data"))
    story = await foreseen(world, in_place(4).claims("data"))
    made = [(step.kind, step.alias) for wave in story.waves for step in wave.steps]
    assert made == [
        ("PersistentVolumeClaim", "new claim 1"), ("Pod", "new pod 1"),
        ("PersistentVolumeClaim", "new claim 2"), ("Pod", "new pod 2"),
    ]  # fmt: skip
    victim = names(world)[1]
    story = await foreseen(world, in_place(1).claims("data").scale(podsToDelete=[victim]))
    gone = [(step.do, step.kind, step.name) for wave in story.waves for step in wave.steps if step.do == "delete"]
    assert gone[0] == ("delete", "Pod", victim)
    assert gone[1][1].startswith("PersistentVolumeClaim")


async def test_a_pod_that_is_broken_today_stays_so_until_it_is_changed():
    world = settled(in_place(3))
    broken = world.objects["Pod"][names(world)[0]]
    broken["status"]["containerStatuses"][0] |= {"ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    for one in broken["status"]["conditions"]:
        one["status"] = "False" if one["type"] in ("Ready", "ContainersReady") else one["status"]
    story = await foreseen(world, in_place(3).template(NEW).partition(3))
    assert story.notes == (f"assumed to stay as it is: {names(world)[0]}: container nginx waits, CrashLoopBackOff",)
    story = await foreseen(world, in_place(3).template(NEW))
    assert done(story)[0] == [("updateInPlace", names(world)[0])]
    assert (story.notes, codes(story)) == ((), ["Complete"])


async def test_an_update_that_is_under_way_goes_on():
    world = settled(in_place(3))
    world.change(in_place(3).template(NEW))
    world.reconcile()
    story = await foreseen(world, in_place(3).template(NEW))
    assert story.verdict == "unchanged"
    assert [len(wave) for wave in done(story)] == [1, 1]
    assert codes(story) == ["Complete"]


async def test_hundreds_of_pods_are_told_in_few_lines():
    """The pods are copies, so that making them costs nothing."""
    world = settled(in_place(2, 1))
    model = next(iter(world.objects["Pod"].values()))
    for number in range(98):
        name = f"sample-{number:05}"
        pod = deepcopy(model)
        pod["metadata"] |= {"name": name, "uid": f"uid-{name}", "resourceVersion": str(1000 + number)}
        pod["metadata"]["labels"]["apps.kruise.io/cloneset-instance-id"] = f"{number:05}"
        world.objects["Pod"][name] = pod
    world.objects["CloneSet"]["sample"]["spec"]["replicas"] = 100
    story = await foreseen(world, in_place(100, "20%").template(NEW))
    assert [len(wave) for wave in done(story)] == [20] * 5
    story = await foreseen(world, in_place(100, 1).template(NEW))
    assert len(story.waves) == 100
    lines = render(story, everything=False).plain.splitlines()
    assert len(lines) == 10, lines
    assert any(
        line.startswith("2.-100. when sample-") and line.endswith("and so on: 99 similar waves") for line in lines
    )
    assert any(
        "update in place 99 pods: " in line and " and 94 more: nginx image nginx:2 → nginx:3" in line for line in lines
    )
    assert len(render(story, everything=True).plain.splitlines()) == 206


@pytest.mark.parametrize(
    "changed", [in_place(3, 2).template(NEW), in_place(3, 2).template(WITH_ENV), in_place(1).template(NEW)]
)
@pytest.mark.parametrize("causes", [("",), ("refresh", "recreate update to x"), ("a", "b", "c")])
async def test_causes_may_read_differently_without_another_story(
    monkeypatch: pytest.MonkeyPatch, changed: CloneSetBuilder, causes: tuple[str, ...]
):
    first = await foreseen(settled(in_place(3, 2)), changed)
    words = cycle(causes)

    def reworded(write: Write) -> Step | None:
        action = msgspec.structs.replace(write.action, cause=next(words))
        return step_of(msgspec.structs.replace(write, action=action))

    monkeypatch.setattr(waves, "step_of", reworded)
    second = await foreseen(settled(in_place(3, 2)), changed)
    assert first.waves
    assert wordless(first) == wordless(second)


def wordless(story: Report) -> Report:
    """Return the story without causes."""
    waves = tuple(
        msgspec.structs.replace(wave, steps=tuple(msgspec.structs.replace(step, cause="") for step in wave.steps))
        for wave in story.waves
    )
    return msgspec.structs.replace(story, waves=waves)


def under_budget(world: World, most: int) -> None:
    """Protect the world's three pods."""
    for pod in world.objects["Pod"].values():
        pod["metadata"].setdefault("annotations", {})["pub.kruise.io/related-pub"] = "pub"
    world.objects["PodUnavailableBudget"]["pub"] = {
        "metadata": {"name": "pub", "namespace": "default", "uid": "u-pub", "resourceVersion": "1", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "sample"}}, "maxUnavailable": most},
        "status": {
            "observedGeneration": 1,
            "unavailableAllowed": most,
            "currentAvailable": 3,
            "desiredAvailable": 3 - most,
            "totalReplicas": 3,
        },
    }


async def test_a_budget_holds_an_update_back():
    gate = "PodUnavailableBudgetUpdateGate=true"
    world = settled(in_place(3, "100%"))
    under_budget(world, 1)
    story = await foreseen(world, in_place(3, "100%").template(NEW), gates=gate)
    assert [len(wave) for wave in done(story)] == [1, 1, 1]
    assert story.serving is not None
    assert (story.serving.lowest, codes(story)) == (2, ["Complete"])
    assert "pub" not in {step.name for wave in story.waves for step in wave.steps}
    assert all(0 < wave.seconds < 10 for wave in story.waves[1:]), "an entry is kept for ten seconds"


async def test_a_budget_of_none_keeps_every_pod_as_it_is():
    world = settled(in_place(3, "100%"))
    under_budget(world, 0)
    story = await foreseen(world, in_place(3, "100%").template(NEW), gates="PodUnavailableBudgetUpdateGate=true")
    assert not [step for wave in done(story) for step in wave]
    assert codes(story) == ["WaitingForBudget"]


async def test_updates_are_not_held_back_without_the_gate():
    world = settled(in_place(3, "100%"))
    under_budget(world, 0)
    assert [len(wave) for wave in done(await foreseen(world, in_place(3, "100%").template(NEW)))] == [3]
