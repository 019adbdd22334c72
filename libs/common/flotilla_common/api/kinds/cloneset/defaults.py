"""Defaults of a CloneSet, in the version of the request (cloneset.md §3.1)."""

import copy

from flotilla_common.api.admission.pod_template import default_claim, default_template
from flotilla_common.api.documents import Json, mapping, mappings
from flotilla_common.api.versions import V1ALPHA1
from flotilla_common.gates import Gates

_NUMBERS = {"partition": 0, "maxUnavailable": "20%", "maxSurge": 0}


def default_cloneset(document: Json, old: Json | None, gates: Gates) -> Json:
    """The document with defaults filled in, as a new document.

    `old` is the stored object of an update: a template that did not change is left as it is stored, so that an upgrade
    of the defaults never rolls pods.
    """
    defaulted = copy.deepcopy(document)
    _absent(defaulted, "spec", {})
    spec = mapping(defaulted["spec"])
    _absent(spec, "replicas", 1)
    _absent(spec, "revisionHistoryLimit", 10)
    if not gates.on("TemplateNoDefaults") and _template_changed(spec, old):
        template = mapping(spec.get("template"))
        default_template(template, host_ports=gates.on("DefaultHostNetworkHostPortsInPodTemplates"))
        for claim in mappings(spec.get("volumeClaimTemplates")):
            default_claim(claim)
    _absent(spec, "updateStrategy", {})
    strategy = mapping(spec["updateStrategy"])
    if document.get("apiVersion") == V1ALPHA1:
        _default_rollout(strategy, "type")
    else:
        _default_beta_strategy(strategy)
    return defaulted


def _default_beta_strategy(strategy: Json) -> None:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _absent(strategy, "rollingUpdate", {})
        _default_rollout(mapping(strategy["rollingUpdate"]), "podUpdatePolicy")


def _default_rollout(rollout: Json, policy: str) -> None:
    if not rollout.get(policy):
        rollout[policy] = "ReCreate"
    if rollout[policy] in ("InPlaceIfPossible", "InPlaceOnly"):
        _absent(rollout, "inPlaceUpdateStrategy", {})
    for key, value in _NUMBERS.items():
        _absent(rollout, key, value)


def _template_changed(spec: Json, old: Json | None) -> bool:
    return old is None or mapping(old.get("spec")).get("template") != spec.get("template")


def _absent(document: Json, key: str, value: object) -> None:
    if document.get(key) is None:
        document[key] = value
