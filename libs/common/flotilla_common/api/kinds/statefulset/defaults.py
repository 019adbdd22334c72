"""Defaults of a StatefulSet, in the version of the request (statefulset.md §3.1)."""

import copy

from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.documents import Json, ensured, fill
from flotilla_common.api.versions import V1BETA1
from flotilla_common.gates import Gates


def default_statefulset(document: Json, old: Json | None, gates: Gates) -> Json:
    """The document with defaults filled in, as a new document. `old` is the stored object of an update."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    _fill_empty(spec, podManagementPolicy="OrderedReady")
    strategy = ensured(spec, "updateStrategy")
    _fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _default_rolling(ensured(strategy, "rollingUpdate"))
    if document.get("apiVersion") == V1BETA1:
        _default_claims(spec, gates)
    fill(spec, replicas=1, revisionHistoryLimit=10)
    default_templates(spec, old, gates)
    return defaulted


def _default_rolling(rolling: Json) -> None:
    fill(rolling, partition=0, maxUnavailable=1, minReadySeconds=0)
    _fill_empty(rolling, podUpdatePolicy="ReCreate")


def _default_claims(spec: Json, gates: Gates) -> None:
    if gates.on("StatefulSetAutoDeletePVC"):
        policy = ensured(spec, "persistentVolumeClaimRetentionPolicy")
        _fill_empty(policy, whenDeleted="Retain", whenScaled="Retain")
    if gates.on("StatefulSetAutoResizePVCGate"):
        _fill_empty(ensured(spec, "volumeClaimUpdateStrategy"), type="OnDelete")


def _fill_empty(document: Json, **defaults: str) -> None:
    for key, value in defaults.items():
        document[key] = document.get(key) or value
