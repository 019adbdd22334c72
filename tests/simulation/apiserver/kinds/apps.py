"""Deployments, ReplicaSets and StatefulSets of apps/v1: defaults, and generations."""

from collections.abc import Mapping

from flotilla_common.api.documents import member
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, REPLICA_SET, Resource
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.kinds.pods import defaulted_spec

_SPECS: Mapping[Resource, Json] = {
    DEPLOYMENT: {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    REPLICA_SET: {"replicas": 1},
    BUILT_IN_STATEFUL_SET: {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
}
_ROLLING: Mapping[Resource, tuple[str, Json]] = {
    DEPLOYMENT: ("strategy", {"maxSurge": "25%", "maxUnavailable": "25%"}),
    BUILT_IN_STATEFUL_SET: ("updateStrategy", {"partition": 0}),
}


class AppsKind(Kind):
    """A workload with a built-in controller of Kubernetes."""

    generations = True

    def decode(self, document: Json, old: Json | None) -> Json:
        if old is not None and document.get("spec") is old["spec"]:
            return document
        spec = _SPECS[self.resource] | member(document, "spec")
        template = member(spec, "template")
        spec["template"] = template | {"spec": defaulted_spec(member(template, "spec"))}
        if self.resource in _ROLLING:
            name, rolling = _ROLLING[self.resource]
            spec[name] = _rolling(member(spec, name), rolling)
        return document | {"spec": spec}

    def prepare_create(self, document: Json) -> Json:
        return super().prepare_create(document) | {"status": {}}


def _rolling(strategy: Json, defaults: Json) -> Json:
    strategy = {"type": "RollingUpdate"} | strategy
    if strategy["type"] != "RollingUpdate":
        return strategy
    return strategy | {"rollingUpdate": defaults | member(strategy, "rollingUpdate")}
