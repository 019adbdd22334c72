"""The worked examples of scaling (cloneset.md §8.3)."""

from datetime import timedelta

import pytest

from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Create, Delete, Patch
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS
from flotilla_common.workload.pod_creation import CREATES_PER_PASS
from tests.testkit.plans import codes
from tests.testkit.tables import cases
from tests.unit.cloneset.build import NOW, CloneSetBuilder, claim, cloneset, planned, pod, summary

ROWS: list[tuple[str, CloneSetBuilder, str, list[str], set[str]]] = [
    ("row-37", cloneset().replicas(5), "", ["create new"] * 3, {"ScalingUp"}),
    ("row-37-second", cloneset().replicas(5), "3n", ["create new"] * 2, {"ScalingUp"}),
    ("row-40", cloneset().replicas(3), "5n", ["delete n1", "delete n2"], {"Deleting"}),
    ("row-41", cloneset().replicas(3), "4n 1n*", ["delete n5"], set()),
    ("row-41-next", cloneset().replicas(3), "4n", ["delete n1"], set()),
    ("row-42", cloneset().replicas(5).max_unavailable(1), "3n 2n*", ["delete n4"], {"WaitingForDeleteBudget"}),
    ("row-42-replacement", cloneset().replicas(5).max_unavailable(1), "3n 1n*", ["create new"], set()),
    ("row-42-waiting", cloneset().replicas(5).max_unavailable(1), "3n 1n! 1n*", [], {"WaitingForDeleteBudget"}),
    ("row-43", cloneset().replicas(5).max_unavailable(0).max_surge(1), "4n 1n*", ["create new"], set()),
    ("row-43-next", cloneset().replicas(5).max_unavailable(0).max_surge(1), "5n 1n*", ["delete n6"], set()),
    ("row-43-wait", cloneset().replicas(5).max_unavailable(0).max_surge(1), "4n 1n! 1n*", [], set()),
    ("row-44", cloneset().replicas(5).max_unavailable(0).max_surge(1), "4n 1n!*", ["create new"], set()),
    ("row-44-M1", cloneset().replicas(5).max_unavailable(1), "4n 1n!*", ["delete n5"], set()),
    ("row-45", cloneset().replicas(5).scale(podsToDelete=["sample-n1"]), "5n", ["delete n1"], set()),
    ("row-46", cloneset().replicas(5).scale(podsToDelete=["nonexistent"]), "5n", [], set()),
    ("row-54", cloneset().replicas(0), "2n", ["delete n1", "delete n2"], set()),
]


@pytest.mark.parametrize(("builder", "notation", "expected", "said"), cases(ROWS))
def test_pass(builder: CloneSetBuilder, notation: str, expected: list[str], said: set[str]) -> None:
    result = planned(builder, notation)
    assert summary(result) == expected
    assert said <= codes(result)


def test_row_37_creates_start_slowly() -> None:
    (stage,) = planned(cloneset().replicas(5), "").stages
    assert stage.slow_start == 1, "1, then 2; the last 2 come with the next pass"
    create = stage.chains[0][0]
    assert isinstance(create, Create)
    assert create.on_success is not None
    assert create.on_success.text() == f"succeed to create pod {create.name}"
    assert create.on_failure is not None
    assert create.on_failure.text("quota").startswith("failed to create pod: quota, pod: {")


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        pytest.param((10, 10), 0, id="row-38"),
        pytest.param((40, 10), 1, id="row-38-one-available"),
        pytest.param((40, 40), 2, id="row-38-both-available"),
    ],
)
def test_creation_within_scale_max_unavailable(ages: tuple[int, int], expected: int) -> None:
    builder = cloneset().replicas(6).scale(maxUnavailable=2).min_ready(30)
    two = [pod(f"n{i}", ready_since=NOW - timedelta(seconds=age)) for i, age in enumerate(ages)]
    result = planned(builder, two)
    assert summary(result) == ["create new"] * expected
    (event,) = result.events
    assert event.text() == f"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {expected}"
    if 10 in ages:
        assert result.wake_at is not None
        assert timedelta(seconds=20) < result.wake_at - NOW < timedelta(seconds=21)


def test_row_39_pods_that_are_not_available_yet_block_scale_in() -> None:
    four = [pod(f"n{i}", ready_since=NOW - timedelta(seconds=60)) for i in range(4)]
    result = planned(cloneset().replicas(2).min_ready(600), four)
    assert summary(result) == []
    assert result.numbers["deleteReady"] == 0
    assert "WaitingForDeleteBudget" in codes(result)


def test_row_44_a_pod_that_is_not_ready_is_deleted_at_that_version_only() -> None:
    (delete,) = planned(cloneset().replicas(5).max_unavailable(1), "4n 1n!*").actions
    assert isinstance(delete, Delete)
    assert (delete.uid, delete.resource_version) == ("uid-n5", "5")
    (delete,) = planned(cloneset().replicas(5).max_unavailable(1), "4n 1n*").actions
    assert isinstance(delete, Delete)
    assert delete.resource_version == ""


@pytest.mark.parametrize(
    ("listed", "notation", "kept"),
    [
        pytest.param(["sample-n1"], "4n", ["sample-n1"], id="row-45-still-there"),
        pytest.param(["sample-n9"], "5n", None, id="row-45-gone"),
        pytest.param(["nonexistent"], "5n", None, id="row-46"),
        pytest.param(["sample-n1", "nonexistent"], "5n", ["sample-n1"], id="one of two"),
    ],
)
def test_pods_to_delete_is_pruned(listed: list[str], notation: str, kept: list[str] | None) -> None:
    result = planned(cloneset().replicas(5).scale(podsToDelete=listed), notation)
    if kept == listed:
        assert result.after_status == ()
        return
    (stage,) = result.after_status
    patch = stage.chains[0][0]
    assert isinstance(patch, Patch)
    assert patch.body == {"spec": {"scaleStrategy": {"podsToDelete": kept}}}
    assert patch.resource_version == "7"


def doomed(**members: bool) -> Pod:
    labels = {"hold": "preDelete"}
    if members.get("specified", True):
        labels["apps.kruise.io/specified-delete"] = "true"
    return pod("x", labels=labels, state="PreparingDelete" if members.get("preparing") else "Normal")


def others(count: int) -> list[Pod]:
    return [pod(f"n{i}") for i in range(count)]


def test_row_47_a_hook_holds_the_deletion() -> None:
    builder = cloneset().replicas(4).hook("preDelete")
    assert summary(planned(builder, [*others(3), doomed()])) == ["state x PreparingDelete"]
    waiting = planned(builder, [*others(3), doomed(preparing=True)])
    assert summary(waiting) == []
    assert "WaitingForHook" in codes(waiting)
    let_go = planned(builder, [*others(3), pod("x", state="PreparingDelete")])
    assert summary(let_go) == ["state x PreparingNormal"]
    specified = pod("x", state="PreparingDelete", labels={"apps.kruise.io/specified-delete": "true"})
    assert summary(planned(builder, [*others(3), specified])) == ["delete x"]


@pytest.mark.parametrize(
    ("builder", "options"),
    [
        pytest.param(cloneset().scale(excludePreparingDelete=True), Options(), id="row-48"),
        pytest.param(cloneset(), Options(exclude_preparing_delete=True), id="row-48-flag"),
    ],
)
def test_a_replacement_need_not_wait_for_the_hook(builder: CloneSetBuilder, options: Options) -> None:
    all_pods = [*others(3), doomed(preparing=True)]
    result = planned(builder.replicas(4).hook("preDelete"), all_pods, options=options)
    assert summary(result) == ["create new"]


def test_row_49_and_50_a_deletion_is_cancelled() -> None:
    all_pods = [*others(5), doomed(preparing=True, specified=False)]
    result = planned(cloneset().replicas(6).hook("preDelete"), all_pods)
    assert summary(result) == ["state x PreparingNormal"]
    assert "DeletionCancelled" in codes(result)
    assert summary(planned(cloneset().replicas(5).hook("preDelete"), all_pods)) == []
    marked = planned(cloneset().replicas(6).hook("preDelete", not_ready=True), all_pods)
    assert summary(marked) == []


def test_row_51_claims_and_name_are_taken_over() -> None:
    builder = cloneset().replicas(4).claims("data").scale(enablePVCReuse=True)
    claims = [claim(identity) for identity in ("n0", "n1", "n2", "x")]
    waiting = planned(builder, [*others(3), pod("x", deleting=True)], claims=claims)
    assert summary(waiting) == []
    assert "WaitingForTermination" in codes(waiting)
    (create,) = planned(builder, others(3), claims=claims).actions
    assert isinstance(create, Create)
    assert (create.resource.kind, create.name) == ("Pod", "sample-x")
    assert create.body["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-sample-x", "readOnly": False}}
    ]


def test_row_52_without_reuse_claims_follow_their_pod() -> None:
    builder = cloneset().replicas(4).claims("data")
    claims = [claim(identity) for identity in ("n0", "n1", "n2", "x", "lost")]
    result = planned(builder, [*others(3), pod("x", deleting=True)], claims=claims)
    handed, lost, new_claim, new_pod = result.actions
    assert isinstance(handed, Patch)
    assert handed.name == "data-sample-x"
    (owner,) = handed.body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", "uid-x", True)
    assert isinstance(lost, Delete)
    assert lost.name == "data-sample-lost"
    assert isinstance(new_claim, Create)
    assert isinstance(new_pod, Create)
    identity = new_pod.name.removeprefix("sample-")
    assert identity not in ("x", "lost")
    assert new_claim.name == f"data-sample-{identity}"


def test_row_53_a_finished_pod_is_replaced_and_left_alone() -> None:
    result = planned(cloneset().replicas(5), [*others(4), pod("x", phase="Failed")])
    assert summary(result) == ["create new"]
    assert result.numbers["total"] == 4


def test_row_55_a_pod_that_left_the_selector_is_released() -> None:
    stray = pod("x", labels={"app": "other"})
    result = planned(cloneset().replicas(5), [*others(4), stray])
    assert summary(result) == ["release x", "create new"]
    release = result.actions[0]
    assert isinstance(release, Patch)
    assert release.body == {"metadata": {"ownerReferences": None}}
    assert release.resource_version == "5"


@pytest.mark.parametrize(
    ("all_pods", "expected"),
    [
        pytest.param(
            [pod("a1", node="node-b"), pod("b1", node="node-a"), pod("b2", node="node-a")], ["delete b1"], id="row-56"
        ),
        pytest.param(
            [
                pod("a", annotations={"controller.kubernetes.io/pod-deletion-cost": "100"}),
                pod("b", annotations={"controller.kubernetes.io/pod-deletion-cost": "10"}),
                pod("c", annotations={"controller.kubernetes.io/pod-deletion-cost": "100"}),
            ],
            ["delete b"],
            id="row-57",
        ),
        pytest.param(
            [
                pod("a", annotations={"controller.kubernetes.io/pod-deletion-cost": "10"}),
                pod("b", annotations={"controller.kubernetes.io/pod-deletion-cost": "1000"}, ready=False),
                pod("c", annotations={"controller.kubernetes.io/pod-deletion-cost": "100"}),
            ],
            ["delete b"],
            id="row-57-not-ready",
        ),
    ],
)
def test_choice(all_pods: list[Pod], expected: list[str]) -> None:
    assert summary(planned(cloneset().replicas(2), all_pods)) == expected


def test_row_58_a_failed_scale_is_told_and_does_not_block_the_update() -> None:
    builder = cloneset().replicas(5).max_unavailable(4)
    result = planned(builder, "2o", failures={"scale": "exceeded quota"})
    assert result.status is not None
    (condition,) = result.status.body["status"]["conditions"]
    assert (condition["type"], condition["message"]) == ("FailedScale", "exceeded quota")
    assert summary(result) == ["mark o1"]
    assert summary(planned(builder, "2o!*", failures={"scale": "exceeded quota"})) == ["create new"]
    assert summary(planned(builder, "2o")) == ["create new"] * 3


def test_a_pass_brings_two_batches_each_twice_as_large_as_the_one_before() -> None:
    builder = cloneset().replicas(30)
    (stage,) = planned(builder, "3o 4n").stages
    assert (len(stage.chains), stage.slow_start) == (15, 5)
    (last,) = planned(builder, "3o 18n").stages
    assert (len(last.chains), last.slow_start) == (9, 0)
    (two,) = planned(cloneset().replicas(10), "3n").stages
    assert (len(two.chains), two.slow_start) == (7, 4), "the second of them has only three"
    assert summary(planned(builder, "8n", failures={"scale": "quota"})) == ["create new"]


def test_a_plan_says_whether_more_creates_come_with_later_passes() -> None:
    assert planned(cloneset().replicas(2), "").starts_slowly
    assert planned(cloneset().replicas(3), "").starts_slowly, "in two rounds"
    assert not planned(cloneset().replicas(2), "1n").starts_slowly
    assert not planned(cloneset().replicas(1), "").starts_slowly
    assert not planned(cloneset().replicas(9), "", failures={"scale": "quota"}).starts_slowly, "nobody waits for it"


def test_pods_of_the_old_revision_are_created_by_themselves() -> None:
    builder = cloneset().replicas(60).partition(12)
    assert summary(planned(builder, "1o 8n")) == ["create old"] * 6
    assert summary(planned(builder, "7o 8n")) == ["create old"] * 5
    assert summary(planned(builder, "12o 8n")) == ["create new"] * 27


def test_pods_that_have_to_wait_keep_no_others_from_being_created() -> None:
    leaving = [pod(name, deleting=True) for name in ("aaaaa", "bbbbb")]
    claims = [claim(name) for name in ("aaaaa", "bbbbb")]
    builder = cloneset().replicas(3).claims("data").scale(enablePVCReuse=True)
    result = planned(builder, leaving, claims=claims)
    assert summary(result) == ["create new"]
    assert "WaitingForTermination" in codes(result)


def test_a_foreground_deletion_leaves_everything_alone() -> None:
    builder = cloneset().replicas(5)
    builder.metadata["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    result = planned(builder, [*others(2), pod("x", labels={"app": "other"})], claims=[claim("lost")], revisions=())
    assert result.actions == []
    assert result.status is not None


def test_the_same_snapshot_plans_the_same_names() -> None:
    first, second = (planned(cloneset().replicas(60), "30n").actions for _ in range(2))
    assert first == second
    assert len({action.name for action in first}) == 30
    after = {action.name for action in planned(cloneset().replicas(60), "29n").actions}
    assert not after & {action.name for action in first}


def test_creates_of_unknown_outcome_come_first() -> None:
    names = [action.name for action in planned(cloneset().replicas(5), "3n", pending_ids=("abcde",)).actions]
    assert names[0] == "sample-abcde"


def test_a_pass_is_bounded() -> None:
    assert len(planned(cloneset().replicas(1000), "100n").actions) == CREATES_PER_PASS
    assert len(planned(cloneset().replicas(0), "500n").actions) == MAX_CHAINS_PER_PASS


def test_a_pass_of_a_large_set_creates_more() -> None:
    assert len(planned(cloneset().replicas(10_000), "5000n").actions) == 50


def test_a_claim_that_is_still_being_deleted_keeps_only_its_own_pod_waiting() -> None:
    builder = cloneset().replicas(5).claims("data", "logs").scale(enablePVCReuse=True)
    claims = [claim("n0"), claim("n1"), claim("n2"), claim("x"), claim("x", "logs", deleting=True)]
    result = planned(builder, others(3), claims=claims)
    assert summary(result) == ["create new"]
    assert "WaitingForClaim" in codes(result)


def test_without_reuse_too_the_old_claims_of_a_pending_id_are_waited_for() -> None:
    builder = cloneset().replicas(2).claims("data")
    result = planned(builder, [pod("n1")], claims=[claim("n1"), claim("x", deleting=True)], pending_ids=("x",))
    assert summary(result) == []
    assert "WaitingForClaim" in codes(result)


def test_a_pod_without_an_id_takes_no_claims_along() -> None:
    nameless = pod("x")
    del nameless.metadata.labels["apps.kruise.io/cloneset-instance-id"]
    unlabelled = claim("y")
    del unlabelled.metadata.labels["apps.kruise.io/cloneset-instance-id"]
    builder = cloneset().replicas(0).claims("data").scale(enablePVCReuse=True)
    (delete,) = planned(builder, [nameless], claims=[claim(""), unlabelled]).actions
    assert (delete.resource.kind, delete.name) == ("Pod", "sample-x")


def test_the_id_of_a_finished_pod_is_not_taken_over() -> None:
    builder = cloneset().replicas(2).claims("data").scale(enablePVCReuse=True)
    result = planned(builder, [pod("n1"), pod("x", phase="Failed")], claims=[claim("n1"), claim("x")])
    names = [action.name for action in result.actions if action.resource.kind == "Pod"]
    assert len(names) == 1
    assert names != ["sample-x"]


def test_names_of_other_peoples_pods_are_not_used() -> None:
    (first,) = planned(cloneset().replicas(1), "").actions
    (second,) = planned(cloneset().replicas(1), "", taken_names={first.name}).actions
    assert second.name != first.name


def test_a_pod_that_waits_for_the_budget_keeps_no_broken_one() -> None:
    result = planned(cloneset().max_unavailable(0), "2n 1n* 1n!*")
    assert summary(result) == ["delete n4"]
    assert "WaitingForDeleteBudget" in codes(result)


def test_on_delete_has_the_default_budget() -> None:
    assert planned(cloneset().replicas(10).on_delete(), "10o").numbers["maxUnavailable"] == 2
