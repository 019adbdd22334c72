"""A tiny world of one CloneSet and its dependents."""

from collections import Counter, defaultdict
from copy import deepcopy

from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot
from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.control.plan import Action, Create, Patch, Plan
from flotilla_common.gates import Gates
from tests.testkit import world
from tests.testkit.documents import Json
from tests.unit.cloneset.build import NOW, CloneSetBuilder

__all__ = ["Json", "World", "is_available"]


class World(world.World):
    """One CloneSet and its dependents. Writes are counted per object."""

    def __init__(self, builder: CloneSetBuilder, *, gates: str = "", rollout: bool = False) -> None:
        super().__init__(NOW)
        self.gates = Gates.parse(gates)
        self.writes: dict[str, list[str]] = defaultdict(list)
        self.most_creates: int | None = None  # of pods in one pass; the others are lost
        self._creates = 0
        status = builder.status if rollout else {}
        document = {"metadata": builder.metadata, "spec": builder.spec, "status": status}
        self.objects["CloneSet"]["sample"] = deepcopy(document)

    @property
    def status(self) -> Json:
        return self.objects["CloneSet"]["sample"]["status"]

    def change(self, builder: CloneSetBuilder) -> None:
        """Apply another spec as a user."""
        stored = self.objects["CloneSet"]["sample"]
        stored["spec"] = deepcopy(builder.spec)
        stored["metadata"]["generation"] += 1
        self.touch(stored)

    def snapshot(self) -> CloneSetSnapshot:
        return CloneSetSnapshot(
            cloneset=self.view("CloneSet", CloneSet)[0],
            pods=[pod for pod in self.view("Pod", Pod) if pod.metadata.owner_references],
            claims=self.view("PersistentVolumeClaim", PersistentVolumeClaim),
            taken_names=frozenset(self.objects["Pod"]),
            revisions=self.view("ControllerRevision", ControllerRevision),
            gates=self.gates,
        )

    def planned(self) -> Plan:
        self._creates = 0
        made = plan(self.snapshot(), self.now)
        names = [chain[-1].name for stage in made.stages for chain in stage.chains]
        assert len(names) == len(set(names)), f"no object is planned twice in one pass: {names}"
        return made

    def wrote(self, action: Action) -> bool:
        if isinstance(action, Create) and action.resource.kind == "Pod" and self.most_creates is not None:
            self._creates += 1
            if self._creates > self.most_creates:
                return False
        part = f" {action.subresource}" if isinstance(action, Patch) and action.subresource else ""
        self.writes[f"{action.resource.kind}/{action.name}"].append(f"{action.verb}{part}")
        return True

    def available(self) -> int:
        return sum(is_available(pod) for pod in self.pods)

    def updated(self) -> int:
        return sum(
            pod["metadata"]["labels"]["controller-revision-hash"] == self.status["updateRevision"] for pod in self.pods
        )

    def write_counts(self) -> Counter[tuple[str, ...]]:
        """Count the sequences of writes on one pod."""
        return Counter(tuple(writes) for name, writes in self.writes.items() if name.startswith("Pod/"))


def is_available(pod: Json) -> bool:
    """Report whether a pod is available by cloneset.md §4.3, without the planner's help."""
    conditions = {item["type"]: item["status"] for item in pod["status"].get("conditions", [])}
    return (
        pod["metadata"]["labels"].get("lifecycle.apps.kruise.io/state", "") in ("", "Normal")
        and pod["status"].get("phase") == "Running"
        and conditions.get("Ready") == "True"
        and conditions.get("InPlaceUpdateReady", "True") == "True"
    )
