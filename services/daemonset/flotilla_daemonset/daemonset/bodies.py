"""The pods that a DaemonSet creates, as documents (daemonset.md §4.7).

Names look random, and are derived from the node and from what was there before: a create that is repeated meets its own
pod, and a new pod is not taken for the one before it.
"""

import hashlib
from collections.abc import Container
from itertools import count

from flotilla_common.api import keys
from flotilla_common.api.documents import mapping, sequence, strings
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Json
from flotilla_common.workload.newpods import decode_template, wanted_gates, with_readiness_gates
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.placement import pinned, with_daemon_tolerations
from flotilla_common.workload.podnames import suffix
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pods import GENERATION_ANNOTATION, GENERATION_LABEL

PAST_THE_SCHEDULER = "kubernetes.io/daemonset-controller"
"""The scheduler's name in pods that are created on their node."""


class PodFactory:
    """Makes the pods of a pass, all of the revision of the template."""

    def __init__(self, context: PlanContext) -> None:
        self._context = context
        template = decode_template(context.daemonset.spec.template)
        self._template = mapping(template.get("metadata"))
        self._spec = self._common(mapping(template.get("spec")))
        self._owner = [owner_reference(DAEMON_SET, context.daemonset.metadata)]
        self._named: set[str] = set()
        self.labels = self._labels()

    @property
    def fits_selector(self) -> bool:
        """The DaemonSet would know these pods as its own."""
        return self._context.selector.matches(self.labels)

    def pod(self, node: str) -> Json:
        """The body of a pod for the node."""
        meta = self._context.daemonset.metadata
        metadata: Json = {
            "name": self._name(node, self._context.snapshot.taken_names),
            "generateName": f"{meta.name}-",
            "namespace": meta.namespace,
            "labels": self.labels,
            "annotations": mapping(self._template.get("annotations")),
            "ownerReferences": self._owner,
        }
        if self._template.get("finalizers"):
            metadata["finalizers"] = sequence(self._template["finalizers"])
        return {"apiVersion": POD.api_version, "kind": POD.kind, "metadata": metadata, "spec": self._for(node)}

    def _labels(self) -> dict[str, str]:
        labels = {**strings(self._template.get("labels")), keys.REVISION_LABEL: self._context.revisions.hash}
        generation = self._context.daemonset.metadata.annotations.get(GENERATION_ANNOTATION)
        return labels if generation is None else {**labels, GENERATION_LABEL: generation}

    def _common(self, spec: Json) -> Json:
        """What of the pod spec is the same on all nodes."""
        snapshot, namespace = self._context.snapshot, self._context.daemonset.metadata.namespace
        gates = wanted_gates(snapshot.gates, namespace, snapshot.options.system_namespace)
        wanted = (keys.IN_PLACE_READY, *gates) if self._context.targets.in_place else gates
        return with_readiness_gates({**spec, "tolerations": with_daemon_tolerations(spec)}, wanted)

    def _for(self, node: str) -> Json:
        if self._context.snapshot.options.assign_by_scheduler:
            return pinned(self._spec, node)
        return {**self._spec, "nodeName": node, "schedulerName": PAST_THE_SCHEDULER}

    def _name(self, node: str, taken: Container[str]) -> str:
        """Determined by the node, its former pod and the revision."""
        meta, former = self._context.daemonset.metadata, self._context.snapshot.former.get(node)
        before = former.name if former is not None else ""
        seed = hashlib.sha256("\n".join((meta.uid, node, self._context.revisions.hash, before)).encode()).digest()
        names = (f"{meta.name}-{suffix(seed, attempt)}" for attempt in count())
        name = next(name for name in names if name not in self._named and name not in taken)
        self._named.add(name)
        return name
