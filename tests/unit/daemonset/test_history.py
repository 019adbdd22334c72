"""Revisions, ownership and status (daemonset.md §4.4, §4.9, §5)."""

from flotilla_common.control.plan import Create
from tests.testkit.plans import codes, reason
from tests.unit.daemonset.build import Builder, ds, node, nodes, planned, pod, revision, summary, template, writes

NAMESPACE_LABELS = {"app": "d", "controller-revision-hash": "A"}


def status(builder: Builder, pods: str = "", **more: object) -> dict[str, object]:
    patch = planned(builder, pods, **more).status
    return {} if patch is None else {key: value for key, value in patch.body["status"].items() if value is not None}


def test_the_first_revision() -> None:
    builder = ds().annotated(note="x")
    create = planned(builder, on=0, revisions=[]).actions[0]
    assert isinstance(create, Create)
    created = create.body
    hash_ = created["metadata"]["labels"].pop("controller-revision-hash")
    assert created["metadata"]["name"] == f"d-{hash_}"
    assert created["metadata"]["labels"] == {"app": "d"}
    assert created["metadata"]["annotations"] == {"note": "x"}
    assert created["revision"] == 1
    assert created["data"]["spec"]["template"]["$patch"] == "replace"


def test_a_difference_in_spelling_is_none() -> None:
    spelled = template("A")
    spelled["metadata"]["creationTimestamp"] = None
    spelled["spec"]["containers"][0]["resources"] = {}
    assert writes(ds().set(template=spelled), "1A", on=1, revisions=[revision("A", 1)]) == ""


def test_equal_revisions_are_merged_and_only_their_pods_relabelled() -> None:
    doubled = [revision("A", 1), revision("B", 2), revision("X", 3, template("B"))]
    plan = planned(ds(), [pod("n1", "B"), pod("n2", "X"), pod("n3", "A")], on=3, revisions=doubled)
    assert summary(plan) == ["label:n1B", "delete:ControllerRevision:d-B", "-n3A"]
    assert status(ds(), "1B", on=1, revisions=doubled)["updatedNumberScheduled"] == 1


def test_a_revision_without_hash_gets_its_name_as_hash() -> None:
    bare = revision("A", 1, labels={"app": "d"})
    assert writes(ds("A"), [pod("n1", "d-A")], on=1, revisions=[bare]) == "patch:ControllerRevision:d-A"


def test_a_revision_that_nobody_controls_is_taken_in() -> None:
    loose = revision("A", 1, ownerReferences=[])
    assert writes(ds("A"), "1A", on=1, revisions=[loose]) == "patch:DaemonSet:d patch:ControllerRevision:d-A"


def test_only_idle_revisions_beyond_the_limit_are_forgotten() -> None:
    letters = "PQRST"
    stored = [revision(letter, number, template(letter)) for number, letter in enumerate(letters, 1)]
    stored.append(revision("A", 6))
    plan = planned(ds("A").set(revisionHistoryLimit=2), [pod("n1", "P"), pod("n2", "A")], on=2, revisions=stored)
    forgotten = [one.rpartition("-")[2] for one in summary(plan) if one.startswith("delete:")]
    assert forgotten == ["Q", "R", "S"]


def test_a_pod_of_another_controller_is_not_touched() -> None:
    other = {"apiVersion": "v1", "kind": "Foo", "name": "f", "uid": "uid-f", "controller": True}
    assert writes(ds("A"), [pod("n1", "A", owners=[other])], on=0) == ""


def test_generations_of_an_old_daemonset_count_only_without_a_hash() -> None:
    builder = ds().annotated(**{"deprecated.daemonset.template.generation": "7"})
    old = {"app": "d", "pod-template-generation": "7"}
    assert writes(builder, [pod("n1", labels=old)], on=1) == ""
    assert writes(builder, [pod("n1", labels={**old, "controller-revision-hash": "A"})], on=1) == "-n1B"


def test_the_counts() -> None:
    on = [node("n1"), node("n2"), node("n3"), node("n4"), node("n5", taints=["x:NoSchedule"])]
    builder = ds().set(minReadySeconds=10)
    assert status(builder, "1B 2A 3B@5 5A", on=on) == {
        "observedGeneration": 1,
        "desiredNumberScheduled": 4,
        "currentNumberScheduled": 3,
        "numberReady": 3,
        "updatedNumberScheduled": 2,
        "numberAvailable": 2,
        "numberUnavailable": 2,
        "numberMisscheduled": 1,
        "updateRevision": "B",
    }


def test_while_surging_the_old_pod_is_the_one_that_counts() -> None:
    found = status(ds().surge(), "1A 1B", on=1)
    assert (found["updatedNumberScheduled"], found["numberAvailable"]) == (0, 1)


def test_nothing_is_written_if_nothing_differs() -> None:
    stored = {"desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberReady": 1, "numberAvailable": 1}
    builder = ds("A").stored(**stored, updatedNumberScheduled=1, updateRevision="A")
    assert planned(builder, "1A", on=1).status is None
    builder.metadata["generation"] = 2
    patch = planned(builder, "1A", on=1).status
    assert patch is not None
    assert patch.resource_version == "7"
    assert "conditions" not in patch.body["status"]


def test_it_looks_again_when_a_pod_will_be_available() -> None:
    plan = planned(ds("A").set(minReadySeconds=10), "1A@4", on=1)
    assert plan.wake_at is not None
    assert planned(ds("A"), "1A@4", on=1).wake_at is None


def test_reasons_name_what_stands_in_the_way() -> None:
    assert reason(planned(ds(), "1A 2A 3B!", on=3), "WaitingForMaxUnavailable") == (
        "waiting: 2 pods to be updated; maxUnavailable 1 is used by the pods of n3"
    )
    assert reason(planned(ds().surge(), "1A 2A 2B!", on=2), "WaitingForMaxSurge") == (
        "waiting: 1 node to be updated; maxSurge 1 is used by n2"
    )
    assert (
        reason(planned(ds().p(1), "1A 2B", on=2), "PartitionReached")
        == "held: 1 of 2 nodes updated, partition 1 keeps 1 node on older revisions"
    )
    selected = planned(ds().nodes(ring="x"), "1A 2A", on=2)
    assert reason(selected, "NotSelected") == "held: 2 nodes not selected by rollingUpdate.selector ring=x: n1, n2"
    assert codes(planned(ds("A"), "1A", on=1)) == {"Complete"}
    assert codes(planned(ds().surge(), [pod("n1", "A"), pod("n1", "B", "P")], on=1)) == {"WaitingForScheduling"}
    assert codes(planned(ds("A"), [pod("n1", "A", "T")], on=1)) == {"WaitingForTermination"}
    assert codes(planned(ds("A"), on=0)) == {"Complete"}


def test_reasons_say_why_nodes_have_no_pod() -> None:
    on = [node("n1"), node("n2", taints=["gpu:NoSchedule"]), node("n3", taints=["gpu:NoSchedule"])]
    plan = planned(ds("A"), "1A 3A", on=on)
    assert reason(plan, "NodesExcluded") == (
        "note: no pod goes to 2 nodes: has the untolerated taint gpu:NoSchedule (n2, n3)"
    )
    assert reason(plan, "Misscheduled") == (
        "note: pods on 1 node would not be created there now: has the untolerated taint gpu:NoSchedule (n3)"
    )
    pending = planned(ds("A"), [pod("n1", "A", "P")], on=nodes(1))
    assert "WaitingForScheduling" in codes(pending)
