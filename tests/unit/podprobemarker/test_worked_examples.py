"""The worked examples of podprobemarker.md §11, by number.

Numbers 19, 21 and 22 are the agent's, 26 to 28 those of admission.
"""

import pytest

from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.resources import NODE, POD
from tests.unit.podprobemarker.world import EXEC, POLICY, World, probe

FINALIZER = "kruise.io/node-pod-probe-cleanup"
OK, BAD, NOTHING = "Succeeded", "Failed", "Unknown"


@pytest.fixture
def world() -> World:
    """Return a world with PodProbeMarker M and pod p, whose probe is written."""
    world = World()
    world.pod()
    world.marker()
    world.settle()
    return world


def test_1_a_marker_meets_a_pod(world: World):
    found = world.found()
    assert found.metadata.finalizers == [FINALIZER]
    assert world.written() == {"uid-p": ["m#idle"]}
    (entry,) = world.probes().spec.pod_probes
    assert (entry.name, entry.namespace, entry.ip) == ("p", "ns", "10.0.0.1")
    assert (found.status.observed_generation, found.status.matched_pods) == (1, 1)


def test_2_it_succeeds(world: World):
    world.report(p__m__idle=(OK, "0 players"))
    assert world.shown() == ("True", "0 players")
    assert (world.labels(), world.annotations()) == ({"idle": "yes"}, {"cost": "-5"})


def test_3_another_message(world: World):
    world.report(p__m__idle=(OK, "0 players"))
    since = world.condition()
    world.wait(5)
    world.report(p__m__idle=(OK, "1 player"))
    then = world.condition()
    assert world.shown() == ("True", "1 player")
    assert since is not None
    assert then is not None
    assert then["lastTransitionTime"] == since["lastTransitionTime"]
    assert then["lastProbeTime"] > since["lastProbeTime"]


def test_4_it_fails(world: World):
    world.report(p__m__idle=(OK, "0 players"))
    world.report(p__m__idle=(BAD, "busy"))
    assert world.shown() == ("False", "busy")
    assert (world.labels(), world.annotations()) == ({}, {"cost": "5"})


def test_5_only_succeeded_has_marks():
    world = World()
    world.pod()
    world.marker(probe(markerPolicy=POLICY[:1]))
    world.settle()
    world.report(p__m__idle=(OK, ""))
    assert world.labels() == {"idle": "yes"}
    world.report(p__m__idle=(BAD, ""))
    assert (world.labels(), world.annotations()) == ({}, {})


def test_6_only_failed_has_marks():
    world = World()
    world.pod()
    world.marker(probe(markerPolicy=POLICY[1:]))
    world.settle()
    world.report(p__m__idle=(BAD, ""))
    assert world.annotations() == {"cost": "5"}
    world.report(p__m__idle=(OK, ""))
    assert (world.labels(), world.annotations()) == ({}, {})


def test_7_only_a_condition():
    world = World()
    world.pod()
    world.marker(probe(markerPolicy=None))
    world.settle()
    world.report(p__m__idle=(OK, "fine"))
    assert (world.shown(), world.labels(), world.annotations()) == (("True", "fine"), {}, {})


def test_8_only_marks():
    world = World()
    world.pod()
    world.marker(probe(podConditionType=None))
    world.settle()
    world.report(p__m__idle=(OK, "fine"))
    assert (world.shown(), world.labels()) == (None, {"idle": "yes"})


def test_9_another_command(world: World):
    world.report(p__m__idle=(OK, "0 players"))
    other = EXEC | {"exec": {"command": ["other"]}}
    world.edit(POD_PROBE_MARKER, "m", {"spec": {"probes": [probe(probe=other)]}})
    world.pass_of_marker()
    assert world.found().status.observed_generation == 1, "the probe is not written yet"
    assert world.reasons["m"][0] == "WaitingForNodePodProbes"
    world.settle()
    assert b"other" in bytes(world.probes().spec.pod_probes[0].probes[0].probe)
    assert world.found().status.observed_generation == 2
    world.report(p__m__idle=(NOTHING, ""))
    assert world.shown() == ("False", "")
    world.report(p__m__idle=(OK, "again"))
    assert world.shown() == ("True", "again")


def test_10_init_containers_run():
    world = World()
    waiting = [{"type": "Initialized", "status": "False"}]
    world.pod(status={"conditions": waiting})
    world.marker()
    world.settle()
    assert (world.written(), world.found().status.matched_pods) == ({}, 0)
    world.edit(POD, "p", {"status": {"conditions": [{"type": "Initialized", "status": "True"}]}})
    assert {("", "n1"), ("ns", "m")} <= set(world.context.woken)
    world.settle()
    assert (world.written(), world.found().status.matched_pods) == ({"uid-p": ["m#idle"]}, 1)


def test_11_a_port_by_name():
    world = World()
    world.pod()
    world.marker(probe(probe={"tcpSocket": {"port": "http"}}))
    world.settle()
    assert b'"port":8080' in bytes(world.probes().spec.pod_probes[0].probes[0].probe)


def test_12_a_port_name_that_the_container_lacks():
    world = World()
    world.pod()
    world.marker(probe("a", probe={"tcpSocket": {"port": "admin"}}), probe("b", podConditionType="b"))
    world.settle()
    assert world.written() == {"uid-p": ["m#b"]}
    assert world.reasons["m"] == ["ProbeSkipped", "PodsProbed"]
    assert world.found().status.observed_generation == 1


def test_13_the_ip_comes_later():
    world = World()
    world.pod(status={"podIP": None})
    world.marker()
    world.settle()
    assert world.probes().spec.pod_probes[0].ip == ""
    world.edit(POD, "p", {"status": {"podIP": "10.0.0.9"}})
    assert ("", "n1") in world.context.woken
    world.settle()
    assert world.probes().spec.pod_probes[0].ip == "10.0.0.9"


def test_14_a_pod_is_deleted(world: World):
    world.report(p__m__idle=(OK, ""))
    world.vanish(POD, "p")
    world.settle()
    assert (world.written(), world.states()) == ({}, {})


def test_15_a_pod_of_the_same_name(world: World):
    world.report(p__m__idle=(OK, ""))
    world.vanish(POD, "p")
    world.pod(uid="uid-new")
    world.settle()
    assert (world.written(), world.states()) == ({"uid-new": ["m#idle"]}, {})
    assert world.shown() is None


def test_16_a_pod_completes(world: World):
    world.edit(POD, "p", {"status": {"phase": "Succeeded"}})
    world.settle()
    assert (world.written(), world.found().status.matched_pods) == ({}, 0)


def test_17_a_marker_is_deleted(world: World):
    world.marker(name="m2", labels={"app": "game"})
    world.settle()
    world.report(p__m__idle=(OK, "0 players"))
    world.remove(POD_PROBE_MARKER, "m")
    world.pass_of_marker()
    assert world.find(POD_PROBE_MARKER, "m"), "its probes are still in a NodePodProbe"
    world.settle()
    assert not world.find(POD_PROBE_MARKER, "m")
    assert world.written() == {"uid-p": ["m2#idle"]}
    assert (world.shown(), world.labels()) == (("True", "0 players"), {"idle": "yes"})


def test_18_two_markers_with_one_condition_type(world: World):
    world.marker(probe("b", markerPolicy=[{"state": "Failed", "labels": {"b": "bad"}}]), name="n")
    world.settle()
    world.report(p__m__idle=(OK, "first"), p__n__b=(BAD, "second"))
    assert world.shown() == ("True", "first")
    assert world.labels() == {"idle": "yes", "b": "bad"}
    assert "ConditionTypeTaken" in world.reasons["m"]


def test_20_a_container_that_is_not_there():
    world = World()
    world.pod()
    world.marker(probe(containerName="other"))
    world.settle()
    assert world.written() == {"uid-p": ["m#idle"]}
    assert (world.shown(), world.reasons["m"]) == (None, ["ContainerNotFound", "PodsProbed"])


def test_23_a_label_edited_by_hand(world: World):
    world.report(p__m__idle=(OK, ""))
    world.edit(POD, "p", {"metadata": {"labels": {"idle": "no"}}})
    assert ("", "n1") in world.context.woken
    world.settle()
    assert world.labels() == {"idle": "yes"}


def test_24_and_25_nodes_come_and_go():
    world = World()
    world.node("n2", ready=False)
    world.settle()
    assert not world.find(NODE_POD_PROBE, "n2")
    world.node("n2")
    world.settle()
    assert world.written("n2") == {}
    world.vanish(NODE, "n2")
    world.settle()
    assert not world.find(NODE_POD_PROBE, "n2")


def test_29_and_30_a_pod_on_a_virtual_node():
    """Mark a pod by its conditions; its annotations are the webhook's."""
    world = World(gates="EnablePodProbeMarkerOnServerless=true")
    world.node("v1", type="virtual-kubelet")
    world.pod(node="v1")
    world.marker()
    world.settle()
    assert not world.find(NODE_POD_PROBE, "v1")
    assert world.found().status.matched_pods == 1

    def said(status: str) -> None:
        world.context.woken.clear()
        conditions = [{"type": "Initialized", "status": "True"}, {"type": "game.io/idle", "status": status}]
        world.edit(POD, "p", {"status": {"conditions": conditions}})
        assert ("ns", "m") in world.context.woken
        world.settle()

    said("True")
    assert (world.labels(), world.annotations()) == ({"idle": "yes"}, {"cost": "-5"})
    said("False")
    assert (world.labels(), world.annotations()) == ({"idle": "yes"}, {"cost": "5"})


def test_without_the_gate_virtual_nodes_only_count():
    world = World()
    world.node("v1", type="virtual-kubelet")
    conditions = [{"type": "Initialized", "status": "True"}, {"type": "game.io/idle", "status": "True"}]
    world.pod(node="v1", status={"conditions": conditions})
    world.marker()
    world.settle()
    assert (world.found().status.matched_pods, world.labels()) == (1, {})
    assert world.reasons["m"][0] == "ServerlessOff"


def test_31_no_pod():
    world = World()
    world.marker()
    world.settle()
    status = world.objects.get(POD_PROBE_MARKER, "ns", "m")
    assert status is not None
    assert status["status"] == {"observedGeneration": 1}
    assert world.reasons["m"] == ["NoPods"]
