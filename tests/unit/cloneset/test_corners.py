"""Groups that come twice, pods that another step has, claims of others: cases outside of ordinary rollouts."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from flotilla_cloneset.cloneset.claims import own_claims
from flotilla_cloneset.cloneset.controller import CLONE_SETS, CONTROLLER, PULL_JOBS, Gatherer
from flotilla_cloneset.cloneset.numbers import Side
from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import CLAIM, NODE, POD
from flotilla_common.control.keystate import Memory
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.watches import owned
from tests.support.controller_context import FakeContext
from tests.testkit.plans import codes
from tests.unit.cloneset.build import NOW, CloneSetBuilder, claim, cloneset, planned, pod, pods, summary
from tests.unit.cloneset.build import OWNER as REFERENCE
from tests.unit.cloneset.test_classification import classified, names
from tests.unit.cloneset.test_refresh import half_started

GRACE = "apps.kruise.io/inplace-update-grace"


def referred(one: Pod) -> Pod:
    """Return the pod refers to the CloneSet, which does not control it."""
    one.metadata.owner_references[0] = msgspec.structs.replace(one.metadata.owner_references[0], controller=False)
    return one


def test_pods_of_different_traits_come_into_the_same_group() -> None:
    away = {"app": "other"}
    found = classified(
        [
            referred(pod("o1")),
            referred(pod("o2", ready=False)),
            pod("s1", labels=away),
            pod("s2", ready=False, labels=away),
            *pods("1o:PreparingUpdate 1o!:PreparingUpdate"),
        ]
    )
    assert names(found.orphans) == ["o1", "o2"]
    assert names(found.strays) == ["s1", "s2"]
    assert len(found.preparing_update) == 2


def test_a_pod_that_prepares_its_update_takes_its_deletion_to_the_other_side() -> None:
    specified = pod("x", "o", state="PreparingUpdate", labels={"apps.kruise.io/specified-delete": "true"})
    new, old = classified([specified, *pods("1o")]).sides(True)
    assert (new, old) == (Side(all=1, deleting=1), Side(all=1))


def test_an_image_that_was_edited_by_hand_is_not_undone() -> None:
    """The revision label of a pod decides, as users of in-place updates expect."""
    document = msgspec.to_builtins(pod("n1"))
    document["spec"]["containers"][0]["image"] = "nginx:debug"
    result = planned(cloneset().replicas(2).in_place(), [msgspec.convert(document, Pod)])
    assert summary(result) == ["create new"]


@pytest.mark.parametrize(("age", "available"), [(0.5, 0), (1.5, 1)])
def test_one_second_of_being_ready_is_a_second(age: float, available: int) -> None:
    found = classified([pod("a", ready_since=NOW - timedelta(seconds=age))], min_ready=1)
    assert found.counts.available == available


def starting(count: int) -> list[Pod]:
    return [pod(f"n{number}", state="PreparingNormal", ready=False) for number in range(count)]


def test_a_pass_refreshes_so_many_pods_and_no_more() -> None:
    count = MAX_CHAINS_PER_PASS + 1
    result = planned(cloneset().replicas(count), starting(count))
    assert sum(line.endswith(" Normal") for line in summary(result)) == MAX_CHAINS_PER_PASS


def test_a_pod_that_another_step_writes_does_not_keep_the_next_from_being_refreshed() -> None:
    doomed = pod("a", state="PreparingNormal", ready=False, labels={"apps.kruise.io/specified-delete": "true"})
    assert set(summary(planned(cloneset().replicas(2), [doomed, *starting(1)]))) >= {"delete a", "state n0 Normal"}


def test_a_pod_that_cannot_be_read_is_named_with_its_problem() -> None:
    odd = pod("odd", state="Updating", annotations={GRACE: "{"})
    result = planned(cloneset().replicas(1), [odd])
    (reason,) = [reason for reason in result.reasons if reason.code == "PodUnreadable"]
    assert reason.objects == ("sample-odd",)
    assert reason.message.startswith("cannot continue with sample-odd: pod sample-odd: annotation")


def labels_written(result: Any) -> dict[str, str]:
    return {
        key: value
        for action in result.actions
        for key, value in getattr(action, "body", {}).get("metadata", {}).get("labels", {}).items()
    }


def test_a_pod_that_was_made_anew_while_it_prepared_is_normal_again() -> None:
    result = planned(cloneset().replicas(1).in_place(), [pod("x", "n", state="PreparingUpdate")])
    assert labels_written(result) == {"lifecycle.apps.kruise.io/state": "Normal"}


def test_a_pod_without_a_revision_gets_no_hash_of_one() -> None:
    bare = pod("x", "n", state="PreparingNormal", ready=False)
    del bare.metadata.labels["controller-revision-hash"]
    del bare.metadata.labels["pod-template-hash"]
    result = planned(cloneset().replicas(1).paused(), [bare])
    assert "pod-template-hash" not in labels_written(result)
    assert "PodUnreadable" not in codes(result)


def test_a_pod_is_written_by_one_step() -> None:
    builder, one = PlanBuilder(), pod("a")
    assert [builder.touch(one), builder.touch(one), builder.touch(pod("b"))] == [True, False, True]


def test_claims_that_nobody_controls_are_not_ours() -> None:
    loose = msgspec.structs.replace(
        claim("a"), metadata=msgspec.structs.replace(claim("a").metadata, owner_references=[])
    )
    assert own_claims(cloneset().build(), [loose, claim("b")]).by_id.keys() == {"b"}


def test_a_counted_collision_is_part_of_a_new_revision() -> None:
    def created(**status: Any) -> str:
        result = planned(cloneset().replicas(0).stored(**status), [], revisions=())
        return next(action.name for action in result.actions if action.resource.kind == "ControllerRevision")

    assert created() == created(collisionCount=0)
    assert created(collisionCount=1) != created()


def test_tables_are_of_their_kinds() -> None:
    kinds = {"CloneSet", "ControllerRevision", NODE.kind, CLAIM.kind, POD.kind, IMAGE_PULL_JOB.kind}
    kinds.add(POD_UNAVAILABLE_BUDGET.kind)
    assert {watch.resource.kind: watch.type.__name__ for watch in CONTROLLER.all_watches} == {one: one for one in kinds}
    context = FakeContext()
    Gatherer(context, Options())
    for watch in CONTROLLER.watches:
        if watch.resource not in (NODE, POD_UNAVAILABLE_BUDGET):
            assert list(owned(context.table(watch), CLONE_SET, ObjectMeta(uid=REFERENCE["uid"]))) == []


@pytest.mark.parametrize("pull_ahead", [False, True])
def test_images_are_pulled_ahead_only_where_jobs_are_watched(pull_ahead: bool) -> None:
    context = FakeContext(unwatched=() if pull_ahead else (IMAGE_PULL_JOB,))
    gatherer = Gatherer(context, Options())
    one = cloneset().build()
    context.put(CLONE_SETS, one)
    snapshot = gatherer.gather((one.metadata.namespace, one.metadata.name), Memory())
    assert snapshot is not None
    assert snapshot.pull_jobs == ([] if pull_ahead else None)
    assert (PULL_JOBS.gate, PULL_JOBS.optional) == ("PreDownloadImageForInPlaceUpdate", True)


def test_counts_are_urgent_while_a_pod_prepares_its_deletion() -> None:
    """The process that drains it waits for the status, even while pods are being created."""
    first = planned(cloneset().replicas(3), "3n")
    assert first.status is not None
    stored = first.status.body["status"]
    for notation, urgent in (("2n 1n!", False), ("1n 1n! 1n^", True)):
        again = planned(cloneset().replicas(3).stored(**stored), notation)
        assert (again.status is not None, again.urgent_status) == (True, urgent)


def test_nothing_is_updated_while_a_deletion_ends() -> None:
    assert summary(planned(cloneset().replicas(3).max_unavailable(2), "3o 1n^")) == ["delete n1"]


def test_the_last_pod_that_has_begun_its_update_is_not_taken_back() -> None:
    begun = half_started("x")
    assert summary(planned(cloneset().replicas(3).max_unavailable(1).in_place(), [*pods("2n"), begun])) == ["update x"]


@pytest.mark.parametrize(
    ("builder", "found", "settled"),
    [
        pytest.param(cloneset().replicas(3), pods("2n 1n!"), True, id="only readiness is missing"),
        pytest.param(cloneset().replicas(3), pods("3n"), True, id="complete"),
        pytest.param(cloneset().replicas(3), pods("2n"), False, id="a pod is missing"),
        pytest.param(
            cloneset().replicas(2).max_unavailable(1), pods("1n! 1o"), False, id="an update waits for the budget"
        ),
        pytest.param(cloneset().replicas(2).max_unavailable(1), pods("1n! 1n*"), False, id="a deletion waits for it"),
        pytest.param(cloneset().replicas(1).in_place(), [half_started("x")], False, id="an update is under way"),
        pytest.param(
            cloneset().replicas(1),
            [pod("x", ready=False, state="PreparingNormal", node="")],
            False,
            id="not scheduled yet",
        ),
    ],
)
def test_settled_is_what_only_readiness_can_change(builder: CloneSetBuilder, found: list[Pod], settled: bool) -> None:
    """The control loop may look at it later: no write hangs on a pod's becoming ready."""
    plan = planned(builder, found)
    assert plan.settled == settled
    assert not (plan.settled and plan.stages)
