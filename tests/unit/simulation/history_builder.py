"""Hand-made histories for the oracles: a CloneSet `web`, its pods, claims, revisions and lease, changed line by line.

history = HistoryBuilder(replicas=3, maxUnavailable=1)
history.pods("a", "b", "c")
history.delete("a")                       # by the controller, unless `by` says otherwise
assert history.breaches() == []
"""

from datetime import UTC, datetime
from typing import Any

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CLAIM, LEASE, POD, REVISION, Resource
from tests.simulation.history import Version
from tests.simulation.oracles.checker import check_history

Json = dict[str, Any]
EPOCH = datetime(2026, 3, 1, tzinfo=UTC)
US = "cloneset-0"
OWNER = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u", "controller": True}
STATE = "lifecycle.apps.kruise.io/state"
INSTANCE = "apps.kruise.io/cloneset-instance-id"


class HistoryBuilder:
    """A history in the making; a second passes before each change."""

    kind = CLONE_SET
    owner: Json = OWNER

    def __init__(self, *, replicas: int = 3, top: Json | None = None, **rolling: Any) -> None:
        self.versions: list[Version] = []
        self.at = 0.0
        self._stored: dict[tuple[Resource, str], Json] = {}
        self.lease()
        rolling = {"podUpdatePolicy": "InPlaceIfPossible"} | rolling
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            **(top or {}),
        }
        self.put(self.kind, "web", {"spec": spec, "status": {"currentRevision": "web-1"}}, by="user", uid="u")

    def breaches(self, lag: float = 0.05) -> list[str]:
        """Return the breaches that the oracles find."""
        return [str(breach) for breach in check_history(self.versions, epoch=EPOCH, lag=lag)]

    def put(
        self, resource: Resource, name: str, body: Json, *, by: str = US, after: float = 1.0, uid: str = ""
    ) -> None:
        """Create or replace an object, `after` seconds later."""
        self.at += after
        before = self._stored.get((resource, name))
        held = before["metadata"] if before else {"uid": uid or f"{resource.plural}-{name}-{len(self.versions)}"}
        metadata = {"name": name, "namespace": "n", "uid": held["uid"], **body.get("metadata", {})}
        document = {**body, "metadata": metadata}
        self._stored[(resource, name)] = document
        self._commit(by, "update" if before else "create", resource, name, before, document)

    def remove(self, resource: Resource, name: str, *, by: str = US, after: float = 1.0) -> None:
        """Remove an object at once."""
        self.at += after
        self._commit(by, "delete", resource, name, self._stored.pop((resource, name)), None)

    def pod(self, name: str, *, by: str = US, after: float = 1.0, **change: Any) -> None:
        """Write a version of a pod.

        `change` has `image`, `ready`, `gate`, `state`, `revision`, `instance`, `labels`, `runs`, `owners`, `metadata`,
        `spec`, `phase`, `since`, and `containers`, the status of ContainersReady (absent without it).
        """
        image = change.get("image", "one")
        conditions = [
            {"type": "Ready", "status": str(change.get("ready", True)), "lastTransitionTime": change.get("since")},
            {"type": "InPlaceUpdateReady", "status": change.get("gate", "True")},
        ]
        if "containers" in change:
            conditions.append({"type": "ContainersReady", "status": str(change["containers"])})
        labels = {
            "app": "web",
            INSTANCE: change.get("instance", name),
            STATE: change.get("state", "Normal"),
            "controller-revision-hash": change.get("revision", "web-1"),
        }
        owners = change.get("owners", [self.owner])
        metadata = {"labels": labels | change.get("labels", {}), "ownerReferences": owners}
        body: Json = {
            "metadata": metadata | change.get("metadata", {}),
            "spec": {
                "hostname": name,
                "containers": [{"name": "main", "image": image}],
                "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                **change.get("spec", {}),
            },
            "status": {
                "phase": change.get("phase", "Running"),
                "conditions": conditions,
                "containerStatuses": [{"name": "main", "image": change.get("runs", image)}],
            },
        }
        self.put(POD, name, body, by=by, after=after)

    def pods(self, *names: str, **change: Any) -> None:
        """Create pods correctly and make them ready."""
        for name in names:
            self.lease(after=0.1)
            self.pod(name, after=0.1, ready=False, **{**change, "state": "PreparingNormal"})
            self.pod(name, by="kubelet", after=0.1, **change)

    def delete(self, name: str, *, by: str = US, after: float = 1.0) -> None:
        """Begin the deletion of a pod."""
        document = self._stored[(POD, name)]
        metadata = document["metadata"] | {"deletionTimestamp": "2026-03-01T00:00:00Z"}
        self.put(POD, name, {**document, "metadata": metadata}, by=by, after=after)

    def spec(self, *, after: float = 1.0, status: Json | None = None, **rolling: Any) -> None:
        """Change the spec as the user: `replicas`, or members of the rolling update."""
        document = self._stored[(self.kind, "web")]
        spec: Json = document["spec"]
        replicas = rolling.pop("replicas", spec["replicas"])
        strategy = {"type": "RollingUpdate", "rollingUpdate": spec["updateStrategy"]["rollingUpdate"] | rolling}
        body = {**document, "spec": {**spec, "replicas": replicas, "updateStrategy": strategy}}
        self.put(self.kind, "web", body | ({"status": status} if status else {}), by="user", after=after)

    def end(self, *, after: float = 1.0) -> None:
        """Delete the workload as the user, in the foreground."""
        document = self._stored[(self.kind, "web")]
        metadata = document["metadata"] | {"deletionTimestamp": "2026-03-01T00:00:00Z"}
        self.put(self.kind, "web", {**document, "metadata": metadata}, by="user", after=after)

    def claim(self, instance: str, **change: Any) -> None:
        """Write the claim of an instance."""
        metadata = {"labels": {INSTANCE: instance}, "ownerReferences": [OWNER]}
        self.put(CLAIM, f"data-{instance}", {"metadata": metadata}, **change)

    def revision(self, name: str, number: int, template: str, **change: Any) -> None:
        """Write a ControllerRevision."""
        body = {"metadata": {"ownerReferences": [self.owner]}, "revision": number, "data": {"spec": template}}
        self.put(REVISION, name, body, **change)

    def lease(self, holder: str = "cloneset-0-1", *, after: float = 0.0) -> None:
        """Acquire or renew the shard's lease."""
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 60}
        self.put(LEASE, "flotilla-cloneset-0", {"spec": spec}, by=US, after=after)

    def _commit(
        self, by: str, verb: str, resource: Resource, name: str, before: Json | None, after: Json | None
    ) -> None:
        self.versions.append(
            Version(
                at=self.at,
                writer=by,
                verb=verb,
                resource=resource,
                namespace="n",
                name=name,
                before=before,
                after=after,
                revision=len(self.versions) + 1,
            )
        )
