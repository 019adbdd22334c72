"""A small cluster around PodProbeMarkers: gatherers and planners over tables that follow a model of the apiserver.

Both controllers run, and tests act as the node agents.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe, NodePodProbeStatus
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER, PodProbeMarker
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import NODE, POD
from flotilla_common.clock import ManualClock
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Action, Outcome, Plan
from flotilla_common.control.writes import with_write_failures
from flotilla_common.node.reports import NodePodProbeReport
from flotilla_policy.nodepodprobe import controller as nodes
from flotilla_policy.nodepodprobe.plan import plan as plan_node
from flotilla_policy.podprobemarker import controller as markers
from flotilla_policy.podprobemarker.plan import plan as plan_marker
from tests.support.controller_context import FakeContext
from tests.testkit import pods as pods_of
from tests.testkit.cluster import Cluster
from tests.testkit.documents import Json, conditions, decoded, metadata
from tests.testkit.pods import container, container_status

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)

EXEC: Json = {"exec": {"command": ["sh", "-c", "players"]}, "periodSeconds": 3}
POLICY: list[Json] = [
    {"state": "Succeeded", "labels": {"idle": "yes"}, "annotations": {"cost": "-5"}},
    {"state": "Failed", "annotations": {"cost": "5"}},
]


def probe(name: str = "idle", **members: Any) -> Json:
    """Return a probe on container `game`; the condition type and the policy are those of the worked examples."""
    given = {"containerName": "game", "probe": EXEC, "podConditionType": "game.io/idle", "markerPolicy": POLICY}
    whole = {"name": name} | given | members
    return {key: value for key, value in whole.items() if value is not None}


class World(Cluster):
    """Nodes `n1`, `n2`, …; pods and PodProbeMarkers in namespace `ns`."""

    def __init__(self, *, nodes_there: int = 1, gates: str = "") -> None:
        watches = (nodes.NODES, nodes.PODS, nodes.MARKERS, nodes.NODE_PROBES)
        super().__init__(watches, clock=ManualClock(NOW), context=FakeContext(gates=gates), namespace="ns")
        self.node_gatherer = self.context.build(nodes.CONTROLLER)
        self.marker_gatherer = self.context.build(markers.CONTROLLER)
        self.reasons: dict[str, list[str]] = {}
        self.refused: list[str] = []  # names of objects whose writes were refused
        self._memory: dict[str, Memory] = {}  # by the name of the planned object
        for number in range(1, nodes_there + 1):
            self.node(f"n{number}")
        self.settle()
        self.writes.clear()

    # What people, kubelets and agents do.

    def node(self, name: str, *, ready: bool = True, **labels: str) -> None:
        meta = metadata(name, uid=f"uid-{name}", labels=labels, created=rfc3339(NOW))
        self.put(NODE, {"metadata": meta, "status": {"conditions": conditions({"Ready": ready})}})

    def pod(self, name: str = "p", node: str = "n1", *, uid: str = "", **changed: Any) -> None:
        """Make a pod that runs; `changed` is merged into it."""
        document = pods_of.pod(
            name,
            "ns",
            uid=uid or f"uid-{name}",
            labels={"app": "game"},
            node=node,
            containers=[container("game", "game:1", ports=[{"name": "http", "containerPort": 8080}])],
            phase="Running",
            conditions=conditions({"Initialized": True, "Ready": True}),
            statuses=[container_status("game", state={"running": {"startedAt": rfc3339(self.now)}})],
            status={"podIP": "10.0.0.1"},
        )
        self.objects.put(POD, merge(document, changed))

    def marker(self, *probes: Json, name: str = "m", labels: Json | None = None) -> None:
        spec = {"selector": {"matchLabels": labels or {"app": "game"}}, "probes": list(probes) or [probe()]}
        meta = metadata(name, uid=f"uid-{name}", generation=1, created=rfc3339(self.now))
        self.put(POD_PROBE_MARKER, {"metadata": meta, "spec": spec})

    def report(self, node: str = "n1", /, **states: tuple[str, str]) -> Plan:
        """Report (state, message) of probes as the node's agent, by `pod__marker__probe`.

        The report is answered once the status has it.
        """
        found = self.probes(node)
        uids = {entry.name: entry.uid for entry in found.spec.pod_probes}
        pods: dict[str, list[Json]] = {}
        for place, (state, message) in states.items():
            pod, marker, name = place.split("__")
            said = {"name": f"{marker}#{name}", "state": state, "message": message}
            pods.setdefault(pod, []).append(said | {"lastProbeTime": rfc3339(self.now)})
        entries = [
            {"name": pod, "namespace": "ns", "uid": uids.get(pod, f"uid-{pod}"), "probeStates": said}
            for pod, said in pods.items()
        ]
        status = msgspec.convert({"podProbeStatuses": entries}, NodePodProbeStatus)
        report = NodePodProbeReport(uid=found.metadata.uid, status=status)
        self.context.reports[node] = report
        made = self.pass_of_node(node)
        assert nodes.absorbed(self.probes(node), report, self.now + timedelta(seconds=2))
        del self.context.reports[node]
        self.settle()
        return made

    # What is there.

    def probes(self, node: str = "n1") -> NodePodProbe:
        return decoded(self.held(NODE_POD_PROBE, node), NodePodProbe)

    def written(self, node: str = "n1") -> dict[str, list[str]]:
        """Return the names of the probes in the node's spec, by uid of the pod."""
        return {one.uid: [probe.name for probe in one.probes] for one in self.probes(node).spec.pod_probes}

    def states(self, node: str = "n1") -> dict[str, dict[str, str]]:
        statuses = self.probes(node).status.pod_probe_statuses
        return {one.uid: {state.name: state.state for state in one.probe_states} for one in statuses}

    def found(self, name: str = "m") -> PodProbeMarker:
        return decoded(self.held(POD_PROBE_MARKER, name), PodProbeMarker)

    def condition(self, name: str = "p", kind: str = "game.io/idle") -> Json | None:
        conditions = self.held(POD, name)["status"]["conditions"]
        return next((one for one in conditions if one["type"] == kind), None)

    def shown(self, name: str = "p", kind: str = "game.io/idle") -> tuple[str, str] | None:
        """Return status and message of the condition."""
        found = self.condition(name, kind)
        return None if found is None else (found["status"], found.get("message", ""))

    def labels(self, name: str = "p") -> dict[str, str]:
        return {key: value for key, value in self.held(POD, name)["metadata"]["labels"].items() if key != "app"}

    def annotations(self, name: str = "p") -> dict[str, str]:
        return self.held(POD, name)["metadata"].get("annotations", {})

    def pod_writes(self) -> list[str]:
        return [write.action.name for write in self.writes if write.action.resource == POD]

    # What the controllers do.

    def settle(self) -> None:
        """Make passes of both controllers over everything, until nothing is written any more."""
        for _ in range(20):
            before = len(self.writes)
            keys = self.node_gatherer.keys()
            for _, name in keys:
                self.pass_of_node(name)
            for one in self.objects.all(POD_PROBE_MARKER):
                self.pass_of_marker(one["metadata"]["name"])
            if len(self.writes) == before:
                return
        raise AssertionError(f"never settles: {self.writes[-5:]}")

    def pass_of_node(self, name: str) -> Plan:
        return self._pass(name, self.node_gatherer.gather(("", name), self._remembered(name)), plan_node)

    def pass_of_marker(self, name: str = "m") -> Plan:
        return self._pass(name, self.marker_gatherer.gather(("ns", name), self._remembered(name)), plan_marker)

    def _remembered(self, name: str) -> Memory:
        return self._memory.get(name, Memory())

    def _pass(self, name: str, snapshot: Any, planner: Callable[[Any, datetime], Plan]) -> Plan:
        refused = self._remembered(name).refused
        made = Plan() if snapshot is None else with_write_failures(planner(snapshot, self.now), refused)
        report = self.carry_out(made)
        if made.status is not None:
            report.add(made.status, self.answer(made.status))
        self._memory[name] = Memory(report.failures, refused=tuple(report.refused.values()), notes=made.notes)
        self.reasons[name] = [reason.code for reason in made.reasons]
        return made

    def answer(self, action: Action) -> Outcome:
        outcome = super().answer(action)
        self.refused += [] if outcome.ok else [action.name]
        return outcome
