"""Plans the life of a NodePodProbe (podprobemarker.md §5, §6).

It is created and deleted with its node, holds the probes of all PodProbeMarkers for that node, shows the results that
the node's agent reports, and writes them to the pods.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, merge_patch
from flotilla_common.api.kinds.nodepodprobe.types import (
    NODE_POD_PROBE,
    NodePodProbe,
    NodePodProbeSpec,
    NodePodProbeStatus,
    split,
)
from flotilla_common.control.plan import Action, Intent, Plan, Stage, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import pods_word
from flotilla_common.control.writes import create_of, delete_of, patch_of, status_patch
from flotilla_policy.attempts import PodWrite, send
from flotilla_policy.nodepodprobe.desired import desired_spec
from flotilla_policy.nodepodprobe.results import marks_of, pod_patch, reported
from flotilla_policy.nodepodprobe.snapshot import NodePodProbeSnapshot
from flotilla_policy.probed_pods import is_virtual
from flotilla_policy.probes import agents_unreachable, overdue_probes


def plan(snapshot: NodePodProbeSnapshot, now: datetime) -> Plan:
    """Plan the object, its spec and its status, and the pods that have results, all in one pass.

    Nothing has to be awaited between a report and the labels of its pods.
    """
    node_probe, node = snapshot.node_probe, snapshot.node
    if node is None or node.metadata.deletion_timestamp is not None:
        if node_probe is None or node_probe.metadata.deletion_timestamp is not None:
            return Plan()
        return _single(delete_of(NODE_POD_PROBE, node_probe.metadata, Intent.DELETE, "node is gone"))
    virtual = is_virtual(node)  # a node that has just become virtual has an object to be emptied
    pods = () if virtual else snapshot.pods
    spec = desired_spec(node_probe.spec if node_probe is not None else NodePodProbeSpec(), pods, snapshot.markers)
    if node_probe is None:
        return Plan() if virtual else _created(snapshot, spec)
    if node_probe.metadata.deletion_timestamp is not None:
        return Plan()
    return _kept(snapshot, node_probe, spec, now)


def _created(snapshot: NodePodProbeSnapshot, spec: NodePodProbeSpec) -> Plan:
    """Create the object as soon as the node is ready, or a pod on it has probes."""
    if not spec.pod_probes and (snapshot.node is None or snapshot.node.ready is None):
        return Plan()
    body: Json = {**NODE_POD_PROBE.type_meta, "metadata": {"name": snapshot.name}, "spec": _document(spec)}
    return _single(create_of(NODE_POD_PROBE, body, Intent.CREATE, "node is ready"))


def _kept(snapshot: NodePodProbeSnapshot, node_probe: NodePodProbe, spec: NodePodProbeSpec, now: datetime) -> Plan:
    """Write the spec, then the status, then the pods.

    The status comes before the pods: a replica that takes over in between finds the newest result in the status, and
    writes no older one. If the spec cannot be written, results still reach their pods.
    """
    builder, meta = PlanBuilder(), node_probe.metadata
    status = reported(node_probe, snapshot.report, now)
    if change := merge_patch(_document(node_probe.spec), _document(spec)):
        # On the version read: a controller that is being replaced may write here, too.
        cause = "probes of its pods"
        write = patch_of(NODE_POD_PROBE, meta, Intent.UPDATE, cause, body={"spec": change}, on_version=True)
        builder.stage([(write,)], stop_on_failure=False)
    # On any version: there is no other writer of the status.
    if (results := status_patch(NODE_POD_PROBE, meta, node_probe.status, status)) is not None:
        builder.stage([(results,)])
    send(_pod_writes(snapshot, spec, status), snapshot.attempts, builder, now)
    _explain(snapshot, msgspec.structs.replace(node_probe, spec=spec, status=status), now, builder)
    return builder.plan(
        numbers={
            "pods": len(spec.pod_probes),
            "probes": sum(len(pod.probes) for pod in spec.pod_probes),
            "results": sum(len(pod.probe_states) for pod in status.pod_probe_statuses),
        },
    )


def _document(spec: NodePodProbeSpec) -> Json:
    """Return the spec as JSON, including empty members that the schema requires."""
    document = msgspec.json.decode(msgspec.json.encode(spec), type=Json)
    for pod in document.get("podProbes", ()):
        for name in ("name", "namespace", "uid", "IP"):
            pod.setdefault(name, "")
    return document


def _pod_writes(
    snapshot: NodePodProbeSnapshot, spec: NodePodProbeSpec, status: NodePodProbeStatus
) -> Iterator[PodWrite]:
    """Yield at most one write for each pod that keeps its entry. Results of removed probes are ignored."""
    pods = {pod.metadata.uid: pod for pod in snapshot.pods}
    staying = {pod.uid: {probe.name for probe in pod.probes} for pod in spec.pod_probes}
    markers = {
        namespace: {marker.metadata.name: marker for marker in those} for namespace, those in snapshot.markers.items()
    }
    for entry in status.pod_probe_statuses:
        pod, names = pods.get(entry.uid), staying.get(entry.uid, set())
        if pod is None:
            continue
        states = [state for state in entry.probe_states if state.name in names]
        patch = pod_patch(pod, marks_of(states, markers.get(pod.metadata.namespace, {})))
        if patch is not None:
            yield PodWrite(patch, f"{entry.namespace}/{entry.name}", tuple(sorted({split(name)[0] for name in names})))


def _explain(snapshot: NodePodProbeSnapshot, node_probe: NodePodProbe, now: datetime, builder: PlanBuilder) -> None:
    """Add reasons for the probes of the node, and for pods whose results are overdue."""
    pods: Mapping[str, Pod] = {pod.metadata.uid: pod for pod in snapshot.pods}
    quiet = [
        f"{entry.namespace}/{entry.name}"
        for entry in node_probe.spec.pod_probes
        if (pod := pods.get(entry.uid)) is not None
        and [*overdue_probes(node_probe, pod, snapshot.markers.get(entry.namespace, ()), now, builder.deadlines)]
    ]
    if quiet:
        builder.reason(State.STUCK, "WaitingForNodeAgent", agents_unreachable([snapshot.name]), quiet, symptom=True)
    number = sum(len(pod.probes) for pod in node_probe.spec.pod_probes)
    probes = f"{number} probe{'' if number == 1 else 's'} in {pods_word(len(node_probe.spec.pod_probes))}"
    builder.reason(State.DONE, "ProbesWritten", f"the node has {probes}")


def _single(action: Action) -> Plan:
    return Plan(stages=(Stage(chains=((action,),)),))
