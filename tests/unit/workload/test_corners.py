"""Cases with several containers, terms or collisions (common.md §7, §9, §11)."""

from typing import Any

import pytest

from flotilla_common.api.changes import differences
from flotilla_common.api.workload import ScatterTerm
from flotilla_common.control.plan import Intent
from flotilla_common.workload.hashing import env_hash
from flotilla_common.workload.inplace import completed
from flotilla_common.workload.inplace.batches import apply_batch
from flotilla_common.workload.inplace.calculate import qos_class
from flotilla_common.workload.inplace.state import InPlaceState, UpdateSpec
from flotilla_common.workload.ordering import scatter, sort_by_priority
from flotilla_common.workload.podedit import PodEdit
from tests.unit.workload.build import GATES, NOW, barrier, conditions_of, container, patches, pod, status
from tests.unit.workload.test_completion import META, runtime, state
from tests.unit.workload.test_ordering import names, priority
from tests.unit.workload.test_refresh import refreshed, update_state, updating
from tests.unit.workload.test_revisions import ALPINE, MAINLINE, choose, stored, surplus

BOTH = ("InPlaceUpdateReady", "KruisePodReady")
HASH_LABEL = "controller.kubernetes.io/hash"
STATE = "apps.kruise.io/inplace-update-state"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, [("add", ("b",), 2)], id="added"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, [("add", ("a", 1), 2)], id="a longer array"),
        pytest.param({"a": {}}, {"a": []}, [("replace", ("a",), [])], id="an object becomes an array"),
        pytest.param({"a": [1]}, {"a": "x"}, [("replace", ("a",), "x")], id="an array becomes a text"),
        pytest.param({"a": None}, {"a": {"b": 1}}, [("replace", ("a",), {"b": 1})], id="nothing becomes an object"),
    ],
)
def test_differences(old: Any, new: Any, expected: list[Any]) -> None:
    assert [(one.op, one.path, one.value) for one in differences(old, new)] == expected


def test_one_container_with_less_requested_than_allowed_is_enough_to_be_burstable() -> None:
    def sized(cpu: str) -> Any:
        return {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": cpu, "memory": "1Gi"}}}

    assert qos_class({"containers": [sized("2"), sized("2")]}) == "Guaranteed"
    assert qos_class({"containers": [sized("1"), sized("2")]}) == "Burstable"


def test_an_update_of_two_containers_is_over_when_both_run_the_new_image() -> None:
    last = state(lastContainerStatuses={name: {"imageID": "id-1"} for name in ("a", "b")})
    containers = [container("a", "nginx:2"), container("b", "nginx:2")]
    for second, expected in (("nginx:1", False), ("nginx:2", True)):
        statuses = [status("a", "nginx:2"), status("b", second)]
        assert completed(pod(containers=containers, statuses=statuses, annotations=last), GATES) is expected


def test_a_container_without_a_status_has_not_been_updated() -> None:
    annotations = state(updateEnvFromMetadata=True) | runtime()
    assert META in annotations
    assert not completed(pod(statuses=[], annotations=annotations), GATES)


def test_a_new_pod_says_since_when_it_is_ready() -> None:
    fresh = pod(state="PreparingNormal", gates=BOTH, conditions={"InPlaceUpdateReady": ""})
    chain = refreshed(fresh).chain
    (conditions,) = [conditions_of(patch) for patch in patches(chain) if patch.subresource == "status"]
    assert {kind: conditions[kind]["lastTransitionTime"] for kind in BOTH} == dict.fromkeys(
        BOTH, "2024-03-01T08:00:00Z"
    )


def test_writes_say_what_for() -> None:
    fresh = pod(state="PreparingNormal", gates=BOTH, conditions={"InPlaceUpdateReady": ""})
    assert {patch.cause for patch in patches(refreshed(fresh).chain)} == {"refresh"}
    chain = refreshed(updating({STATE: update_state(nextContainerImages={"nginx": "nginx:2"})})).chain
    assert {patch.cause for patch in patches(chain)} == {"next batch of the in-place update to sample-new"}


def test_finalizers_and_metadata_that_are_given_in_parts_add_up() -> None:
    edit = PodEdit(pod(), Intent.REFRESH, "")
    edit.add_finalizers(["a"])
    edit.add_finalizers(["b", "a"])
    edit.merge_metadata({"annotations": {"x": "1"}})
    edit.merge_metadata({"labels": {"y": "2"}, "$deleteFromPrimitiveList/finalizers": ["c"]})
    edit.merge_metadata({"generateName": "web-"})
    metadata = patches(edit.chain())[0].body["metadata"]
    assert metadata["finalizers"] == ["a", "b"]
    assert (metadata["annotations"], metadata["labels"]) == ({"x": "1"}, {"y": "2"})
    assert metadata["$deleteFromPrimitiveList/finalizers"] == ["c"]
    assert metadata["generateName"] == "web-"


def test_two_terms_are_both_applied() -> None:
    pods = [pod(str(index), labels={"a": str(index < 2), "b": str(index < 4)}) for index in range(8)]
    few, many = ScatterTerm(key="a", value="True"), ScatterTerm(key="b", value="True")
    expected = scatter(scatter(pods, pods, [many]), pods, [few])
    assert names(scatter(pods, pods, [few, many])) == names(expected)
    assert names(expected) != names(scatter(scatter(pods, pods, [few]), pods, [many]))


def test_the_largest_number_of_a_key_is_one_and_no_number_is_0() -> None:
    pods = [pod("word", labels={"k": "x"}), pod("zero", labels={"k": "x0"}), pod("most", labels={"k": str(2**63 - 1)})]
    strategy = priority(orderPriority=[{"orderedKey": "k"}])
    assert names(sort_by_priority(pods, strategy)) == ["most", "word", "zero"]
    assert names(sort_by_priority(pods[1::-1], strategy)) == ["zero", "word"]


def test_a_collision_that_was_counted_before_is_in_name_and_label() -> None:
    first, later = choose(ALPINE).writes[0], choose(ALPINE, collision_count=2).writes[0]
    body: Any = getattr(later, "body", {})
    assert later.name != first.name
    assert later.name == f"sample-{body['metadata']['labels'][HASH_LABEL]}"


def test_every_taken_name_counts_a_collision() -> None:
    held: list[Any] = []
    for collisions in range(4):
        choice = choose(ALPINE, *held)
        assert choice.collision_count == collisions
        held.append(stored(choice.update.metadata.name, MAINLINE, 1, controller="uid-else"))


def test_a_kind_without_claims_has_no_hash_of_them() -> None:
    body: Any = getattr(choose(ALPINE, annotations={}).writes[0], "body", {})
    assert body["metadata"]["annotations"] == {"note": "x"}


@pytest.mark.parametrize(("limit", "deleted"), [(1, ["a"]), (2, []), (3, []), (5, [])])
def test_live_revisions_do_not_count_against_the_limit(limit: int, deleted: list[str]) -> None:
    held = [stored(name, ALPINE, number) for number, name in enumerate(("a", "b", "c", "d"), start=1)]
    assert surplus(held, {"c", "d"}, limit) == deleted


def test_env_of_metadata_is_read_behind_env_of_other_things() -> None:
    from_elsewhere: Any = {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    from_label: Any = {"name": "V", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['v']"}}}
    one = pod(containers=[container(env=[barrier(1), from_elsewhere, from_label])]).spec.containers[0]
    assert env_hash(one, {"v": "1"}, {}) != env_hash(one, {"v": "2"}, {})
    assert env_hash(one, {}, {}) == env_hash(one, {"v": ""}, {})


def test_limits_are_compared_with_limits_and_requests_with_requests() -> None:
    held = pod(containers=[container(resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}})])
    wanted: Any = {"nginx": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}}
    spec = UpdateSpec(revision="r", resources=wanted)
    assert apply_batch(PodEdit(held, Intent.REFRESH, ""), spec, InPlaceState(), NOW)[1] == {
        "nginx": {"limits": {"cpu": "1"}}
    }


def test_metadata_that_is_right_already_costs_nothing() -> None:
    edit = PodEdit(pod(labels={"a": "1"}, annotations={"b": "2"}), Intent.REFRESH, "")
    edit.merge_metadata({"labels": {"a": "1"}, "annotations": {"b": "2"}})
    assert not edit.changed
