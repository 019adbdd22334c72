"""Passes of a UnitedDeployment: children come, are updated and go (uniteddeployment.md §6, §9 and §15)."""

import copy

import msgspec
import pytest

from flotilla_common.control.plan import Intent
from flotilla_topology.uniteddeployment.children import (
    ADVANCED_STATEFUL_SETS,
    CLONE_SETS,
    DEPLOYMENTS,
    KINDS,
    STATEFUL_SETS,
    ChildKind,
)
from tests.testkit.documents import Json
from tests.testkit.plans import code_list
from tests.unit.uniteddeployment.build import OWNER, REVISION, SUBSET, World, at, intents, pod_of, template

AB = [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_children_are_made_for_all_subsets(kind: ChildKind) -> None:
    world = World(AB, replicas=5, kind=kind)
    made = world.step()
    assert intents(made) == ["revision ControllerRevision", *[f"create {kind.resource.kind}"] * 2]
    assert world.replicas() == {"a": 2, "b": 3}
    (event,) = [action.on_success for action in made.actions if action.on_success is not None]
    assert (event.reason, event.message) == ("SuccessfulUpdateSubset", f"Create 2 Subset ({kind.name})")
    child = world.workload("a")
    assert child["metadata"]["name"].startswith("ud-a-")
    assert child["metadata"]["ownerReferences"] == [OWNER | {"blockOwnerDeletion": True}]
    assert child["metadata"]["annotations"] == {"apps.kruise.io/subset-patch": ""}
    assert child["spec"]["selector"] == {"matchLabels": {"app": "ud", SUBSET: "a"}}
    labels = child["spec"]["template"]["metadata"]["labels"]
    assert labels == {"app": "ud", SUBSET: "a", REVISION: world.owner["status"]["updatedRevision"]}
    assert child["metadata"]["labels"] == labels


def test_the_status_after_the_first_pods() -> None:
    world = World(AB)
    world.settle()
    status = world.owner["status"]
    types = ["UnitedDeploymentUpdated", "SubsetProvisioned", "SubsetUpdated"]
    assert [one["type"] for one in status["conditions"]] == types
    assert status["subsetStatuses"] == [{"name": name, "replicas": 2, "readyReplicas": 2} for name in "ab"]
    counts = ("replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas")
    assert [status[key] for key in counts] == [4, 4, 4, 4]
    assert status["currentRevision"] == status["updatedRevision"]
    assert (status["labelSelector"], status["observedGeneration"]) == ("app=ud", 1)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (STATEFUL_SETS, {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
        (ADVANCED_STATEFUL_SETS, {"rollingUpdate": {"partition": 1}}),
        (CLONE_SETS, {"rollingUpdate": {"partition": 1}}),
        (DEPLOYMENTS, None),
    ],
    ids=lambda value: value.name if isinstance(value, ChildKind) else "",
)
def test_the_partition_of_each_kind(kind: ChildKind, path: object) -> None:
    world = World(AB, kind=kind, updateStrategy={"manualUpdate": {"partitions": {"a": 1}}})
    world.settle()
    assert world.workload("a")["spec"].get("updateStrategy") == path


def test_an_update_writes_each_child_once_and_no_more() -> None:
    world = World(AB)
    world.settle()
    before = world.owner["status"]["updatedRevision"]
    world.change({"template": {"cloneSetTemplate": template("nginx:2")}})
    made = world.step()
    assert intents(made) == ["revision ControllerRevision", "update CloneSet", "update CloneSet"]
    after = world.owner["status"]["updatedRevision"]
    assert (world.owner["status"]["currentRevision"], after != before) == (before, True)
    made = world.step()
    assert intents(made) == []  # pods are still old, but the children are as they should be
    assert code_list(made) == ["WaitingForSubset", "WaitingForSubset"]
    world.settle()
    status = world.owner["status"]
    assert status["currentRevision"] == after
    updated = next(one for one in status["conditions"] if one["type"] == "UnitedDeploymentUpdated")
    assert (updated["status"], updated["message"]) == ("True", f"updated to revision {after}")


def test_a_held_partition_is_said_and_costs_no_writes() -> None:
    world = World(AB, updateStrategy={"manualUpdate": {"partitions": {"a": 2, "b": 2}}})
    world.settle()
    old = [dict(pod) for pod in world.pods]
    world.change({"template": {"cloneSetTemplate": template("nginx:2")}})
    world.step()
    world.pods = old
    made = world.step()
    assert (intents(made), code_list(made)) == ([], ["Partition", "Partition"])
    assert [one["partition"] for one in world.owner["status"]["subsetStatuses"]] == [2, 2]


def test_a_rollback_takes_the_old_revision_again() -> None:
    world = World(AB)
    world.settle()
    first = world.owner["status"]["updatedRevision"]
    world.change({"template": {"cloneSetTemplate": template("nginx:2")}})
    world.settle()
    world.change({"template": {"cloneSetTemplate": template("nginx:1")}})
    world.settle()
    assert world.owner["status"]["updatedRevision"] == first
    assert sorted(one["revision"] for one in world.revisions) == [2, 3]


def test_another_kind_of_template_replaces_the_children_once_it_serves() -> None:
    """E10."""
    world = World(AB, kind=STATEFUL_SETS)
    world.settle()
    world.kind = ADVANCED_STATEFUL_SETS
    world.change({"template": {"statefulSetTemplate": None, "advancedStatefulSetTemplate": template("nginx:1")}})
    made = world.step()
    assert intents(made) == ["revision ControllerRevision", "create StatefulSet", "create StatefulSet"]
    for one in world.workloads:
        one["status"] = {"replicas": 2, "readyReplicas": 2}
    made = world.step()
    assert [(action.verb, action.resource.group) for action in made.actions if action.verb == "delete"] == [
        ("delete", "apps"),
        ("delete", "apps"),
    ]


def test_a_child_scaled_or_deleted_by_hand_is_put_right() -> None:
    """E7 and E8."""
    world = World(AB)
    world.settle()
    world.workload("a")["spec"]["replicas"] = 9
    name = world.workload("b")["metadata"]["name"]
    world.workloads.remove(world.workload("b"))
    world.settle()
    assert world.replicas() == {"a": 2, "b": 2}
    assert world.workload("b")["metadata"]["name"] != name


def test_pods_that_somebody_has_to_delete_are_said() -> None:
    world = World(AB, kind=STATEFUL_SETS, updateStrategy={"manualUpdate": {"partitions": {"a": 1}}})
    spec = world.owner["spec"]["template"][STATEFUL_SETS.template]["spec"]
    spec["updateStrategy"] = {"type": "OnDelete"}
    world.settle()
    spec["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    world.step()
    for workload in world.workloads:
        workload["status"] = {"replicas": 2, "readyReplicas": 2}
    made = world.step()
    texts = [reason.message for reason in made.reasons if reason.code == "OnDelete"]
    assert texts[0] == "subset a: 2 pods of older revisions must be deleted manually: type is OnDelete"
    assert set(code_list(made)) == {"OnDelete"}


def test_other_drift_stays_until_the_child_is_updated() -> None:
    world = World(AB)
    world.settle()
    world.workload("a")["spec"]["template"]["spec"]["containers"][0]["image"] = "mine"
    assert intents(world.plan()) == []


def test_a_patch_that_changes_rolls_its_subset_alone() -> None:
    """E5 and E20."""
    patch = {"spec": {"containers": [{"name": "main", "env": [{"name": "ZONE", "value": "a"}]}]}}
    world = World([{"name": "a", "patch": patch}, {"name": "b"}])
    world.settle()
    child = world.workload("a")
    assert child["spec"]["template"]["spec"]["containers"] == [
        {"name": "main", "image": "nginx:1", "env": [{"name": "ZONE", "value": "a"}]}
    ]
    text = child["metadata"]["annotations"]["apps.kruise.io/subset-patch"]
    assert msgspec.json.decode(text) == patch
    world.change(
        {"topology": {"subsets": [{"name": "a", "patch": {"metadata": {"labels": {"x": "y"}}}}, {"name": "b"}]}}
    )
    made = world.step()
    assert intents(made) == ["update CloneSet"]
    assert "env" not in world.workload("a")["spec"]["template"]["spec"]["containers"][0]


def test_a_null_in_the_patch_removes_a_member() -> None:
    patch: Json = {"metadata": {"labels": {"x": None}}, "spec": {"nodeSelector": None, "absent": None}}
    world = World([{"name": "a", "patch": patch}, {"name": "b"}])
    template = world.owner["spec"]["template"]["cloneSetTemplate"]["spec"]["template"]
    template["metadata"]["labels"]["x"] = "y"
    template["spec"]["nodeSelector"] = {"disk": "ssd"}
    world.settle()
    patched, other = (world.workload(name)["spec"]["template"] for name in ("a", "b"))
    assert other["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert not {"nodeSelector", "absent"} & patched["spec"].keys()
    assert "x" in other["metadata"]["labels"]
    assert "x" not in patched["metadata"]["labels"]


def test_a_patch_that_cannot_be_applied_is_said_and_leaves_the_others_alone() -> None:
    world = World([{"name": "a", "patch": {"spec": {"containers": "none"}}}, {"name": "b"}])
    made = world.step()
    assert world.replicas() == {"b": 2}
    assert "InvalidSubset" in code_list(made)
    assert [event.reason for event in made.events] == ["FailedUpdateSubset"]
    assert made.errors


def test_terms_and_tolerations_are_added_to_what_the_template_has() -> None:
    """E17 to E19."""
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    disk = {"key": "disk", "operator": "Exists"}
    toleration = {"key": "spot", "operator": "Exists"}
    world = World(
        [
            {"name": "a", "nodeSelectorTerm": {"matchExpressions": [zone]}, "tolerations": [toleration]},
            {
                "name": "b",
                "nodeSelectorTerm": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
            },
        ]
    )
    pod = world.owner["spec"]["template"]["cloneSetTemplate"]["spec"]["template"]["spec"]
    terms: list[Json] = [{"matchExpressions": [disk]}, {"matchFields": []}]
    affinity: Json = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pod["affinity"] = affinity
    world.step()
    spec = world.workload("a")["spec"]["template"]["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [term["matchExpressions"] for term in required["nodeSelectorTerms"]] == [[disk, zone], [zone]]
    assert spec["tolerations"] == [toleration]
    assert world.workload("b")["spec"]["template"]["spec"]["affinity"] == affinity
    assert pod["affinity"] == affinity


def test_orphans_are_adopted_and_strays_let_go() -> None:
    """E9 and E11."""
    world = World(AB)
    world.settle()
    orphan = world.workload("a")
    del orphan["metadata"]["ownerReferences"]
    made = world.step()
    assert intents(made) == ["adopt UnitedDeployment", "adopt CloneSet"]
    world.workload("b")["metadata"]["labels"].pop("app")
    made = world.step()
    assert intents(made)[:2] == ["release CloneSet", "create CloneSet"]


def test_revisions_whose_labels_left_the_selector_are_let_go() -> None:
    """E11. Those that the original made for CloneSets have no labels at all."""
    world = World(AB)
    world.settle()
    (own,) = world.revisions
    unlabelled = copy.deepcopy(own)
    unlabelled["metadata"] |= {"name": "ud-unlabelled", "labels": {"controller.kubernetes.io/hash": "unlabelled"}}
    world.revisions.append(unlabelled)
    other = template("nginx:1")
    for one in (other, other["spec"]["template"]):
        one["metadata"]["labels"] = {"app": "other"}
    world.change({"selector": {"matchLabels": {"app": "other"}}, "template": {"cloneSetTemplate": other}})
    released = [action.name for action in world.plan().actions if action.intent is Intent.RELEASE]
    assert released == [own["metadata"]["name"], *(one["metadata"]["name"] for one in world.workloads)]


def test_revisions_that_another_one_left_behind_are_adopted() -> None:
    world = World(AB)
    world.settle()
    (own,) = world.revisions
    of_workload = copy.deepcopy(own)
    of_workload["data"] = {"spec": {"template": {"spec": {}, "$patch": "replace"}}}
    of_workload["metadata"] |= {"name": "ud-a-x", "uid": "u-x"}
    world.revisions.append(of_workload)
    for one in world.revisions:
        del one["metadata"]["ownerReferences"]
    found = [(action.verb, action.name) for action in world.plan().actions]
    assert found == [("patch", "ud"), ("patch", own["metadata"]["name"])]


def test_of_two_children_of_a_subset_the_older_one_stays() -> None:
    world = World(AB)
    world.settle()
    twin = msgspec.json.decode(msgspec.json.encode(world.workload("a")))
    twin["metadata"] |= {"name": "ud-a-twin", "uid": "u-twin", "creationTimestamp": at(9999)}
    world.workloads.append(twin)
    made = world.plan()
    assert [(action.verb, action.name) for action in made.actions] == [("delete", "ud-a-twin")]


def test_numbers_that_contradict_the_total_change_nothing() -> None:
    world = World([{"name": "a", "replicas": 4}, {"name": "b", "replicas": 5}], replicas=8)
    made = world.step()
    assert (made.actions, made.status) == ([], None)
    (event,) = made.events
    contradiction = "specified subsets' replica (9) is greater than UnitedDeployment replica (8)"
    assert (event.reason, event.message) == (
        "Failed SpecifySubsetReplicas",
        f"Specified subset replicas is ineffective: {contradiction}",
    )
    assert made.errors


def test_old_pods_in_the_way_of_a_stateful_set_are_deleted() -> None:
    """E16."""
    world = World(
        [{"name": "a"}], replicas=3, kind=STATEFUL_SETS, updateStrategy={"manualUpdate": {"partitions": {"a": 1}}}
    )
    world.settle()
    world.pods[0] = pod_of("a-0", world.pods[0]["metadata"]["labels"], ready=False)
    world.pods[2] = pod_of("a-2", world.pods[2]["metadata"]["labels"], ready=False)
    world.change({"template": {"statefulSetTemplate": template("nginx:2")}})
    made = world.plan()
    assert [action.name for action in made.actions if action.resource.kind == "Pod"] == ["a-2"]


def test_names_are_the_same_for_the_same_view() -> None:
    world = World(AB)
    assert [action.name for action in world.plan().actions] == [action.name for action in world.plan().actions]


def test_a_deleted_one_is_left_to_garbage_collection() -> None:
    world = World(AB)
    world.owner["metadata"]["deletionTimestamp"] = at(0)
    assert (world.plan().actions, world.plan().reasons) == ([], ())


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"template": {"deploymentTemplate": template("x")}}, "InvalidTemplate"),
        ({"template": {"cloneSetTemplate": {"spec": {"replicas": "many"}}}}, "InvalidTemplate"),
        ({"selector": {"matchLabels": None}}, "InvalidSelector"),
        (
            {"selector": {"matchLabels": {"app": "ud"}, "matchExpressions": [{"key": "a", "operator": "no"}]}},
            "InvalidSelector",
        ),
    ],
)
def test_what_cannot_be_planned_is_a_reason(spec: dict[str, object], code: str) -> None:
    world = World(AB)
    world.change(spec)
    assert code_list(world.plan()) == [code]
