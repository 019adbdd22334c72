"""Pitfalls of podprobemarker.md §12, improvements over the reference, and odd input of users."""

from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.kinds.nodepodprobe.types import (
    MESSAGES_BYTES,
    NODE_POD_PROBE,
    PROBES_PER_NODE,
    PROBES_PER_POD,
    SPEC_BYTES,
    NodePodProbe,
    NodePodProbeStatus,
)
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control.plan import Patch
from flotilla_common.node.reports import NodePodProbeReport
from flotilla_common.node.serving import Sender
from flotilla_policy.nodepodprobe.controller import refusal
from flotilla_policy.nodepodprobe.results import NATIVE_TYPES, cut, reported
from tests.testkit.documents import Json, decoded
from tests.unit.podprobemarker.world import EXEC, NOW, World, probe

OK, BAD, NOTHING = "Succeeded", "Failed", "Unknown"


def world_of(*probes: Json, pods: int = 1) -> World:
    world = World()
    for number in range(pods):
        world.pod(f"p{number}")
    world.marker(*probes)
    world.settle()
    world.writes.clear()
    return world


def test_one_write_for_each_pod_and_change():
    """Bring conditions, labels and annotations of all probes of a pod in one patch, without a version."""
    world = world_of(probe(), probe("b", podConditionType="b", markerPolicy=None), pods=100)
    names = [f"p{number}" for number in range(100)]

    def all_report(state: str, message: str) -> None:
        world.report(**{f"{pod}__m__{name}": (state, message) for pod in names for name in ("idle", "b")})

    for state, message in ((OK, ""), (BAD, "busy"), (BAD, "very busy")):
        world.writes.clear()
        all_report(state, message)
        assert sorted(world.pod_writes()) == sorted(names)
        patches = [write.action for write in world.writes if isinstance(write.action, Patch)]
        assert {(one.subresource, one.resource_version) for one in patches if one.resource == POD} == {("status", "")}
        assert all(one.uid for one in patches)
        assert len(world.writes) == len(names) + 1, "and one for the status"


def test_a_new_time_alone_is_not_written_to_pods():
    world = world_of()
    world.report(p0__m__idle=(OK, "fine"))
    world.writes.clear()
    world.wait(600)
    world.report(p0__m__idle=(OK, "fine"))
    assert world.pod_writes() == []
    assert len(world.writes) == 1


def test_what_the_report_does_not_change_is_not_written():
    world = world_of()
    world.report(p0__m__idle=(OK, "fine"))
    world.writes.clear()
    world.report(p0__m__idle=(OK, "fine"))
    assert world.writes == []


def test_the_pod_is_marked_in_the_pass_that_takes_the_report():
    world = world_of()
    made = world.report(p0__m__idle=(OK, ""))
    first, second = made.stages
    assert [action.name for stage in (first, second) for chain in stage.chains for action in chain] == ["n1", "p0"]
    assert first.stop_on_failure, "the status stands before a pod shows it"


def test_an_empty_message_takes_the_old_one_away():
    world = world_of()
    world.report(p0__m__idle=(OK, "fine"))
    world.report(p0__m__idle=(OK, ""))
    assert "message" not in (world.condition("p0") or {})


def test_a_probe_that_is_removed_leaves_the_nodes():
    world = world_of(probe(), probe("b", podConditionType="b"))
    world.report(p0__m__idle=(OK, ""), p0__m__b=(OK, ""))
    world.edit(POD_PROBE_MARKER, "m", {"spec": {"probes": [probe()]}})
    world.settle()
    assert (world.written(), world.states()) == ({"uid-p0": ["m#idle"]}, {"uid-p0": {"m#idle": OK}})
    assert world.found().status.observed_generation == 2


def test_a_pod_that_matches_no_more_leaves_the_nodes():
    world = world_of()
    world.edit(POD, "p0", {"metadata": {"labels": {"app": "other"}}})
    assert {("", "n1"), ("ns", "m")} <= set(world.context.woken)
    world.settle()
    assert (world.written(), world.found().status.matched_pods) == ({}, 0)


def test_names_are_told_apart_to_the_separator():
    world = world_of()
    world.marker(name="a-m", labels={"app": "game"})
    world.settle()
    world.remove(POD_PROBE_MARKER, "m")
    world.settle()
    assert world.written() == {"uid-p0": ["a-m#idle"]}


def test_a_marker_goes_though_no_pod_matches_any_more():
    world = world_of()
    world.remove(POD_PROBE_MARKER, "m")
    world.edit(POD, "p0", {"metadata": {"labels": {"app": "other"}}})
    world.settle()
    assert (world.find(POD_PROBE_MARKER, "m"), world.written()) == (None, {})


def test_a_lost_object_of_a_node_is_made_again():
    world = world_of()
    world.vanish(NODE_POD_PROBE, "n1")
    world.pass_of_marker()
    assert world.reasons["m"] == ["WaitingForNodePodProbes", "PodsProbed"]
    world.wait(1)  # the model makes uids of names and times
    world.settle()
    assert world.written() == {"uid-p0": ["m#idle"]}


def test_a_node_that_was_never_ready_has_probes_when_pods_run_there():
    world = World()
    world.node("n2", ready=False)
    world.pod(node="n2")
    world.marker()
    world.settle()
    assert world.written("n2") == {"uid-p": ["m#idle"]}


def test_a_node_that_becomes_virtual_gives_its_probes_up():
    world = world_of()
    world.edit(NODE, "n1", {"metadata": {"labels": {"type": "virtual-kubelet"}}})
    assert {("", "n1"), ("ns", "m")} <= set(world.context.woken)
    world.settle()
    assert world.written() == {}


def test_a_pod_without_labels_gets_its_first():
    world = World()
    world.pod(metadata={"labels": None})
    spec = {"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, "probes": [probe()]}
    world.objects.put(POD_PROBE_MARKER, {"metadata": {"name": "m", "namespace": "ns", "uid": "u"}, "spec": spec})
    world.settle()
    world.report(p__m__idle=(OK, ""))
    assert world.labels() == {"idle": "yes"}


@pytest.mark.parametrize("kind", sorted(NATIVE_TYPES))
def test_conditions_of_others_are_left_to_them(kind: str):
    world = world_of(probe(podConditionType=kind))
    before = world.condition("p0", kind)
    world.report(p0__m__idle=(BAD, "mine"))
    assert world.condition("p0", kind) == before
    assert world.annotations("p0") == {"cost": "5"}
    assert "NativeConditionType" in world.reasons["m"]


def test_a_pod_has_so_many_probes_and_no_more():
    world = world_of(*(probe(f"b{number}", podConditionType=None) for number in range(PROBES_PER_POD + 1)))
    assert len(world.written()["uid-p0"]) == PROBES_PER_POD
    assert (world.reasons["m"][0], world.found().status.observed_generation) == ("TooManyProbes", 1)


def test_a_pod_never_has_more_probes_between_two_writes():
    world = World()
    world.pod("p0")
    world.marker(*(probe(f"b{number}", podConditionType=None) for number in range(PROBES_PER_POD - 1)))
    world.settle()
    world.marker(probe("c"), probe("d"), name="z")
    world.pass_of_node("n1")
    assert len(world.written()["uid-p0"]) == PROBES_PER_POD


def test_a_node_has_so_many_probes_and_no_more():
    each = PROBES_PER_POD
    world = world_of(
        *(probe(f"b{number}", podConditionType=None) for number in range(each)), pods=PROBES_PER_NODE // each + 1
    )
    assert sum(map(len, world.written().values())) == PROBES_PER_NODE
    assert world.reasons["m"][0] == "TooManyProbes"
    first = world.written()
    world.marker(name="a", labels={"app": "game"})
    world.settle()
    assert world.written() == first, "what stands there stays"


def test_large_probes_do_not_fill_the_object():
    large = EXEC | {"exec": {"command": ["x" * 20_000]}}
    world = world_of(probe(probe=large), pods=30)
    kept = [bytes(one.probe) for entry in world.probes().spec.pod_probes for one in entry.probes]
    assert 0 < sum(map(len, kept)) < SPEC_BYTES
    assert world.reasons["m"][0] == "TooManyProbes"


def test_a_probe_that_is_too_large_is_left_out():
    world = world_of(probe(probe=EXEC | {"exec": {"command": ["x" * 40_000]}}))
    assert (world.written(), world.reasons["m"][0]) == ({}, "ProbeSkipped")


def test_what_was_stored_past_admission_costs_its_owner_only():
    world = world_of(probe(), probe(probe={"exec": {"command": ["other"]}}), probe("b") | {"probe": None})
    assert world.written() == {"uid-p0": ["m#idle"]}
    assert world.reasons["m"].count("ProbeSkipped") == 2
    assert world.found().status.observed_generation == 1


def test_a_port_is_needed_with_its_container():
    world = world_of(probe(probe={"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}, containerName="other"))
    assert (world.written(), world.reasons["m"]) == ({}, ["ProbeSkipped", "PodsProbed"])


def test_a_selector_that_cannot_be_read_selects_nothing():
    world = world_of()
    world.edit(POD_PROBE_MARKER, "m", {"spec": {"selector": {"matchLabels": {"app": "a b"}}}})
    world.settle()
    assert (world.written(), world.reasons["m"]) == ({}, ["InvalidSelector"])


def test_an_agent_has_time_for_a_new_marker_of_old_pods():
    world = World()
    world.pod("p0")
    world.wait(3600)
    world.marker()
    world.settle()
    assert "WaitingForNodeAgent" not in {*world.reasons["m"], *world.reasons["n1"]}
    world.wait(60)
    world.settle()
    assert world.reasons["m"][0] == world.reasons["n1"][0] == "WaitingForNodeAgent"


def test_a_silent_agent_is_told_of():
    world = world_of()
    assert "WaitingForNodeAgent" not in world.reasons["m"]
    world.wait(30)
    world.settle()
    assert world.reasons["m"][0] == world.reasons["n1"][0] == "WaitingForNodeAgent"
    world.report(p0__m__idle=(NOTHING, ""))
    assert "WaitingForNodeAgent" not in {*world.reasons["m"], *world.reasons["n1"]}


# Reports.


def found(status: Json | None = None, probes: int = 1) -> NodePodProbe:
    names = [{"name": f"m#p{number}", "containerName": "c", "probe": None} for number in range(probes)]
    entry = {"name": "p", "namespace": "ns", "uid": "u", "IP": "", "probes": names}
    return _typed({"metadata": {"name": "n1", "uid": "x"}, "spec": {"podProbes": [entry]}, "status": status or {}})


def _typed(document: Json) -> NodePodProbe:
    return decoded(document, NodePodProbe)


def said(*states: Json, uid: str = "u") -> NodePodProbeStatus:
    return found({"podProbeStatuses": [{"name": "p", "namespace": "ns", "uid": uid, "probeStates": [*states]}]}).status


def state(name: str = "m#p0", state: str = OK, **members: Any) -> Json:
    return {"name": name, "state": state} | members


def test_only_what_is_in_the_spec_is_taken_in():
    for report in (said(state(), uid="other"), said(state("m#other"))):
        assert reported(found(), report, NOW) == NodePodProbeStatus()


def test_a_node_speaks_for_itself_and_in_three_words():
    report = NodePodProbeReport(status=said(state()))
    assert refusal(Sender("n1", "_", "n1"), report) == ""
    assert refusal(Sender("n1", "_", "n2"), report) == "node n1 may not report for n2"
    assert "unknown state 'Maybe'" in refusal(
        Sender("n1", "_", "n1"), NodePodProbeReport(status=said(state(state="Maybe")))
    )


def test_messages_are_cut_in_bytes():
    assert cut("é" * 600, 1024) == "é" * 512
    (pod,) = reported(found(), said(state(message="é" * 600)), NOW).pod_probe_statuses
    assert pod.probe_states[0].message == "é" * 512
    many = reported(
        found(probes=1000), said(*(state(f"m#p{number}", message="x" * 2000) for number in range(1000))), NOW
    )
    (pod,) = many.pod_probe_statuses
    assert sum(len(one.message) for one in pod.probe_states) <= MESSAGES_BYTES


def test_times_of_the_far_future_are_not_believed():
    first = reported(found(), said(state(lastProbeTime=rfc3339(NOW + timedelta(days=9)))), NOW)
    (pod,) = first.pod_probe_statuses
    assert pod.probe_states[0].last_probe_time == NOW
    near = reported(found(), said(state(lastProbeTime=rfc3339(NOW + timedelta(seconds=30)))), NOW)
    assert near.pod_probe_statuses[0].probe_states[0].last_probe_time == NOW + timedelta(seconds=30)


def test_the_transition_is_that_of_the_state():
    old = rfc3339(NOW - timedelta(hours=1))
    held = found(
        {
            "podProbeStatuses": [
                {
                    "name": "p",
                    "namespace": "ns",
                    "uid": "u",
                    "probeStates": [state(lastTransitionTime=old, lastProbeTime=old, message="a")],
                }
            ]
        }
    )
    same = reported(held, said(state(message="b", lastTransitionTime=rfc3339(NOW))), NOW)
    assert same.pod_probe_statuses[0].probe_states[0].last_transition_time == NOW - timedelta(hours=1)
    other = reported(held, said(state(state=BAD)), NOW)
    assert other.pod_probe_statuses[0].probe_states[0].last_transition_time == NOW
