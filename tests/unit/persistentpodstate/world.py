"""A small cluster around PersistentPodState `s`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    PersistentPodState,
    PersistentPodStateSpec,
    PodState,
)
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.clock import ManualClock
from flotilla_common.control.watches import Watch
from flotilla_common.model.store import place_of
from flotilla_statefulset.persistentpodstate.controller import BUILT_IN_SETS, CONTROLLER, SETS, STATES, Gatherer
from flotilla_statefulset.persistentpodstate.snapshot import StateSnapshot
from tests.support.controller_context import FakeContext
from tests.testkit import pods as pods_of
from tests.testkit.cluster import ControllerCluster
from tests.testkit.documents import Json, conditions, decoded, owner

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
O, H, Z = "kubernetes.io/os", "kubernetes.io/hostname", "zone"  # noqa: E741 - as the worked examples say it
AUTO = "kruise.io/auto-generate-persistent-pod-state"
REQUIRED = "kruise.io/required-persistent-topology"
PREFERRED = "kruise.io/preferred-persistent-topology"
ASKS = {AUTO: "true", REQUIRED: O, PREFERRED: H}
APPS, OURS = "apps/v1", "apps.kruise.io/v1beta1"
SUPPORTED: dict[str, Watch[Any]] = {APPS: BUILT_IN_SETS, OURS: SETS}


class World(ControllerCluster[StateSnapshot, Gatherer]):
    """Everything is in namespace `n`; the workload is `s`, its pods `s-0`, `s-1`, …, each on the node of its number."""

    def __init__(self, *, gates: str = "", nodes: int = 6) -> None:
        super().__init__(CONTROLLER, "s", namespace="n", clock=ManualClock(NOW), context=FakeContext(gates=gates))
        for number in range(nodes):
            self.node(f"node-{number}")

    def workload(
        self, replicas: int, annotations: Mapping[str, str] | None = None, *, api: str = APPS, **more: Any
    ) -> None:
        """Store workload `s`; `uid` and `deletionTimestamp` go into its metadata, the rest into its spec."""
        own = {key: more.pop(key) for key in ("uid", "deletionTimestamp") if key in more}
        meta = {"name": "s", "annotations": dict(ASKS if annotations is None else annotations)} | own
        self.put(SUPPORTED[api].resource, {"metadata": meta, "spec": {"replicas": replicas, **more}})

    def no_workload(self, *, api: str = APPS, known: bool = True) -> None:
        """Remove the workload from the mirror; `known`: from the apiserver, too."""
        if known:
            self.vanish(SUPPORTED[api].resource, "s")
        else:
            self.context.table(SUPPORTED[api]).remove("n", "s")

    def pod(self, ordinal: int, *, on: str = "", ready: bool = True, api: str = APPS, **meta: Any) -> None:
        """Store pod `s-<ordinal>`."""
        owners = [owner("StatefulSet", "s", self.uid(api), api)]
        document = pods_of.pod(
            f"s-{ordinal}",
            "n",
            ownerReferences=owners,
            node=on or f"node-{ordinal}",
            phase="Running",
            conditions=conditions({"Ready": ready}),
            **meta,
        )
        self.put(POD, document)

    def pods(self, *ordinals: int, api: str = APPS) -> None:
        for ordinal in ordinals:
            self.pod(ordinal, api=api)

    def no_pod(self, *ordinals: int) -> None:
        for ordinal in ordinals:
            self.vanish(POD, f"s-{ordinal}")

    def uid(self, api: str) -> str:
        return str(self.held(SUPPORTED[api].resource, "s")["metadata"]["uid"])

    def node(self, name: str, **labels: str) -> None:
        found = labels or {O: "linux", H: name, Z: f"zone-{name[-1]}"}
        self.put(NODE, {"metadata": {"name": name, "labels": found}})

    def by_hand(self, name: str = "s", *, api: str = APPS, target: str = "s", **spec: Any) -> None:
        """Create a PersistentPodState as a user."""
        reference = {"apiVersion": api, "kind": "StatefulSet", "name": target}
        given = spec or {"requiredPersistentTopology": {"keys": [O]}}
        self.put(
            PERSISTENT_POD_STATE,
            {"metadata": {"name": name, "generation": 1}, "spec": {"targetRef": reference, **given}},
        )

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

    async def run(self) -> list[str]:
        """Plan and write until nothing is left to do, questions included; return the codes of the last reasons."""
        for _ in range(10):
            made = self.reconcile()
            self.wait(1)  # the model derives uids from names and times
            answered = len(self.context.replanned)
            await self.context.work()
            if not made.stages and made.status is None and len(self.context.replanned) == answered:
                return [f"{reason.state} {reason.code}" for reason in made.reasons]
        raise AssertionError(f"never settles: {self.plan()}")

    def _follow(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        super()._follow(resource, before, after)
        if after is not None:
            self.context.server[resource, *place_of(after)] = decoded(after, self._watches[resource].type)
        elif before is not None:
            self.context.server.pop((resource, *place_of(before)), None)
