"""Whether a pod that tolerates no more than it says could run on a node, were that empty, and why not (broadcastjob.md
§4.3): labels, affinity, taints, cordons, and room."""

from functools import lru_cache

import msgspec

from flotilla_common.api.core import Node, Pod, PodSpec
from flotilla_common.api.documents import mapping, typed
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.scheduling import Taint
from flotilla_common.workload.placement.fit import Demands, Placement
from flotilla_common.workload.placement.room import lacking, requests_of

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_MEMO = "strict_placement"


class StrictPlacement:
    """The demands of pods, compiled."""

    def __init__(self, spec: PodSpec) -> None:
        """Raises ValueError: a quantity cannot be read."""
        self._placement = Placement(
            Demands(
                node_name=spec.node_name,
                node_selector=spec.node_selector,
                affinity=spec.affinity,
                tolerations=spec.tolerations,
            )
        )
        self._tolerates_cordons = any(toleration.tolerates(_CORDON) for toleration in spec.tolerations)
        self._requests = requests_of(spec)

    @classmethod
    def of(cls, template: bytes | msgspec.Raw) -> "StrictPlacement":
        """Of pods that are made from a pod template as JSON. Raises ValueError."""
        return _of(bytes(template))

    @classmethod
    def of_pod(cls, pod: Pod) -> "StrictPlacement":
        """Of a pod that there is. Raises ValueError."""
        known: StrictPlacement | None = pod.memo.get(_MEMO)
        if known is None:
            known = pod.memo[_MEMO] = cls(pod.spec)
        return known

    def why_not(self, node: Node) -> str:
        """Why the pod could not run there, in the words of Kubernetes; empty if it could."""
        fit = self._placement.fit(node)
        if not fit.should_run:
            return fit.why_not
        if node.spec.unschedulable and not self._tolerates_cordons:
            return "is unschedulable"
        missing = lacking(self._requests, node)
        return f"Insufficient {', '.join(missing)}" if missing else ""


@lru_cache(maxsize=1024)
def _of(template: bytes) -> StrictPlacement:
    spec = mapping(mapping(read_json(template, object)).get("spec"))
    try:
        return StrictPlacement(typed(spec, PodSpec))
    except ValueError as error:  # msgspec.ValidationError is one
        raise ValueError(f"spec.template.spec: {error}") from error
