"""The pods that a BroadcastJob creates, as documents (broadcastjob.md §2.3, §4.4).

Names look random, and are derived from the node and from what was there before: a create that is repeated meets its own
pod, and a new pod is not taken for the one before it.
"""

import hashlib
from itertools import count

from flotilla_common.api.documents import mapping, sequence, strings
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, NAME_LABEL, UID_LABEL
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Json
from flotilla_common.workload.newpods import decode_template, wanted_gates, with_readiness_gates
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.placement import pinned
from flotilla_common.workload.podnames import suffix
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot


class PodFactory:
    """Makes the pods of a pass."""

    def __init__(self, snapshot: BroadcastJobSnapshot) -> None:
        self._snapshot = snapshot
        meta = snapshot.job.metadata
        template = decode_template(snapshot.job.spec.template)
        self._template = mapping(template.get("metadata"))
        gates = wanted_gates(snapshot.gates, meta.namespace, snapshot.options.system_namespace)
        self._spec = with_readiness_gates(mapping(template.get("spec")), gates)
        self.gated = bool(gates)  # they are ready only with a condition of ours
        self._labels = {**strings(self._template.get("labels")), NAME_LABEL: meta.name, UID_LABEL: meta.uid}
        self._named: set[str] = set()

    def pod(self, node: str) -> Json:
        """The body of a pod for the node."""
        meta = self._snapshot.job.metadata
        metadata: Json = {
            "name": self._name(node),
            "generateName": f"{meta.name}-",
            "namespace": meta.namespace,
            "labels": self._labels,
            "annotations": mapping(self._template.get("annotations")),
            "ownerReferences": [owner_reference(BROADCAST_JOB, meta)],
        }
        if self._template.get("finalizers"):
            metadata["finalizers"] = sequence(self._template["finalizers"])
        return {"apiVersion": POD.api_version, "kind": POD.kind, "metadata": metadata, "spec": self._for(node)}

    def _for(self, node: str) -> Json:
        if self._snapshot.options.assign_by_scheduler:
            return pinned(self._spec, node)
        return {**self._spec, "nodeName": node}

    def _name(self, node: str) -> str:
        """Determined by the node and its former pod."""
        meta, before = self._snapshot.job.metadata, self._snapshot.former_names.get(node, "")
        seed = hashlib.sha256("\n".join((meta.uid, node, before)).encode()).digest()
        names = (f"{meta.name}-{suffix(seed, attempt)}" for attempt in count())
        name = next(name for name in names if name not in self._named and name not in self._snapshot.taken_names)
        self._named.add(name)
        return name
