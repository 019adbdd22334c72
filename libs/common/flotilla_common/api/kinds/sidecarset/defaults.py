"""Defaults of a SidecarSet, in the version of the request (sidecarset.md §3).

They are part of the hashes, so they are what they are: a startup probe gets none, and images are pulled by the usual
rule, unlike in the pod templates of workloads.
"""

import copy

from flotilla_common.api.admission.pod_template import default_container, default_field_ref, default_volume, pull_policy
from flotilla_common.api.documents import Json, ensured, fill, fill_empty, mapping, mappings, member, text
from flotilla_common.api.kinds.sidecarset.canonical import hash_annotations
from flotilla_common.api.kinds.sidecarset.types import AFTER_APP, BEFORE_APP, RETAIN

_PROBES = ("livenessProbe", "readinessProbe")


def default_sidecarset(document: Json) -> Json:
    """The document with defaults and both hashes filled in, as a new document. Raises ValueError for containers that
    cannot be read."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    strategy = ensured(spec, "updateStrategy")
    fill_empty(strategy, type="RollingUpdate")
    fill(strategy, partition=0, maxUnavailable=1)
    for container in mappings(spec.get("initContainers")):
        _default_sidecar(container, AFTER_APP)
    for container in mappings(spec.get("containers")):
        _default_sidecar(container, BEFORE_APP)
    for volume in mappings(spec.get("volumes")):
        default_volume(volume)
    fill(spec, revisionHistoryLimit=10)
    for entry in mappings(spec.get("patchPodMetadata")):
        fill_empty(entry, patchPolicy=RETAIN)
    if (revision := member(spec, "injectionStrategy").get("revision")) is not None:
        fill_empty(mapping(revision), policy="Always")
    ensured(ensured(defaulted, "metadata"), "annotations").update(hash_annotations(spec))
    return defaulted


def _default_sidecar(container: Json, inject_policy: str) -> None:
    fill_empty(container, podInjectPolicy=inject_policy, imagePullPolicy=pull_policy(text(container.get("image"))))
    fill_empty(ensured(container, "upgradeStrategy"), upgradeType="ColdUpgrade")
    fill_empty(ensured(container, "shareVolumePolicy"), type="disabled")
    for entry in mappings(container.get("transferEnv")):
        default_field_ref(mapping(entry.get("sourceContainerNameFrom")))
    default_container(container, _PROBES)
