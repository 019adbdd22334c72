"""A tiny world for plans: executes actions on documents in memory by the rules of the apiserver.

Between passes a second passes, in which kubelets do one thing to each pod.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.meta import rfc3339
from flotilla_common.control.plan import Action, Chain, Create, Delete, Patch, Plan
from flotilla_common.model import kubelet
from flotilla_common.model.kubelet import statuses_of
from flotilla_common.model.store import spec_of
from flotilla_common.model.writes import patched
from tests.testkit.documents import Json, decoded


class World(ABC):
    """Objects by kind and name. Tests may change them, and `touch` them then."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.version = 100
        self.objects: dict[str, dict[str, Json]] = defaultdict(dict)
        self.broken: set[str] = set()  # images that run and never become ready
        self.last = Plan()
        self._typed: dict[tuple[str, str, str], Any] = {}

    @property
    def pods(self) -> list[Json]:
        return list(self.objects["Pod"].values())

    @abstractmethod
    def planned(self) -> Plan:
        """Return the planner's present plan."""

    @abstractmethod
    def wrote(self, action: Action) -> bool:
        """Count a write that is about to be made. False: it is refused."""

    def reconcile(self) -> Plan:
        """Plan and execute all of it. A write after the status requires the version that the status write returned."""
        self.last = made = self.planned()
        assert made == self.planned(), "the same snapshot gives the same plan"
        for stage in made.stages if made.status is not None else (*made.stages, *made.after_status):
            for chain in stage.chains:
                self._do_chain(chain)
        if made.status is not None:
            self._do(made.status, "")
        return made

    def tick(self, only: Collection[str] | None = None) -> None:
        """Let a second pass: pods (those in `only`) get nodes, start, and restart changed containers."""
        self.now += timedelta(seconds=1)
        for name, pod in list(self.objects["Pod"].items()):
            after = pod if only is not None and name not in only else self._lived(pod)
            if after != pod:
                self.objects["Pod"][name] = after
                self.touch(after)

    def settle(self, passes: int = 200) -> None:
        """Run passes and ticks until nothing changes any more."""
        for _ in range(passes):
            before = self.version
            self.reconcile()
            self.tick()
            if self.version == before:
                return
        raise AssertionError(f"never settles: {self.last.reasons}")

    def view(self, kind: str, model: Any) -> list[Any]:
        """Return the objects of a kind as planners see them."""
        views: list[Any] = []
        for name, doc in self.objects[kind].items():
            key = (kind, name, doc["metadata"]["resourceVersion"])
            if key not in self._typed:
                self._typed[key] = decoded(doc, model)
            views.append(self._typed[key])
        return views

    def touch(self, doc: Json) -> str:
        """Give the object the next version, because it changed."""
        self.version += 1
        doc["metadata"]["resourceVersion"] = str(self.version)
        return str(self.version)

    def _do_chain(self, chain: Chain) -> None:
        previous = ""
        for action in chain:
            previous = self._do(action, previous)
            if not previous:
                return

    def _do(self, action: Action, previous: str) -> str:
        """Return the version after the write; empty if it is refused."""
        kind, held = action.resource.kind, self.objects[action.resource.kind].get(action.name)
        if not self.wrote(action):
            return ""
        if isinstance(action, Create):
            assert held is None, f"{action.name} exists"
            return self._create(action)
        assert held is not None, f"{action.name} does not exist"
        meta = held["metadata"]
        assert action.uid in ("", meta["uid"])
        assert action.resource_version in ("", meta["resourceVersion"]), f"{action.cause}: {meta['resourceVersion']}"
        if isinstance(action, Delete):
            del self.objects[kind][action.name]
            self.version += 1
            return "gone"
        assert not action.after_previous or previous == meta["resourceVersion"]
        return self._patch(action, held)

    def _create(self, action: Create) -> str:
        doc: Json = msgspec.json.decode(msgspec.json.encode(action.body))
        assert doc["metadata"]["name"] == action.name
        doc["metadata"] |= {"uid": f"uid-{action.name}-{self.version}", "creationTimestamp": rfc3339(self.now)}
        if action.resource.kind == "Pod":
            doc["status"] = {"phase": "Pending"}
        self.objects[action.resource.kind][action.name] = doc
        return self.touch(doc)

    def _patch(self, action: Patch, held: Json) -> str:
        doc = patched(held, action)
        if doc == held:
            return str(held["metadata"]["resourceVersion"])
        if "generation" in held["metadata"] and spec_of(doc) != spec_of(held):
            doc["metadata"]["generation"] += 1
        self.objects[action.resource.kind][action.name] = doc
        return self.touch(doc)

    def _lived(self, pod: Json) -> Json:
        """Return the pod a second later."""
        told = statuses_of(pod)
        if kubelet.has_ended(pod):
            return pod
        if not pod["spec"].get("nodeName"):
            return kubelet.scheduled(pod, "node-1", self.now)
        if not told:
            return self._failing(kubelet.started(pod, self.now))
        images = {one["name"]: one["image"] for one in pod["spec"]["containers"]}
        down = [name for name, one in told.items() if "waiting" in one.get("state", {})]
        changed = [name for name, one in told.items() if name not in down and one["image"] != images[name]]
        if changed:
            return kubelet.stopped(pod, dict.fromkeys(changed, 0), self.now)
        return self._failing(kubelet.restarted(pod, down, self.now) if down else pod)

    def _failing(self, pod: Json) -> Json:
        """Return the pod with each container ready whose image is not broken."""
        told = [one | {"ready": one["image"] not in self.broken} for one in statuses_of(pod).values()]
        return kubelet.observed(pod | {"status": pod["status"] | {"containerStatuses": told}}, self.now)
