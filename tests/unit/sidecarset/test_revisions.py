"""Revisions of SidecarSets: made, used again, tagged, forgotten (sidecarset.md §7.4, §11.4)."""

from typing import Any

import pytest

from flotilla_common.api.core import ControllerRevision
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from tests.unit.sidecarset.build import HASH, Builder, as_json, hot_side, planned, pod, record, revision, side, sidecar
from tests.unit.sidecarset.world import World


def numbered(number: int) -> Builder:
    """Return the spec of that number."""
    return Builder([sidecar(f"v{number}")])


def history(*numbers: int, **labels: dict[str, str]) -> list[ControllerRevision]:
    return [revision(numbered(one), one, f"side-{one}", **labels.get(f"r{one}", {})) for one in numbers]


def of_revisions(result: Plan) -> list[Action]:
    return [one for one in result.actions if one.resource.kind == "ControllerRevision"]


def deleted(result: Plan) -> list[str]:
    return [one.name for one in of_revisions(result) if isinstance(one, Delete)]


def test_a_new_spec_gets_a_revision() -> None:
    builder = side("B").meta(labels={"team": "mesh"}).set(customVersion="v2")
    result = planned(builder, [], revisions=[revision(side("A"), 4)])
    (create,) = of_revisions(result)
    assert isinstance(create, Create)
    body, meta = create.body, create.body["metadata"]
    assert (meta["namespace"], body["revision"]) == ("kruise-system", 5)
    hash_ = meta["name"].removeprefix("side-")
    assert meta["labels"] == {
        "team": "mesh",
        "kruise.io/sidecarset-name": "side",
        "apps.kruise.io/sidecarset-custom-version": "v2",
        "controller.kubernetes.io/hash": hash_,
    }
    assert meta["annotations"] == builder.build().metadata.annotations
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("SidecarSet", "side", "uid-side", True)
    assert body["data"]["spec"].keys() == {
        "$patch",
        "volumes",
        "containers",
        "initContainers",
        "imagePullSecrets",
        "patchPodMetadata",
    }
    assert body["data"]["spec"]["volumes"] is None


def test_nothing_is_said_to_be_observed_before_the_revision_is_stored() -> None:
    """And no pod is written, if it cannot be stored."""
    result = planned(side("B"), "A", revisions=[])
    assert result.status is None
    assert isinstance(result.stages[0].chains[0][0], Create)
    assert result.stages[0].stop_on_failure
    assert len(result.stages) == 2


def test_pods_remember_the_revision_that_is_about_to_be_stored() -> None:
    world = World(side("B"), [pod(letter="A")])
    world.reconcile()
    (name,) = world.objects["ControllerRevision"]
    assert f'"controllerRevision":"{name}"' in world.pods[0]["metadata"]["annotations"][HASH]


def test_the_newest_revision_is_used_again() -> None:
    result = planned(side("B"), [], revisions=[revision(side("A"), 1), revision(side("B"), 2)])
    assert of_revisions(result) == []
    assert result.status is not None
    assert result.status.body["status"]["latestRevision"] == revision(side("B"), 2).metadata.name


def test_a_rollback_raises_the_old_revision() -> None:
    """Its labels and annotations stay as they were when it was made."""
    builder = side("A").meta(labels={"new": "label"})
    (raised,) = of_revisions(planned(builder, [], revisions=[revision(side("A"), 1), revision(side("B"), 2)]))
    assert isinstance(raised, Patch)
    assert (raised.name, raised.body) == (revision(side("A"), 1).metadata.name, {"revision": 3})
    assert raised.resource_version == "1"


@pytest.mark.parametrize("content", [side("A"), hot_side("B")], ids=["other data", "others"])
def test_a_name_that_is_taken_counts_as_a_collision(content: Builder) -> None:
    name = revision(side("B"), 1).metadata.name
    foreign = revision(content, 1, name, owned=False)
    result = planned(side("B"), [], revisions=[foreign])
    (create,) = [one for one in of_revisions(result) if isinstance(one, Create)]
    assert create.name != name


def test_a_custom_version_may_come_later() -> None:
    """Without a new spec; and it may change."""
    builder = side("B").set(customVersion="v2")
    (tag,) = of_revisions(planned(builder, []))
    assert isinstance(tag, Patch)
    assert tag.body == {"metadata": {"labels": {"apps.kruise.io/sidecarset-custom-version": "v2"}}}
    tagged = revision(builder, 1, **{"apps.kruise.io/sidecarset-custom-version": "v2"})
    assert of_revisions(planned(builder, [], revisions=[tagged])) == []
    assert of_revisions(planned(side("B"), [], revisions=[tagged])) == [], "none is no reason to take it off"


def test_revisions_that_nobody_has_are_taken_in() -> None:
    """They are left over when a SidecarSet was deleted without its dependents.

    The apiserver has to confirm first that this one exists as it was seen.
    """
    left = revision(side("B"), 1, owned=False)
    result = planned(side("B"), [], revisions=[left])
    (chain,) = [chain for stage in result.stages for chain in stage.chains]
    first, second = chain
    assert isinstance(first, Patch)
    assert isinstance(second, Patch)
    assert (first.resource.kind, first.resource_version, first.body) == ("SidecarSet", "77", {})
    assert second.body["metadata"]["ownerReferences"][0]["uid"] == "uid-side"
    tagged = planned(side("B").set(customVersion="v2"), [], revisions=[left])
    assert len(tagged.actions) == 2, "what else becomes of it, the next pass says"


# -- history


def test_the_oldest_go() -> None:
    """15 specs, limit 10: 6 … 15 are left."""
    world = World(numbered(1), [])
    for number in range(2, 16):
        world.settle()
        world.change(numbered(number))
    world.settle()
    left = [one["revision"] for one in world.objects["ControllerRevision"].values()]
    assert sorted(left) == list(range(6, 16))
    world.change(numbered(12))
    world.settle()
    left = [one["revision"] for one in world.objects["ControllerRevision"].values()]
    assert sorted(left) == [6, 7, 8, 9, 10, 11, 13, 14, 15, 16]


@pytest.mark.parametrize(
    ("limit", "numbers", "expected"),
    [
        pytest.param(None, range(1, 13), ["side-1", "side-2"], id="10 by default"),
        pytest.param(3, range(1, 5), ["side-1"], id="one too many"),
        pytest.param(3, range(1, 4), [], id="as many as may be"),
        pytest.param(0, range(1, 4), ["side-1", "side-2"], id="0 is 1"),
        pytest.param(-2, range(1, 3), ["side-1"], id="negative is 1"),
    ],
)
def test_how_many_are_kept(limit: int | None, numbers: range, expected: list[str]) -> None:
    builder = numbered(numbers[-1])
    builder = builder if limit is None else builder.set(revisionHistoryLimit=limit)
    assert deleted(planned(builder, [], revisions=history(*numbers))) == expected


def remembering(name: str, flags: str = "") -> Any:
    return pod(f"of-{name}", "v12", flags, annotations={HASH: as_json({"side": record("h", revision=name)})})


def test_those_that_pods_remember_are_spared() -> None:
    """12 revisions, limit 10: the next oldest two go."""
    there = [remembering("side-1"), remembering("side-2"), remembering("side-3", "T")]
    result = planned(numbered(12).strategy(paused=True), there, revisions=history(*range(1, 13)))
    assert deleted(result) == ["side-3", "side-4"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        pytest.param({"revisionName": "side-1"}, ["side-2"], id="by name"),
        pytest.param({"customVersion": "x"}, ["side-1"], id="by version: the newest of them"),
        pytest.param({"customVersion": "y"}, ["side-1"], id="by a version that there is not"),
        pytest.param({}, ["side-1"], id="no choice"),
    ],
)
def test_the_one_that_new_pods_get_is_spared(choice: dict[str, str], expected: list[str]) -> None:
    tag = {"apps.kruise.io/sidecarset-custom-version": "x"}
    builder = numbered(3).set(revisionHistoryLimit=2, injectionStrategy={"revision": choice})
    assert deleted(planned(builder, [], revisions=history(1, 2, 3, r1=tag, r2=tag))) == expected


def test_before_any_is_deleted_the_apiserver_confirms_the_spec() -> None:
    """A newer one may name just this revision: then no pod could be created."""
    result = planned(numbered(3).set(revisionHistoryLimit=1), [], revisions=history(1, 2, 3))
    (stage,) = result.stages
    (chain,) = stage.chains
    assert isinstance(chain[0], Patch)
    assert (chain[0].resource.kind, chain[0].resource_version, chain[0].body) == ("SidecarSet", "77", {})
    assert [one.name for one in chain[1:]] == ["side-1", "side-2"]
    assert not stage.stop_on_failure
