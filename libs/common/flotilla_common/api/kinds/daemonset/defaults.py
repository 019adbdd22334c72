"""Defaults of a DaemonSet, in the version of the request (daemonset.md §3.1).

The pod template is stored as it was sent, so that its revision never depends on who admitted it.
"""

import copy

from flotilla_common.api.documents import Json, ensured, fill
from flotilla_common.api.kinds.daemonset.conversion import STANDARD, SURGING
from flotilla_common.api.versions import V1ALPHA1


def default_daemonset(document: Json) -> Json:
    """The document with defaults filled in, as a new document."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    fill(spec, burstReplicas=250, revisionHistoryLimit=10)
    strategy = ensured(spec, "updateStrategy")
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _default_rolling(ensured(strategy, "rollingUpdate"), alpha=document.get("apiVersion") == V1ALPHA1)
    return defaulted


def _default_rolling(rolling: Json, *, alpha: bool) -> None:
    if alpha and rolling.get("rollingUpdateType") == SURGING:
        fill(rolling, maxSurge=1, maxUnavailable=0)
        rolling["rollingUpdateType"] = STANDARD
    rolling["rollingUpdateType"] = rolling.get("rollingUpdateType") or STANDARD
    if rolling.get("maxUnavailable") is None and rolling.get("maxSurge") is None:
        rolling.update(maxUnavailable=1, maxSurge=0)
