"""Hand-made histories of a StatefulSet `web`, as `history_builder.py` makes them of a CloneSet.

history = SetHistoryBuilder(replicas=3)
history.pods("web-0", "web-1", "web-2")
history.spec(replicas=2)
history.delete("web-2")
"""

from typing import Any

from flotilla_common.api import keys
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import CLAIM
from tests.unit.simulation.history_builder import OWNER, HistoryBuilder, Json


class SetHistoryBuilder(HistoryBuilder):
    """A history of an ordered StatefulSet, or with `ordered=False` a parallel one; `claims` is its retention policy."""

    kind = STATEFUL_SET
    owner: Json = OWNER | {"kind": STATEFUL_SET.kind}

    def __init__(
        self,
        *,
        replicas: int = 3,
        ordered: bool = True,
        claims: Json | None = None,
        top: Json | None = None,
        **rolling: Any,
    ) -> None:
        more: Json = {"podManagementPolicy": "OrderedReady" if ordered else "Parallel", **(top or {})}
        if claims is not None:
            more["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
            more["persistentVolumeClaimRetentionPolicy"] = claims
        super().__init__(replicas=replicas, top=more, **rolling)

    def pod(self, name: str, *, by: str = "cloneset-0", after: float = 1.0, **change: Any) -> None:
        """Write a version of a pod with its identity labels, which `labels` overrides."""
        labels = {keys.POD_NAME_LABEL: name, keys.POD_INDEX_LABEL: name.rpartition("-")[2]}
        super().pod(name, by=by, after=after, **{**change, "labels": labels | change.get("labels", {})})

    def pods(self, *names: str, **change: Any) -> None:
        """Create pods correctly and make them ready."""
        for name in names:
            self.lease(after=0.1)
            self.pod(name, after=0.1, ready=False, **change)
            self.pod(name, by="kubelet", after=0.1, **change)

    def uid_of(self, pod: str) -> str:
        """Return the uid of the newest pod of a name."""
        return next(one.uid for one in reversed(self.versions) if one.name == pod)

    def claim_of(self, pod: str, *owners: str, **change: Any) -> None:
        """Write the pod's claim, owned by `owners`: "pod", "set"."""
        known = {
            "set": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "uid": "u"},
            "pod": {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": self.uid_of(pod) if "pod" in owners else ""},
        }
        body: Json = {"metadata": {"ownerReferences": [known[owner] for owner in owners]}}
        self.put(CLAIM, f"data-{pod}", body, **change)
