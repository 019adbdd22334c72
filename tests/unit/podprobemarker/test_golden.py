"""The PodProbeMarker and the NodePodProbes that OpenKruise left, with their pods.

Nothing is written when they are taken over, and reports continue from their state.
"""

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbe, NodePodProbeStatus
from flotilla_common.api.kinds.podprobemarker.types import PodProbeMarker
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Patch, Plan
from flotilla_common.node.reports import NodePodProbeReport
from flotilla_policy.nodepodprobe import controller as nodes
from flotilla_policy.nodepodprobe.plan import plan as plan_node
from flotilla_policy.podprobemarker import controller as markers
from flotilla_policy.podprobemarker.plan import plan as plan_marker
from tests.support.controller_context import FakeContext
from tests.testkit.documents import conditions, decoded
from tests.unit.podprobemarker.world import NOW
from tests.unit.workload.openkruise import documents

NAMES = ("node1", "node2", "node3")


class Cluster:
    """The golden objects in the tables of both controllers."""

    def __init__(self) -> None:
        self.context = FakeContext()
        self.nodes, self.markers = nodes.Gatherer(self.context), markers.Gatherer(self.context)
        for name in NAMES:
            ready = {"conditions": conditions({"Ready": True})}
            self.context.put(nodes.NODES, decoded({"metadata": {"name": name}, "status": ready}, Node))
        self.context.put(nodes.PODS, *decoded(documents("pods"), list[Pod]))
        self.context.put(nodes.NODE_PROBES, *decoded(documents("nodepodprobes"), list[NodePodProbe]))
        self.context.put(nodes.MARKERS, *decoded(documents("podprobemarkers"), list[PodProbeMarker]))

    def node(self, name: str) -> Plan:
        snapshot = self.nodes.gather(("", name), Memory())
        assert snapshot is not None
        return plan_node(snapshot, NOW)

    def marker(self) -> Plan:
        snapshot = self.markers.gather(("golden", "ppm"), Memory())
        assert snapshot is not None
        return plan_marker(snapshot, NOW)


def test_nothing_is_written_when_they_are_taken_over():
    cluster = Cluster()
    plans = [cluster.marker(), *map(cluster.node, NAMES)]
    assert [(made.actions, made.status) for made in plans] == [([], None)] * 4
    assert [reason.code for reason in plans[0].reasons] == ["PodsProbed"]
    assert plans[0].numbers == {"matchedPods": 4, "pendingNodes": 0}


def test_the_next_report_is_taken_in():
    cluster = Cluster()
    found = cluster.context.table(nodes.NODE_PROBES).get("", "node1")
    assert found is not None
    first, second = found.status.pod_probe_statuses
    failed = [msgspec.structs.replace(state, state="Failed", message="busy") for state in first.probe_states]
    said = [msgspec.structs.replace(first, probe_states=failed), second]
    report = NodePodProbeReport(uid=found.metadata.uid, status=NodePodProbeStatus(pod_probe_statuses=said))
    cluster.context.reports["node1"] = report
    status, pod = (action for action in cluster.node("node1").actions if isinstance(action, Patch))
    assert (status.subresource, status.name) == ("status", "node1")
    assert (pod.name, pod.body["metadata"]) == (first.name, {"labels": {"idle": None}})
    assert [one["message"] for one in pod.body["status"]["conditions"]] == ["busy"]
