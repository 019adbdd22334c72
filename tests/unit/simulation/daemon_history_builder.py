"""Hand-made histories of a DaemonSet `web` on nodes `n1`, `n2`, …, as `history_builder.py` makes them of a CloneSet.

history = DaemonHistoryBuilder(maxUnavailable=1)
history.pods("n1-a", "n2-a")              # on their nodes
history.node("n2", "NoExecute")
history.delete("n2-a")
"""

from typing import Any

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.resources import NODE, POD
from tests.unit.simulation.history_builder import OWNER, US, HistoryBuilder, Json

POOL = "pool"


class DaemonHistoryBuilder(HistoryBuilder):
    """A history of a DaemonSet on three nodes of pool `web`, which its pods require."""

    kind = DAEMON_SET
    owner: Json = OWNER | {"kind": DAEMON_SET.kind}

    def __init__(self, *, top: Json | None = None, **rolling: Any) -> None:
        template = {"spec": {"nodeSelector": {POOL: "web"}}}
        super().__init__(top={"template": template, **(top or {})}, **rolling)
        for name in ("n1", "n2", "n3"):
            self.node(name)

    def node(self, name: str, *effects: str, pool: str = "web", after: float = 1.0, **labels: str) -> None:
        """Write a node with one taint per effect."""
        taints = [{"key": "dedicated", "effect": effect} for effect in effects]
        body: Json = {"metadata": {"labels": {POOL: pool, **labels}}, "spec": {"taints": taints}}
        self.put(NODE, name, body, by="user", after=after)

    def pod(self, name: str, *, by: str = US, after: float = 1.0, **change: Any) -> None:
        """Write a pod `n1-a`: on node `n1`, of revision `web-a`."""
        node, _, letter = name.partition("-")
        spec = {"nodeName": node, **change.get("spec", {})}
        super().pod(name, by=by, after=after, **{"state": "", "revision": f"web-{letter[0]}", **change, "spec": spec})

    def pods(self, *names: str, **change: Any) -> None:
        """Create pods correctly and make them ready."""
        for name in names:
            self.lease(after=0.1)
            self.pod(name, after=0.1, **{**change, "ready": False})
            self.pod(name, by="kubelet", after=0.1, **change)

    def gone(self, *names: str, **change: Any) -> None:
        """Delete pods and remove them."""
        for name in names:
            self.delete(name, **change)
            self.remove(POD, name, by="kubelet")
