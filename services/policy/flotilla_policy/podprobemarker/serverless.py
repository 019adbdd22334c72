"""Marks pods on virtual nodes, which run the probes and write the conditions themselves (podprobemarker.md §7)."""

from collections.abc import Iterable, Iterator

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.nodepodprobe.types import FAILED, SUCCEEDED, UNKNOWN
from flotilla_common.api.kinds.podprobemarker.types import PodProbeMarker
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Intent, Patch, PatchType
from flotilla_common.control.writes import patch_of

_STATES = {"True": SUCCEEDED, "False": FAILED}


def mark_patches(marker: PodProbeMarker, pods: Iterable[Pod]) -> Iterator[Patch]:
    """Yield the write that each pod needs. Marks are added and never removed."""
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


def _missing(held: dict[str, str], wanted: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if held.get(key) != value}
