"""A small cluster around PersistentPodState `s`: the controller's gatherer and planner over plain tables.

Writes happen as by the apiserver.
"""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.persistentpodstate.types import PersistentPodState, PersistentPodStateSpec, PodState
from flotilla_common.api.kinds.statefulset.types import StatefulSet
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from flotilla_common.control.watches import Watch
from flotilla_common.model.store import spec_of
from flotilla_common.model.writes import patched
from flotilla_statefulset.persistentpodstate.controller import BUILT_IN_SETS, CONTROLLER, NODES, PODS, SETS, STATES
from flotilla_statefulset.persistentpodstate.plan import plan
from flotilla_statefulset.persistentpodstate.snapshot import BuiltInStatefulSet
from tests.support.controller_context import FakeContext
from tests.testkit.documents import Json

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
O, H, Z = "kubernetes.io/os", "kubernetes.io/hostname", "zone"  # noqa: E741 - as the worked examples say it
AUTO = "kruise.io/auto-generate-persistent-pod-state"
REQUIRED = "kruise.io/required-persistent-topology"
PREFERRED = "kruise.io/preferred-persistent-topology"
ASKS = {AUTO: "true", REQUIRED: O, PREFERRED: H}
APPS, OURS = "apps/v1", "apps.kruise.io/v1beta1"
SUPPORTED: dict[str, tuple[Watch[Any], type[Any]]] = {
    APPS: (BUILT_IN_SETS, BuiltInStatefulSet),
    OURS: (SETS, StatefulSet),
}


class World:
    """Everything is in namespace `n`; the workload is `s`, its pods `s-0`, `s-1`, …, each on the node of its number."""

    def __init__(self, *, gates: str = "", nodes: int = 6) -> None:
        self.context = FakeContext(gates=gates)
        self.gatherer = self.context.build(CONTROLLER)
        self._versions = itertools.count(1)
        self._documents: dict[tuple[str, str], Json] = {}
        for number in range(nodes):
            self.node(f"node-{number}")

    def put(self, watch: Watch[Any], kind: type[Any], document: Json) -> Any:
        meta = document.setdefault("metadata", {})
        meta["resourceVersion"] = str(next(self._versions))
        meta.setdefault("uid", f"{watch.resource.id}-{meta['name']}")
        obj = msgspec.convert(document, kind)
        self.context.put(watch, obj)
        self.context.server[watch.resource, meta.get("namespace", ""), meta["name"]] = obj
        self._documents[watch.resource.id, meta["name"]] = document
        return obj

    def workload(
        self, replicas: int, annotations: Mapping[str, str] | None = None, *, api: str = APPS, **more: Any
    ) -> None:
        """Store workload `s`; `uid` and `deletionTimestamp` go into its metadata, the rest into its spec."""
        meta: Json = {"name": "s", "namespace": "n", "annotations": dict(ASKS if annotations is None else annotations)}
        for key in ("uid", "deletionTimestamp"):
            if key in more:
                meta[key] = more.pop(key)
        watch, kind = SUPPORTED[api]
        self.put(watch, kind, {"metadata": meta, "spec": {"replicas": replicas, **more}})

    def no_workload(self, *, api: str = APPS, known: bool = True) -> None:
        """Remove the workload from the mirror; `known`: from the apiserver, too."""
        watch, _ = SUPPORTED[api]
        self.context.table(watch).remove("n", "s")
        if known:
            self.context.server.pop((watch.resource, "n", "s"), None)

    def pod(self, ordinal: int, *, on: str = "", ready: bool = True, api: str = APPS, **meta: Any) -> None:
        """Store pod `s-<ordinal>`."""
        held = self.context.table(PODS).get("n", f"s-{ordinal}")
        uid = held.metadata.uid if held is not None else f"pod-{next(self._versions)}"
        owner = {"apiVersion": api, "kind": "StatefulSet", "name": "s", "uid": self.uid(api), "controller": True}
        document: Json = {
            "metadata": {"name": f"s-{ordinal}", "namespace": "n", "uid": uid, "ownerReferences": [owner], **meta},
            "spec": {"nodeName": on or f"node-{ordinal}"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
        }
        self.put(PODS, Pod, document)

    def pods(self, *ordinals: int, api: str = APPS) -> None:
        for ordinal in ordinals:
            self.pod(ordinal, api=api)

    def no_pod(self, *ordinals: int) -> None:
        for ordinal in ordinals:
            self.context.table(PODS).remove("n", f"s-{ordinal}")

    def uid(self, api: str) -> str:
        held = self.context.table(SUPPORTED[api][0]).get("n", "s")
        return held.metadata.uid if held is not None else f"{SUPPORTED[api][0].resource.id}-s"

    def node(self, name: str, **labels: str) -> None:
        found = labels or {O: "linux", H: name, Z: f"zone-{name[-1]}"}
        self.put(NODES, Node, {"metadata": {"name": name, "labels": found}})

    def by_hand(self, name: str = "s", *, api: str = APPS, target: str = "s", **spec: Any) -> None:
        """Create a PersistentPodState as a user."""
        reference = {"apiVersion": api, "kind": "StatefulSet", "name": target}
        given = spec or {"requiredPersistentTopology": {"keys": [O]}}
        metadata = {"name": name, "namespace": "n", "generation": 1}
        self.put(STATES, PersistentPodState, {"metadata": metadata, "spec": {"targetRef": reference, **given}})

    def edit(self, **spec: Any) -> None:
        """Change its spec as a user."""
        document = self._documents[STATES.resource.id, "s"]
        document = merge(document, {"spec": spec, "metadata": {"generation": document["metadata"]["generation"] + 1}})
        self.put(STATES, PersistentPodState, document)

    @property
    def state(self) -> PersistentPodState | None:
        return self.context.table(STATES).get("n", "s")

    @property
    def spec(self) -> PersistentPodStateSpec:
        assert self.state is not None
        return self.state.spec

    @property
    def records(self) -> dict[str, PodState]:
        assert self.state is not None
        return self.state.status.pod_states

    def plan(self) -> Plan:
        snapshot = self.gatherer.gather(("n", "s"), Memory())
        return Plan() if snapshot is None else plan(snapshot, NOW)

    async def settle(self) -> list[str]:
        """Plan and write until nothing is left to do; the codes of the last reasons."""
        for _ in range(10):
            made = self.plan()
            actions = made.actions
            actions += [made.status] if made.status is not None else []
            for action in actions:
                self._apply(action)
            answered = len(self.context.replanned)
            await self.context.work()
            if not actions and len(self.context.replanned) == answered:
                return [f"{reason.state} {reason.code}" for reason in made.reasons]
        raise AssertionError(f"never settles: {self.plan()}")

    def _apply(self, action: Action) -> None:
        key = (STATES.resource.id, action.name)
        match action:
            case Create():
                document = msgspec.json.decode(msgspec.json.encode(action.body))
                document["metadata"] |= {"generation": 1, "uid": f"uid-{next(self._versions)}"}
                self.put(STATES, PersistentPodState, document)
            case Patch():
                held = self._documents[key]
                assert not action.resource_version or action.resource_version == held["metadata"]["resourceVersion"]
                document = patched(held, action)
                document["metadata"]["generation"] += spec_of(document) != spec_of(held)
                self.put(STATES, PersistentPodState, document)
            case Delete():
                uid = self._documents.pop(key)["metadata"]["uid"]
                self.context.table(STATES).remove("n", action.name)
                assert uid == action.uid
