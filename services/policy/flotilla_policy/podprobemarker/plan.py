"""Plans one pass over one PodProbeMarker: finalizer, marks of pods on virtual nodes, status.

See podprobemarker.md §4.2. The controller of NodePodProbes writes the probes, node by node; the status of the
PodProbeMarker shows how far that is.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.nodepodprobe.types import FAILED, SUCCEEDED, UNKNOWN
from flotilla_common.api.kinds.podprobemarker.types import (
    CLEAN_UP_FINALIZER,
    POD_PROBE_MARKER,
    MarkerStatus,
    PodProbeMarker,
)
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Intent, Patch, PatchType, Plan
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import patch_of, status_patch, write_finalizer
from flotilla_policy.attempts import PodWrite, send
from flotilla_policy.podprobemarker.progress import Progress, progress_of
from flotilla_policy.podprobemarker.snapshot import PodProbeMarkerSnapshot
from flotilla_policy.podprobemarker.why import explain, explain_deletion

_STATES = {"True": SUCCEEDED, "False": FAILED}


def plan(snapshot: PodProbeMarkerSnapshot, now: datetime) -> Plan:
    """Plan one pass."""
    marker, builder, progress = snapshot.marker, PlanBuilder(), progress_of(snapshot)
    meta = marker.metadata
    if meta.deletion_timestamp is not None:
        if CLEAN_UP_FINALIZER in meta.finalizers and not progress.pending:
            builder.stage([(write_finalizer(POD_PROBE_MARKER, meta, CLEAN_UP_FINALIZER, present=False),)])
        explain_deletion(progress, builder)
        return builder.plan()
    if CLEAN_UP_FINALIZER not in meta.finalizers:
        finalizer = write_finalizer(POD_PROBE_MARKER, meta, CLEAN_UP_FINALIZER, present=True)
        builder.stage([(finalizer,)], stop_on_failure=False)
    if snapshot.serverless:
        writes = [PodWrite(patch, patch.name) for patch in mark_patches(marker, snapshot.virtual)]
        send(writes, snapshot.attempts, builder, now)
    explain(snapshot, progress, builder, now)
    return _with_status(snapshot, progress, builder)


def mark_patches(marker: PodProbeMarker, pods: Iterable[Pod]) -> Iterator[Patch]:
    """Yield the marks of pods on virtual nodes, which run the probes and write the conditions themselves (§7).

    Marks are added and never removed.
    """
    for pod in pods:
        labels, annotations = _marks(marker, pod)
        meta = pod.metadata
        metadata: Json = {}
        if change := _missing(meta.labels, labels):
            metadata["labels"] = change
        if change := _missing(meta.annotations, annotations):
            metadata["annotations"] = change
        if metadata:
            body, cause = {"metadata": metadata}, "results of its probes"
            yield patch_of(POD, meta, Intent.UPDATE, cause, body=body, patch_type=PatchType.STRATEGIC)


def _marks(marker: PodProbeMarker, pod: Pod) -> tuple[dict[str, str], dict[str, str]]:
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    for probe in marker.spec.probes:
        condition = pod.conditions.get(probe.pod_condition_type) if probe.pod_condition_type else None
        state = _STATES.get(condition.status, UNKNOWN) if condition is not None else ""
        for policy in probe.marker_policy:
            if policy.state == state:
                labels |= policy.labels
                annotations |= policy.annotations
    return labels, annotations


def _missing(current: dict[str, str], wanted: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if current.get(key) != value}


def _with_status(snapshot: PodProbeMarkerSnapshot, progress: Progress, builder: PlanBuilder) -> Plan:
    """Return the plan with its status.

    `observedGeneration`, which scripts wait for, reaches the spec's generation once all NodePodProbes have the probes.
    """
    marker = snapshot.marker
    status = _status_of(marker, progress, len(snapshot.normal) + len(snapshot.virtual))
    written = status.observed_generation > 0  # the schema requires it
    return builder.plan(
        status=status_patch(POD_PROBE_MARKER, marker.metadata, marker.status, status) if written else None,
        urgent_status=status.observed_generation != marker.status.observed_generation,
        numbers={"matchedPods": status.matched_pods, "pendingNodes": len(progress.pending)},
    )


def _status_of(marker: PodProbeMarker, progress: Progress, matched: int) -> MarkerStatus:
    observed = marker.status.observed_generation if progress.pending else marker.metadata.generation
    return MarkerStatus(observed_generation=observed, matched_pods=matched)
