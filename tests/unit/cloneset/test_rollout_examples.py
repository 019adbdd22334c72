"""The worked examples of rollouts (cloneset.md §8.2), one row per pass."""

from typing import Any

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Create, Patch
from tests.testkit.plans import codes
from tests.testkit.tables import cases
from tests.testkit.workloads import raw
from tests.unit.cloneset.build import (
    CloneSetBuilder,
    cloneset,
    planned,
    pod,
    progressing,
    revision,
    revisions,
    summary,
    template,
)

ROLLBACK = "CloneSetPartitionRollback=true"


def surge() -> CloneSetBuilder:
    return cloneset().replicas(5).partition(3).max_unavailable(0).max_surge("20%").in_place()


ROWS: list[tuple[str, CloneSetBuilder, str, list[str], set[str]]] = [
    ("row-1", surge(), "5o", ["create new"], {"ScalingUp"}),
    ("row-2", surge(), "5o 1n!", [], {"WaitingForMaxUnavailable"}),
    ("row-3", surge(), "5o 1n", ["update o1"], {"Updating"}),
    ("row-4", surge(), "4o 1n 1n!", [], {"WaitingForDeleteBudget"}),
    ("row-5", surge(), "4o 2n", ["delete o1"], {"Deleting"}),
    ("row-6", surge(), "3o 2n", [], {"PartitionReached"}),
    ("row-7", surge().partition(0), "3o 2n", ["create new"], set()),
    ("row-8", cloneset().replicas(5).partition(3), "5o", ["mark o1"], {"WaitingForMaxUnavailable"}),
    ("row-9", cloneset().replicas(5).partition(3), "4o 1o*", ["delete o5"], set()),
    ("row-10", cloneset().replicas(5).partition(3), "4o", ["create new"], set()),
    ("row-11", cloneset().replicas(5).partition(3), "4o 1n!", [], {"WaitingForMaxUnavailable"}),
    ("row-12", cloneset().replicas(8).partition("90%"), "8o", ["mark o1"], set()),
    ("row-13a", cloneset().replicas(3).max_unavailable(0).max_surge(1), "3o", ["create new"], set()),
    ("row-13b", cloneset().replicas(3).max_unavailable(0).max_surge(1), "3o 1n", ["mark o1"], set()),
    ("row-13c", cloneset().replicas(3).max_unavailable(0).max_surge(1), "2o 1o* 1n", ["delete o3"], set()),
    ("row-13d", cloneset().replicas(3).max_unavailable(0).max_surge(1), "2o 1n", ["create new"], set()),
    ("row-14", cloneset().replicas(4).max_unavailable(2).in_place(), "2o 2o!", ["update o3", "update o4"], set()),
    ("row-15", cloneset().replicas(4).max_unavailable(1).in_place(), "3o 1n!", [], {"WaitingForMaxUnavailable"}),
    ("row-16", cloneset().replicas(5).paused(), "5o", [], {"PausedByUser"}),
    ("row-17", cloneset().replicas(5).paused().max_surge(3), "3o", ["create new"] * 2, set()),
    ("row-17-next", cloneset().replicas(5).paused().max_surge(3), "3o 1n", ["create new"], set()),
    (
        "row-18",
        cloneset().replicas(5).partition(2).max_unavailable(0).max_surge(3).paused(),
        "5o 3n!",
        [],
        {"WaitingForDeleteBudget", "PausedByUser"},
    ),
    ("row-19", cloneset().replicas(6).partition(5), "5n 1o", [], set()),
    ("row-21", cloneset().replicas(5).partition(1).max_unavailable(1), "3o 1n 1n!", [], {"WaitingForMaxUnavailable"}),
    (
        "row-22",
        cloneset().replicas(4).partition(2).max_unavailable(1),
        "4o 4n",
        ["delete o1", "delete o2", "delete n1", "delete n2"],
        set(),
    ),
    ("row-23", cloneset().replicas(10).partition(3), "3o 2n", ["create new"] * 5, set()),
    ("row-23-next", cloneset().replicas(10).partition(3), "3o 5n", ["create new"] * 2, set()),
    ("row-24", cloneset().replicas(10).partition("50%"), "3o 2n", ["create old"] * 2, set()),
    ("row-24-next", cloneset().replicas(10).partition("50%"), "5o 2n", ["create new"] * 3, set()),
    ("row-33a", cloneset().replicas(6).on_delete(), "6o", [], {"OnDelete"}),
    ("row-33b", cloneset().replicas(6).on_delete(), "5o", ["create new"], set()),
    ("row-33c", cloneset().replicas(4).on_delete(), "4o 2n", ["delete o1", "delete o2"], set()),
    ("row-33d", cloneset().replicas(6).on_delete(), "2o 2n", ["create new"] * 2, set()),
]


@pytest.mark.parametrize(("builder", "notation", "expected", "said"), cases(ROWS))
def test_pass(builder: CloneSetBuilder, notation: str, expected: list[str], said: set[str]) -> None:
    result = planned(builder, notation)
    assert summary(result) == expected
    assert said <= codes(result)


@pytest.mark.parametrize(
    ("builder", "notation", "numbers"),
    [
        pytest.param(surge(), "5o", {"useSurge": 1, "scaleUp": 1}, id="row-1"),
        pytest.param(surge(), "5o 1n!", {"updateNum": 1, "budget": 1}, id="row-2"),
        pytest.param(surge(), "4o 1n 1n!", {"scaleDown": 1, "deleteReady": 0}, id="row-4"),
        pytest.param(surge(), "3o 2n", {"expectedUpdated": 2}, id="row-6"),
        pytest.param(
            cloneset().replicas(8).partition("90%"), "8o", {"partition": 7, "expectedUpdated": 1}, id="row-12"
        ),
        pytest.param(
            cloneset().replicas(5).partition(1).max_unavailable(1),
            "3o 1n 1n!",
            {"updateNum": 2, "budget": 1},
            id="row-21",
        ),
        pytest.param(
            cloneset().replicas(4).partition(2).max_unavailable(1),
            "4o 4n",
            {"scaleDown": 4, "deleteReady": 5},
            id="row-22",
        ),
    ],
)
def test_numbers(builder: CloneSetBuilder, notation: str, numbers: dict[str, int]) -> None:
    assert numbers.items() <= planned(builder, notation).numbers.items()


def test_row_16_status_of_a_paused_rollout() -> None:
    result = planned(cloneset().replicas(5).paused().deadline(600), "5o")
    assert result.status is not None
    status = result.status.body["status"]
    assert (status["updateRevision"], status["currentRevision"], status["updatedReplicas"]) == (
        "sample-new",
        "sample-old",
        0,
    )
    assert progressing(result) == "CloneSetPaused"


@pytest.mark.parametrize(
    ("notation", "expected", "update"),
    [
        pytest.param("5n 1o", ["update n1", "update n2"], -4, id="row-20a"),
        pytest.param("3n 2o! 1o", [], -2, id="row-20b"),
        pytest.param("3n 3o", ["update n1", "update n2"], -2, id="row-20c"),
        pytest.param("1n 5o", [], 0, id="row-20d"),
    ],
)
def test_row_20_partition_rollback(notation: str, expected: list[str], update: int) -> None:
    result = planned(cloneset().replicas(6).partition(5).max_unavailable(2).in_place(), notation, gates=ROLLBACK)
    assert summary(result) == expected
    assert result.numbers["updateNum"] == update
    if expected:
        patch = result.actions[1]
        assert isinstance(patch, Patch)
        assert patch.body["metadata"]["labels"]["controller-revision-hash"] == "sample-old"


def test_row_25_back_to_the_previous_template() -> None:
    builder = cloneset().replicas(5).template(template("nginx:1")).max_unavailable(1).in_place()
    result = planned(builder, "3o 2n")
    raised, *_ = result.actions
    assert isinstance(raised, Patch)
    assert (raised.resource.kind, raised.name, raised.body["revision"]) == ("ControllerRevision", "sample-old", 3)
    assert summary(result) == ["update n1"]
    assert result.status is not None
    status = result.status.body["status"]
    assert (status["updateRevision"], status["currentRevision"]) == ("sample-old", "sample-old")
    assert status["updatedReplicas"] == 3


def test_row_25_end() -> None:
    builder = cloneset().replicas(5).template(template("nginx:1")).deadline(600)
    assert progressing(planned(builder, "5o")) == "CloneSetAvailable"


THREE = (*revisions(), revision("third", template("nginx:3"), 3))


def test_row_26_updated_again_while_updating() -> None:
    state = (
        '{"revision":"sample-new","updateTimestamp":"2026-03-01T11:59:00Z",'
        '"lastContainerStatuses":{"nginx":{"imageID":"id"}},"updateImages":true}'
    )
    updating = pod("n1", ready=False, state="Updating", annotations={"apps.kruise.io/inplace-update-state": state})
    builder = cloneset().replicas(1).template(template("nginx:3")).in_place()
    result = planned(builder, [updating], revisions=THREE)
    assert summary(result) == ["update n1"]
    patch = result.actions[-1]
    assert isinstance(patch, Patch)
    assert '"revision":"sample-third"' in patch.body["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"]


def test_row_27_the_current_revision_stays_until_an_update_is_complete() -> None:
    builder = cloneset().replicas(6).partition(3).template(template("nginx:3"))
    result = planned(builder, "2o 1n", revisions=THREE)
    assert result.status is not None
    assert result.status.body["status"]["currentRevision"] == "sample-old"
    # scaleUpOld counts all pods that are not on the update revision: 3 - 3.
    assert result.numbers["scaleUp"] == 3
    assert summary(result) == ["create third"] * 3
    result = planned(builder.partition(5), "2o 1n", revisions=THREE)
    assert result.numbers["scaleUp"] == 3
    assert summary(result) == ["create old"] * 2


def with_env() -> dict[str, Any]:
    content = template()
    content["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    return content


def test_row_28_in_place_only_and_impossible() -> None:
    builder = cloneset().replicas(5).template(with_env()).in_place(only=True)
    result = planned(builder, "5o", revisions=revisions(new=with_env()))
    assert summary(result) == []
    ((phase, text),) = result.errors
    assert phase == "update"
    assert text == "find Pod sample-o1 update strategy is InPlaceOnly but can not update in-place"
    assert codes(result) == {"InPlaceImpossible"}
    again = planned(builder, "5o", revisions=revisions(new=with_env()), failures={phase: text})
    assert codes(again) == {"InPlaceImpossible"}


def test_row_28_condition_in_the_next_status() -> None:
    builder = cloneset().replicas(5).in_place(only=True)
    result = planned(builder, "5o", failures={"update": "no"})
    assert result.status is not None
    (condition,) = result.status.body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["message"]) == ("FailedUpdate", "True", "no")


def with_resources(**resources: Any) -> dict[str, Any]:
    content = template("nginx:1")
    content["spec"]["containers"][0]["resources"] = resources
    return content


def test_row_29_another_qos_class_needs_a_new_pod() -> None:
    old = with_resources(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1", "memory": "1Gi"})
    new = with_resources(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "2", "memory": "1Gi"})
    result = planned(
        cloneset().replicas(1).template(new).in_place(),
        "1o",
        revisions=revisions(old, new),
        gates="InPlaceWorkloadVerticalScaling=true",
    )
    assert summary(result) == ["mark o1"]


def test_row_30_only_claim_templates_changed() -> None:
    result = planned(cloneset().replicas(3).claims("data").stored(currentRevision="sample-new"), "3n")
    assert result.actions == []


VCT_GATE = "RecreatePodWhenChangeVCTInCloneSetGate=true"
VCT_HASHES = (
    revision("old", template("nginx:1"), 1, **{"kruise.io/cloneset-volumeclaimtemplate-hash": "1"}),
    revision("new", template(), 2, **{"kruise.io/cloneset-volumeclaimtemplate-hash": "2"}),
)


@pytest.mark.parametrize(
    ("only", "expected"),
    [pytest.param(False, ["mark o1"], id="row-31"), pytest.param(True, ["update o1"], id="row-32")],
)
def test_changed_claim_templates_under_their_gate(only: bool, expected: list[str]) -> None:
    builder = cloneset().replicas(3).claims("data").in_place(only=only)
    assert summary(planned(builder, "3o", revisions=VCT_HASHES, gates=VCT_GATE)) == expected


def held(name: str, **members: Any) -> Pod:
    return pod(name, "o", labels={"hold": "inPlaceUpdate"}, **members)


def test_row_34_the_hook_is_asked_first() -> None:
    builder = cloneset().replicas(3).partition(2).max_unavailable(1).in_place().hook("inPlaceUpdate")
    result = planned(builder, [held("o1"), held("o2"), held("o3")])
    assert summary(result) == ["state o1 PreparingUpdate"]
    patch = result.actions[0]
    assert isinstance(patch, Patch)
    assert "controller-revision-hash" not in patch.body["metadata"]["labels"]
    waiting = planned(builder, [held("o1", state="PreparingUpdate"), held("o2"), held("o3")])
    assert summary(waiting) == []
    assert "WaitingForHook" in codes(waiting)


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param("PreparingUpdateAsUpdate=true", ["create old"], id="row-35-gate-on"),
        pytest.param("", ["create new"], id="row-35-gate-off"),
    ],
)
def test_row_35_a_preparing_pod_may_count_as_new(gates: str, expected: list[str]) -> None:
    builder = cloneset().replicas(3).partition(2).max_unavailable(1).in_place().hook("inPlaceUpdate")
    waiting = [held("o1", state="PreparingUpdate"), held("o2")]
    assert summary(planned(builder, waiting, gates=gates)) == expected


def test_a_new_template_gets_a_revision_before_anything_else() -> None:
    result = planned(cloneset().replicas(5).template(template("nginx:9")), "5o")
    first, *_ = result.actions
    assert isinstance(first, Create)
    assert first.resource.kind == "ControllerRevision"
    assert first.body["revision"] == 3
    assert result.stages[0].stop_on_failure
    assert result.status is not None
    assert result.status.body["status"]["updateRevision"] == first.name


@pytest.mark.parametrize("content", [None, [], "text", {"spec": {}}], ids=["null", "list", "text", "no labels"])
def test_a_template_that_is_none_is_no_accident(content: Any) -> None:
    builder = cloneset().replicas(5)
    builder.spec["template"] = content
    result = planned(builder, "", revisions=())
    assert summary(result) == []
    assert "InvalidTemplate" in codes(result)
    assert [event.reason for event in result.events] == ["InvalidTemplate"]
    assert raw(content)
