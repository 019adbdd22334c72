"""A tiny world for plans: applies their actions to objects in memory, and plays scheduler and kubelet between passes.

It knows just enough of the apiserver's rules to carry out what a plan may contain (merging of lists by key, versions,
preconditions), and it counts the writes per pod.
"""

from collections import Counter, defaultdict
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import msgspec

from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot
from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.control.plan import Action, Chain, Create, Delete, Patch, PatchType, Plan
from flotilla_common.gates import Gates
from tests.unit.cloneset.build import NOW, CloneSetBuilder

Doc = dict[str, Any]
_MERGE_KEYS = {"conditions": "type", "containers": "name"}
_TYPES: dict[str, Any] = {"Pod": Pod, "PersistentVolumeClaim": PersistentVolumeClaim, "CloneSet": CloneSet}


class World:
    """One CloneSet and its dependents."""

    def __init__(self, builder: CloneSetBuilder, *, gates: str = "", rollout: bool = False) -> None:
        self.now: datetime = NOW
        self.gates = Gates.parse(gates)
        self.version = 100
        self.objects: dict[str, dict[str, Doc]] = defaultdict(dict)
        self.typed: dict[tuple[str, str, str], Any] = {}
        self.writes: dict[str, list[str]] = defaultdict(list)
        self.broken: set[str] = set()  # images that never become ready
        self.most_creates: int | None = None  # of pods in one pass; the others are lost
        self.builder = builder
        self.last: Plan = Plan()
        status = {} if not rollout else builder.status
        self.objects["CloneSet"]["sample"] = {
            "metadata": dict(builder.metadata),
            "spec": deepcopy(builder.spec),
            "status": deepcopy(status),
        }

    @property
    def pods(self) -> list[Doc]:
        return list(self.objects["Pod"].values())

    @property
    def status(self) -> Doc:
        return self.objects["CloneSet"]["sample"]["status"]

    def change(self, builder: CloneSetBuilder) -> None:
        """The user applies another spec."""
        stored = self.objects["CloneSet"]["sample"]
        stored["spec"] = deepcopy(builder.spec)
        stored["metadata"]["generation"] += 1
        self.touch("CloneSet", stored)

    def snapshot(self) -> CloneSetSnapshot:
        return CloneSetSnapshot(
            cloneset=self._view("CloneSet", CloneSet)[0],
            pods=[pod for pod in self._view("Pod", Pod) if pod.metadata.owner_references],
            claims=self._view("PersistentVolumeClaim", PersistentVolumeClaim),
            taken_names=frozenset(self.objects["Pod"]),
            revisions=self._view("ControllerRevision", ControllerRevision),
            gates=self.gates,
        )

    def reconcile(self) -> Plan:
        """One pass: plan, then do all of it."""
        self.last = plan(self.snapshot(), self.now)
        assert self.last == plan(self.snapshot(), self.now), "the same snapshot gives the same plan"
        planned = [chain[-1].name for stage in self.last.stages for chain in stage.chains]
        assert len(planned) == len(set(planned)), f"no object is planned twice in one pass: {planned}"
        creates = 0
        for stage in self.last.stages:
            for chain in stage.chains:
                creates += isinstance(chain[-1], Create)
                if not isinstance(chain[-1], Create) or self.most_creates is None or creates <= self.most_creates:
                    self._do_chain(chain)
        if self.last.status is not None:
            self._do(self.last.status, "")
            return self.last  # a write after the status hangs on the version that the status has just changed
        for stage in self.last.after_status:
            for chain in stage.chains:
                self._do_chain(chain)
        return self.last

    def tick(self, only: set[str] | None = None) -> None:
        """A second passes: pods (those in `only`) get nodes, start, and restart changed containers."""
        self.now += timedelta(seconds=1)
        for name, pod in list(self.objects["Pod"].items()):
            if only is None or name in only:
                before = deepcopy(pod)
                self._live(pod)
                if pod != before:
                    self.touch("Pod", pod)

    def settle(self, passes: int = 200) -> None:
        """Passes and ticks until nothing changes any more."""
        for _ in range(passes):
            before = deepcopy(self.objects)
            self.reconcile()
            self.tick()
            if self.objects == before:
                return
        raise AssertionError(f"never settles: {self.last.reasons}")

    def available(self) -> int:
        return sum(is_available(pod) for pod in self.pods)

    def updated(self) -> int:
        return sum(
            pod["metadata"]["labels"]["controller-revision-hash"] == self.status["updateRevision"] for pod in self.pods
        )

    def write_counts(self) -> Counter[tuple[str, ...]]:
        """How often which sequence of writes was made on one pod."""
        return Counter(tuple(writes) for name, writes in self.writes.items() if name.startswith("Pod/"))

    def _view(self, kind: str, model: Any) -> list[Any]:
        views: list[Any] = []
        for name, doc in self.objects[kind].items():
            key = (kind, name, doc["metadata"]["resourceVersion"])
            if key not in self.typed:
                self.typed[key] = msgspec.json.decode(msgspec.json.encode(doc), type=model)
            views.append(self.typed[key])
        return views

    def _do_chain(self, chain: Chain) -> None:
        previous = ""
        for action in chain:
            previous = self._do(action, previous)

    def _do(self, action: Action, previous: str) -> str:
        kind = action.resource.kind
        verb = type(action).__name__.lower()
        if isinstance(action, Patch) and action.subresource:
            verb += f" {action.subresource}"
        self.writes[f"{kind}/{action.name}"].append(verb)
        match action:
            case Create():
                return self._create(kind, action)
            case Patch():
                return self._patch(kind, action, previous)
            case Delete():
                held = self.objects[kind].pop(action.name)
                self.version += 1
                assert action.uid == held["metadata"]["uid"]
                assert action.resource_version in ("", held["metadata"]["resourceVersion"])
                return ""

    def _create(self, kind: str, action: Create) -> str:
        assert action.name not in self.objects[kind], f"{action.name} exists"
        doc = deepcopy(action.body)
        assert doc["metadata"]["name"] == action.name
        doc["metadata"] |= {"uid": f"uid-{action.name}-{self.version}", "creationTimestamp": self.now.isoformat()}
        if kind == "Pod":
            doc["status"] = {"phase": "Pending"}
        self.objects[kind][action.name] = doc
        return self.touch(kind, doc)

    def _patch(self, kind: str, action: Patch, previous: str) -> str:
        doc = self.objects[kind][action.name]
        held = doc["metadata"]["resourceVersion"]
        assert action.uid in ("", doc["metadata"]["uid"])
        assert action.resource_version in ("", held), f"{action.cause}: {action.resource_version} is not {held}"
        assert not action.after_previous or previous == held
        _merge(doc, action.body, by_key=action.patch_type is PatchType.STRATEGIC)
        return self.touch(kind, doc)

    def touch(self, kind: str, doc: Doc) -> str:
        """The object has changed: it gets the next version."""
        self.version += 1
        doc["metadata"]["resourceVersion"] = str(self.version)
        return str(self.version)

    def _live(self, pod: Doc) -> None:
        spec, status = pod["spec"], pod["status"]
        if not spec.get("nodeName"):
            spec["nodeName"] = "node-1"
            return
        status["phase"] = "Running"
        held = {item["name"]: item for item in status.get("containerStatuses", [])}
        status["containerStatuses"] = [self._run(held.get(item["name"]), item) for item in spec["containers"]]
        running = all(item["ready"] for item in status["containerStatuses"])
        self._set(status, "ContainersReady", running)
        gates = {item["conditionType"] for item in spec.get("readinessGates", [])}
        passed = {item["type"] for item in status.get("conditions", []) if item["status"] == "True"}
        self._set(status, "Ready", running and gates <= passed)

    def _run(self, held: Doc | None, container: Doc) -> Doc:
        image = container["image"]
        fresh = {"name": container["name"], "image": image, "imageID": f"id-{image}", "containerID": f"c-{image}"}
        if held is None:
            return {**fresh, "ready": image not in self.broken, "restartCount": 0}
        if held["image"] != image:
            return {**fresh, "ready": False, "restartCount": held["restartCount"] + 1}
        return {**held, "ready": image not in self.broken}

    def _set(self, status: Doc, kind: str, value: bool) -> None:
        conditions = status.setdefault("conditions", [])
        held = next((item for item in conditions if item["type"] == kind), None)
        if held is None:
            conditions.append(held := {"type": kind})
        if held.get("status") != str(value):
            held |= {"status": str(value), "lastTransitionTime": self.now.isoformat()}


def is_available(pod: Doc) -> bool:
    """By the words of cloneset.md §4.3, without the planner's help."""
    conditions = {item["type"]: item["status"] for item in pod["status"].get("conditions", [])}
    return (
        pod["metadata"]["labels"].get("lifecycle.apps.kruise.io/state", "") in ("", "Normal")
        and pod["status"].get("phase") == "Running"
        and conditions.get("Ready") == "True"
        and conditions.get("InPlaceUpdateReady", "True") == "True"
    )


def _merge(target: Doc, patch: Doc, *, by_key: bool) -> None:
    for key, value in patch.items():
        held = target.get(key)
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(held, dict):
            _merge(held, value, by_key=by_key)
        elif by_key and isinstance(value, list) and key in _MERGE_KEYS:
            _merge_list(target.setdefault(key, []), value, _MERGE_KEYS[key])
        elif by_key and key == "finalizers":
            target[key] = list(dict.fromkeys([*(held or []), *value]))
        else:
            target[key] = deepcopy(_without_nulls(value))


def _merge_list(target: list[Doc], patch: list[Doc], key: str) -> None:
    for item in patch:
        held = next((entry for entry in target if entry[key] == item[key]), None)
        if held is None:
            target.append(deepcopy(_without_nulls(item)))
        else:
            _merge(held, item, by_key=True)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value
