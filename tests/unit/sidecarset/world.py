"""A tiny world for plans of one SidecarSet, its pods and revisions."""

from collections import Counter

import msgspec

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.control.plan import Action, Patch, Plan
from flotilla_common.model.kubelet import is_ready
from flotilla_sidecar.sidecarset.plan import plan
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot
from tests.testkit import world
from tests.unit.sidecarset.build import NOW, Builder


class World(world.World):
    """One SidecarSet, its pods and revisions. Writes are counted by verb and kind."""

    def __init__(self, builder: Builder, pods: list[Pod]) -> None:
        super().__init__(NOW)
        self.refused: set[str] = set()  # pods changed by others since the snapshot
        self.writes: Counter[str] = Counter()
        self.most_down = 0
        self.change(builder)
        for pod in pods:
            self.objects["Pod"][pod.metadata.name] = msgspec.json.decode(msgspec.json.encode(pod))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return matched, updated, ready, updatedReady of the status."""
        status = self.objects["SidecarSet"]["side"]["status"]
        names = ("matchedPods", "updatedPods", "readyPods", "updatedReadyPods")
        matched, updated, ready, both = (status.get(name, 0) for name in names)
        return matched, updated, ready, both

    def change(self, builder: Builder) -> None:
        """Apply another spec as a user."""
        held = self.objects["SidecarSet"].get("side", {})
        document = builder.document()
        document["status"] = held.get("status", {})
        document["metadata"]["generation"] = held.get("metadata", {}).get("generation", 0) + 1
        self.objects["SidecarSet"]["side"] = document
        self.touch(document)

    def images(self, container: str = "proxy") -> list[str]:
        return [one["image"] for pod in self.pods for one in pod["spec"]["containers"] if one["name"] == container]

    def planned(self) -> Plan:
        snapshot = SidecarSetSnapshot(
            sidecar_set=self.view("SidecarSet", SidecarSet)[0],
            pods=self.view("Pod", Pod),
            revisions=self.view("ControllerRevision", ControllerRevision),
        )
        return plan(snapshot, self.now)

    def wrote(self, action: Action) -> bool:
        part = f" {action.subresource}" if isinstance(action, Patch) and action.subresource else ""
        self.writes[f"{action.verb}{part} {action.resource.kind}"] += 1
        is_versioned = not isinstance(action, Patch) or action.after_previous or action.resource_version
        assert is_versioned, "every patch holds for one version only"
        return action.resource.kind != "Pod" or action.name not in self.refused

    def tick(self) -> None:
        super().tick()
        self.most_down = max(self.most_down, len(self.down()))

    def down(self) -> set[str]:
        """Return the names of the pods that are not ready."""
        return {name for name, pod in self.objects["Pod"].items() if not is_ready(pod)}
