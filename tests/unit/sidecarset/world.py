"""A tiny world for plans of one SidecarSet: applies their writes to pods, and plays kubelets between passes.

A kubelet needs a pass of its own to stop a container whose image changed, and one more to start it. Images named in
`broken` never become ready.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.control.plan import Action, Create, Delete, Patch, PatchType, Plan
from flotilla_common.model import patches, strategic
from flotilla_sidecar.sidecarset.plan import plan
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot
from tests.unit.sidecarset.build import NOW, Builder, Doc


class World:
    """One SidecarSet, its pods and revisions."""

    def __init__(self, builder: Builder, pods: list[Pod]) -> None:
        self.now: datetime = NOW
        self.version = 100
        self.broken: set[str] = set()
        self.refused: set[str] = set()  # pods that somebody else changed after the pass has looked
        self.writes: Counter[str] = Counter()
        self.most_down = 0
        self.last = Plan()
        self.objects: dict[str, dict[str, Doc]] = {"Pod": {}, "ControllerRevision": {}, "SidecarSet": {}}
        self.change(builder)
        for pod in pods:
            self.objects["Pod"][pod.metadata.name] = msgspec.to_builtins(pod, str_keys=True)

    @property
    def pods(self) -> list[Doc]:
        return list(self.objects["Pod"].values())

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """matched, updated, ready, updatedReady of the status."""
        status = self.objects["SidecarSet"]["side"]["status"]
        names = ("matchedPods", "updatedPods", "readyPods", "updatedReadyPods")
        matched, updated, ready, both = (status.get(name, 0) for name in names)
        return matched, updated, ready, both

    def change(self, builder: Builder) -> None:
        """The user applies another spec."""
        held = self.objects["SidecarSet"].get("side", {})
        document = builder.document()
        document["status"] = held.get("status", {})
        document["metadata"]["generation"] = held.get("metadata", {}).get("generation", 0) + 1
        self.objects["SidecarSet"]["side"] = document
        self._touch(document)

    def images(self, container: str = "proxy") -> list[str]:
        return [one["image"] for pod in self.pods for one in pod["spec"]["containers"] if one["name"] == container]

    def reconcile(self) -> Plan:
        """One pass: plan, then do all of it."""
        snapshot = SidecarSetSnapshot(
            sidecar_set=self._view("SidecarSet", SidecarSet)[0],
            pods=self._view("Pod", Pod),
            revisions=self._view("ControllerRevision", ControllerRevision),
        )
        self.last = plan(snapshot, self.now)
        assert self.last == plan(snapshot, self.now), "the same snapshot gives the same plan"
        for stage in self.last.stages:
            for chain in stage.chains:
                previous = ""
                for action in chain:
                    previous = self._do(action, previous)
                    if not previous:
                        break
        if self.last.status is not None:
            self._do(self.last.status, "")
        return self.last

    def tick(self) -> None:
        """A second passes: kubelets stop and start containers whose images changed."""
        self.now += timedelta(seconds=1)
        for pod in self.pods:
            before = msgspec.json.encode(pod)
            self._live(pod)
            if msgspec.json.encode(pod) != before:
                self._touch(pod)
        self.most_down = max(self.most_down, len(self.down()))

    def down(self) -> set[str]:
        """The names of the pods that are not ready."""
        return {name for name, pod in self.objects["Pod"].items() if not is_ready(pod)}

    def settle(self, passes: int = 60) -> None:
        """Passes and ticks until nothing changes any more."""
        for _ in range(passes):
            before = msgspec.json.encode(self.objects)
            self.reconcile()
            self.tick()
            if msgspec.json.encode(self.objects) == before:
                return
        raise AssertionError(f"never settles: {self.last.reasons}")

    def _view(self, kind: str, model: Any) -> list[Any]:
        return [msgspec.json.decode(msgspec.json.encode(doc), type=model) for doc in self.objects[kind].values()]

    def _do(self, action: Action, previous: str) -> str:
        kind, name = action.resource.kind, action.name
        suffix = f" {action.subresource}" if isinstance(action, Patch) and action.subresource else ""
        self.writes[f"{action.verb}{suffix} {kind}"] += 1
        if kind == "Pod" and name in self.refused:
            return ""
        match action:
            case Create():
                assert name not in self.objects[kind], f"{name} exists"
                document = msgspec.json.decode(msgspec.json.encode(action.body))
                document["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": self.now.isoformat()}
                self.objects[kind][name] = document
                return self._touch(document)
            case Delete():
                assert action.uid == self.objects[kind].pop(name)["metadata"]["uid"]
                return "gone"
            case Patch():
                return self._patch(kind, action, previous)

    def _patch(self, kind: str, action: Patch, previous: str) -> str:
        held = self.objects[kind][action.name]
        wanted = previous if action.after_previous else action.resource_version
        assert wanted, "every patch holds for one version only"
        assert wanted == held["metadata"]["resourceVersion"]
        merge = strategic.merge if action.patch_type is PatchType.STRATEGIC else patches.merge
        document = merge(held, msgspec.json.decode(msgspec.json.encode(action.body)))
        self.objects[kind][action.name] = document
        return held["metadata"]["resourceVersion"] if document == held else self._touch(document)

    def _touch(self, document: Doc) -> str:
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        return str(self.version)

    def _live(self, pod: Doc) -> None:
        images = {one["name"]: one["image"] for one in pod["spec"]["containers"]}
        for status in pod["status"]["containerStatuses"]:
            wanted = images[status["name"]]
            if status["image"] == wanted:
                status["ready"] = wanted not in self.broken
            elif status.get("ready"):
                status["ready"] = False  # it is being stopped
            else:
                status |= {"image": wanted, "imageID": f"id-{wanted}", "ready": wanted not in self.broken}
        ready = all(status.get("ready", False) for status in pod["status"]["containerStatuses"])
        for condition in pod["status"]["conditions"]:
            if condition["type"] == "Ready" and condition["status"] != str(ready):
                condition |= {"status": str(ready), "lastTransitionTime": self.now.isoformat()}


def is_ready(pod: Doc) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"]["conditions"])
