"""The worked examples of daemonset.md §8, as rows: pods on five nodes, and writes.

`+n5` creates a pod on a node, `-5A` deletes one, `~5A` updates one in place.
"""

from datetime import timedelta

import pytest

from tests.testkit.plans import codes
from tests.unit.daemonset.build import NOW, Builder, ds, node, nodes, planned, pod, revision, summary, template, writes

ALL_OLD = "1A 2A 3A 4A 5A"


def slow() -> Builder:
    return ds().set(minReadySeconds=300)


@pytest.mark.parametrize(
    ("number", "builder", "pods", "expected"),
    [
        (1, ds(), "", "+n1 +n2 +n3"),  # slow start: the next pass makes the others
        (2, ds().set(burstReplicas=2), "", "+n1 +n2"),
        (3, ds().set(burstReplicas="10%"), "", "+n1"),
        (3, ds().set(burstReplicas="some"), "1B 2B 3B", "+n4 +n5"),
        (4, ds(), ALL_OLD, "-5A"),
        (4, ds(), "1A 2A 3A 4A", "+n5"),
        (4, ds(), "1A 2A 3A 4A 5B!", ""),
        (4, ds(), "1A 2A 3A 4A 5B", "-4A"),
        (4, ds(), "1A 2A 3A 4A 5AT", ""),
        (5, ds().m("30%"), ALL_OLD, "-5A -4A"),
        (7, ds().p(2), "1B 2A 3A 4A 5A", "-5A"),
        (7, ds().p(2), "1B 2A 3A 4A 5B", "-4A"),
        (7, ds().p(2), "1B 2A 3A 4B 5B", ""),
        (8, ds().p("50%"), "1A 2A 3B 4B 5B", ""),
        (8, ds().p("50%"), "1A 2A 3A 4B 5B", "-3A"),
        (9, ds().p(100), ALL_OLD, ""),
        (9, ds().p(5), ALL_OLD, ""),
        (10, ds().nodes(**{"kubernetes.io/hostname": "n1"}), ALL_OLD, "-1A"),
        (10, ds().nodes(**{"kubernetes.io/hostname": "n1"}), "1B 2A 3A 4A 5A", ""),
        (14, ds(), "1A 2A! 3A 4A 5A", "-2A"),
        (14, ds().m(2), "1A 2A! 3A 4A 5A", "-2A -5A"),
        (15, ds(), "1A 2A 3A 4A 5B!", ""),
        (15, ds(), "1A 2A! 3A 4A 5B!", "-2A"),
        (16, ds("C"), "1A 2A 3A 4A 5B!", "-5B"),
        (16, ds("C"), "1A 2A 3A 4A", "+n5"),
        (16, ds("C"), "1A 2A! 3B! 4A 5A", "-3B -2A"),  # the first to break
        (16, ds("C").m(2), "1A 2A 3A 4A 5B!", "-5B -4A"),
        (16, ds("C").p(4), "1A 2A 3A 4A 5B!", "-5B"),
        (16, ds("C").in_place(), "1A 2A 3A 4A 5B!", "~5B"),
        (17, ds().rolling(paused=True), "1A 2A 4A 5A", "+n3"),
        (17, ds().rolling(paused=True), ALL_OLD, ""),
        (18, ds().on_delete(), "1A 2A 4A 5A", "+n3"),
        (18, ds().on_delete(), ALL_OLD, ""),
        (20, ds().progressive().p(5), "", ""),
        (20, ds().progressive().p(3), "", "+n1 +n2"),
        (20, ds().progressive().p(3), "1B 2B", ""),
        (20, ds().progressive().p(0), "1B 2B", "+n3 +n4 +n5"),
        (20, ds().progressive().p("50%"), "", "+n1 +n2 +n3"),
        (22, ds().surge(), ALL_OLD, "+n5"),
        (22, ds().surge(), "1A 2A 3A 4A 5A 5B!", ""),
        (22, ds().surge(), "1A 2A 3A 4A 5A 5B", "-5A +n4"),
        (23, ds().surge("60%").set(minReadySeconds=20), ALL_OLD, "+n5 +n4 +n3"),
        (23, ds().surge("60%").set(minReadySeconds=20), "1A 2A 3A 4A 5A 5B@20 4B@19 3B@5", ""),
        (23, ds().surge("60%").set(minReadySeconds=20), "1A 2A 3A 3B@21 4A 4B@21 5A 5B@5", "-3A -4A +n2 +n1"),
        (24, ds().surge(), "1A 2A! 2B! 3A 4A 5A", "-2A"),
        (25, ds().surge(), "1A 1A 1B! 2A 3A 4A 5A", "-1A"),
        (26, ds().in_place(), ALL_OLD, "~5A"),
        (26, ds().in_place().m("100%"), ALL_OLD, "~5A ~4A ~3A ~2A ~1A"),
        (26, ds("C").in_place(), "1A 2A 3A 4BU 5B", "~4B"),
        (26, ds("C").in_place().m(2), "1A 2A 3A 4BU 5B", "~4B ~5B"),
        (26, ds("C").in_place(), "1A 2A 3A 4BG 5B", "~4B"),
        (26, ds("C").in_place().m(2), "1A 2A 3A 4BG 5B", "~4B ~5B"),
        (26, ds("C").in_place().m(2).set(minReadySeconds=20), "1A 2A 3A 4B@5 5B", "~4B ~5B"),
        (28, ds().in_place(), "1A- 2A- 3A- 4A- 5A-", "-5A"),
        (29, ds().hooked(), "1AH 2AH 3AH 4AH 5AH", "hold:5A"),
        (29, ds().hooked(), "1AH 2AH 3AH 4AH 5AHD", ""),
        (29, ds().hooked(), "1AH 2AH 3AH 4AH 5AD", "-5A"),
        (29, ds().hooked(), "1AH 2AH 3AH 4AH", "+n5"),
        (29, ds().hooked(), "1AH 2AH 3AH 4AH 5B", "hold:4A"),
        (5, slow(), "1A@9 2A@9 3A@9 4A@9 5A@9", "-5A"),
        (5, slow().m(2), "1A@9 2A@9 3A@9 4A@9 5A@9", "-5A -4A"),
        (5, slow(), "1A@9 2A@9 3A@9 4A@9", "+n5"),
        (5, slow(), "1A@9 2A@9 3A@9 4A@9 5B@2", ""),
        (5, slow(), "1A@9 2A@8 3A@2 4A@9 5A@9", "-3A"),  # the others have been Ready for longer
        (5, slow(), "1A@9 2A! 3A@9 4A@9 5A@9", "-2A"),
        (5, slow(), "1A 2A 3A 4A 5B@299", ""),
        (5, slow().in_place(), "1A@9 2A@9 3A@9 4A@9 5A@9", "~5A"),
        (22, slow().surge(), "1A@9 2A@9 3A@9 4A@9 5A@9", "+n5"),
        (31, ds("A"), "1AF 2A 3A 4A 5A", "-1A"),
        (40, ds("A"), "1A 1A 2A 3A 4A 5A", "-1A"),
        (40, ds(), "1A 1A 2A 3A 4A 5A", "-1A"),
    ],
)
def test_example(number: int, builder: Builder, pods: str, expected: str) -> None:
    if "+" in expected and "-" in expected:
        assert sorted(writes(builder, pods).split()) == sorted(expected.split())
    else:
        assert writes(builder, pods) == expected


def test_example_11_the_selected_nodes_and_what_the_partition_leaves() -> None:
    on = [node("n1", ring="1"), node("n2"), node("n3", ring="1"), node("n4", ring="1")]
    builder = ds().nodes(ring="1").p(2).m(4)
    assert writes(builder, "1A 2B 3A 4A", on=on) == "-4A"


def test_example_8_a_pod_that_goes_anyway_is_not_one_that_stays() -> None:
    on = [node("n1"), *(node(name, role="x") for name in ("n2", "n3", "n4"))]
    builder = ds().pod_spec(nodeSelector={"role": "x"}).surge("50%").p("50%")
    assert writes(builder, "1A 2A 3B 4B", on=on) == "-1A"


def test_example_12_and_13_a_label_comes_and_goes() -> None:
    labelled = [node("n1", ring="1"), node("n2"), node("n3", ring="1")]
    builder = ds().nodes(ring="1")
    assert writes(builder, "1B 2A 3A", on=labelled) == "-3A"
    assert writes(builder, "1B 2A 3B", on=[node("n1"), node("n2"), node("n3")]) == ""


def test_example_19_a_new_node_ignores_the_partition() -> None:
    assert writes(ds().p(5), ALL_OLD, on=6) == "+n6"


def test_example_21_names_decide_which_nodes_come_first() -> None:
    on = [node(f"node-{number}") for number in range(12)]
    there = [pod(f"node-{number}", name=f"d-x{number}") for number in range(5)]
    assert writes(ds().progressive().p(5), there, on=on) == "+node-10 +node-11"


def test_example_23_it_looks_again_when_the_new_pod_is_available() -> None:
    plan = planned(ds().surge().set(minReadySeconds=20), "1A 2A 3A 4A 5A 5B@5")
    assert plan.wake_at is not None
    assert timedelta(seconds=15) < plan.wake_at - NOW < timedelta(seconds=16)


def test_example_27_what_a_running_pod_cannot_take_recreates_it() -> None:
    changed = template("B")
    changed["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    builder = ds().in_place().set(template=changed)
    plan = planned(builder, ALL_OLD, revisions=[revision("A", 1), revision("B", 2, changed)])
    assert summary(plan) == ["-5A"]
    assert "env" in next(one.message for one in plan.reasons if one.code == "Recreating")


def test_example_30_a_node_that_is_left_waits_for_the_hook_too() -> None:
    on = [node("n1", role="x"), node("n2")]
    builder = ds("A").pod_spec(nodeSelector={"role": "x"}).hooked()
    assert writes(builder, "1A 2AH", on=on) == "hold:2A"
    assert writes(builder, "1A 2AD", on=on) == "-2A"


def test_example_32_to_34_taints() -> None:
    kept = [node("n1", taints=["x:NoSchedule"]), *nodes(3)[1:]]
    plan = planned(ds("A"), "1A 2A 3A", on=kept)
    assert summary(plan) == []
    assert (plan.numbers["desired"], plan.numbers["misscheduled"]) == (2, 1)
    assert writes(ds("A"), "2A 3A", on=kept) == ""
    assert writes(ds("A"), "1A 2A 3A", on=[node("n1", taints=["x:NoExecute"]), *nodes(3)[1:]]) == "-1A"
    cordoned = [node("n1", taints=["node.kubernetes.io/unschedulable:NoSchedule"]), *nodes(3)[1:]]
    assert writes(ds("A"), "1A 2A 3A", on=cordoned) == ""
    assert writes(ds("A"), "2A 3A", on=cordoned) == "+n1"


def test_example_35_a_lost_node_and_the_gate() -> None:
    """n1 does not answer and is excluded: its pod terminates without end."""
    builder = ds().pod_spec(nodeSelector={"in": "yes"})
    on = [node("n1"), *(node(f"n{number}", **{"in": "yes"}) for number in range(2, 6))]
    pruned = "DaemonSetPruneIneligibleNodes=true"
    assert writes(builder, ALL_OLD, on=on, gates=pruned) == "-1A -5A"
    assert writes(builder, "1AT 2A 3A 4A 5A", on=on, gates=pruned) == "-5A"
    assert writes(builder, "1AT 2A 3A 4A 5A", on=on) == ""


def test_example_36_back_to_an_earlier_template() -> None:
    stored = [revision("A", 1), revision("B", 2)]
    plan = planned(ds("A"), "1A 2A 3A 4B 5B", revisions=stored)
    assert summary(plan) == ["patch:ControllerRevision:d-A", "-5B"]


def test_example_37_a_revision_with_pods_is_kept() -> None:
    builder = ds().set(revisionHistoryLimit=0)
    assert writes(builder, "1A 2B 3B", on=3).split()[-1] == "-1A"
    assert writes(builder, "1B 2B 3B", on=3) == "delete:ControllerRevision:d-A"


def test_example_38_a_pod_that_leaves_the_selector_is_let_go_and_replaced() -> None:
    stray = pod("n1", "A", labels={"app": "other", "controller-revision-hash": "A"})
    assert writes(ds("A"), [stray], on=1) == "release:n1A +n1"


def test_example_39_an_orphan_is_taken_in_and_counts_as_old() -> None:
    orphan = pod("n1", "A", labels={"app": "d"}, owners=[])
    plan = planned(ds("A"), [orphan], on=1)
    assert summary(plan) == ["patch:DaemonSet:d", "own:n1A"]
    assert "Adopting" in codes(plan)
    owned = pod("n1", "A", labels={"app": "d"})
    assert writes(ds("A"), [owned], on=1) == "-n1A"


def test_example_46_a_name_that_other_data_has() -> None:
    fresh = planned(ds(), "", on=1, revisions=[])
    name = next(one for one in summary(fresh) if "Revision" in one).rpartition(":")[2]
    foreign = revision("X", 1, template("C"), name=name, ownerReferences=[], labels={"app": "other"})
    plan = planned(ds(), "", on=1, revisions=[foreign])
    created = [one for one in summary(plan) if one.startswith("create:ControllerRevision")]
    assert len(created) == 1
    assert not created[0].endswith(f":{name}")
    assert plan.status is not None
    assert plan.status.body["status"]["collisionCount"] == 1
