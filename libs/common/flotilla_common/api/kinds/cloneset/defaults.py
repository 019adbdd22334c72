"""Defaults of a CloneSet, in the version of the request (cloneset.md §3.1)."""

import copy

from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.documents import Json, ensured, fill
from flotilla_common.api.versions import V1ALPHA1
from flotilla_common.gates import Gates


def default_cloneset(document: Json, old: Json | None, gates: Gates) -> Json:
    """The document with defaults filled in, as a new document. `old` is the stored object of an update."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    fill(spec, replicas=1, revisionHistoryLimit=10)
    default_templates(spec, old, gates)
    strategy = ensured(spec, "updateStrategy")
    if document.get("apiVersion") == V1ALPHA1:
        _default_rollout(strategy, "type")
    else:
        _default_beta_strategy(strategy)
    return defaulted


def _default_beta_strategy(strategy: Json) -> None:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _default_rollout(ensured(strategy, "rollingUpdate"), "podUpdatePolicy")


def _default_rollout(rollout: Json, policy: str) -> None:
    if not rollout.get(policy):
        rollout[policy] = "ReCreate"
    if rollout[policy] in ("InPlaceIfPossible", "InPlaceOnly"):
        ensured(rollout, "inPlaceUpdateStrategy")
    fill(rollout, partition=0, maxUnavailable="20%", maxSurge=0)
