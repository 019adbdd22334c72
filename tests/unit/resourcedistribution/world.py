"""A small cluster around ResourceDistribution `r`: the controller's gatherer and planner over plain tables.

Writes happen as by the apiserver.
"""

import base64
import itertools
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.core import Namespace
from flotilla_common.api.documents import mapping, merge
from flotilla_common.api.kinds.resourcedistribution.types import (
    CONDITIONS,
    ResourceDistribution,
    ResourceDistributionStatus,
)
from flotilla_common.api.resources import CONFIG_MAP, SECRET, Resource
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from flotilla_common.model.writes import patched
from flotilla_sidecar.resourcedistribution.controller import CONTROLLER, COPIES, DISTRIBUTIONS, NAMESPACES
from flotilla_sidecar.resourcedistribution.copies import Copy
from flotilla_sidecar.resourcedistribution.plan import plan
from tests.support.controller_context import FakeContext
from tests.testkit.documents import Json, decoded

NOW = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
SYSTEM = ("kube-system", "kube-public")
GROUPS = {"a": "one", "b": "one", "c": "two", "d": ""}
"""The namespaces of the worked examples, by their label `group`."""

ALL = ("a", "b", "c", "d")


def secret(**members: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque", **members}


def names(*those: str) -> Json:
    return {"list": [{"name": name} for name in those]}


def group(value: str) -> Json:
    return {"matchLabels": {"group": value}}


class World:
    """Secrets and ConfigMaps by kind and namespace; all of them are called like the source."""

    def __init__(self) -> None:
        self.context = FakeContext()
        self.gatherer = self.context.build(CONTROLLER)
        self.now = NOW
        self.objects: dict[tuple[Resource, str], Json] = {}
        self.refusals: dict[tuple[str, str], str] = {}
        """The apiserver's refusals of writes, by verb and namespace."""
        self.writes: list[tuple[str, str]] = []
        """Verb and namespace, in order; those of the status not among them."""
        self.statuses = 0
        """Number of writes of the status."""
        self.memory = Memory()
        self._owed = False
        self._versions = itertools.count(1)
        self._document: Json = {}
        for name in SYSTEM:
            self.namespace(name)
        for name, label in GROUPS.items():
            self.namespace(name, group=label)

    def namespace(self, name: str, *, terminating: bool = False, **labels: str) -> None:
        known = {key: value for key, value in labels.items() if value}
        meta: Json = {"name": name, "uid": f"n-{name}", "labels": known, "resourceVersion": str(next(self._versions))}
        if terminating:
            meta["deletionTimestamp"] = "2026-03-01T12:00:00Z"
        self.context.put(NAMESPACES, msgspec.convert({"metadata": meta}, Namespace))

    def no_namespace(self, name: str) -> None:
        """Remove a namespace and everything in it."""
        for resource, where in [place for place in self.objects if place[1] == name]:
            self.remove(where, resource)
        self.context.table(NAMESPACES).remove("", name)

    def distribute(self, resource: Json | None = None, *, meta: Json | None = None, **targets: Any) -> None:
        """Create the ResourceDistribution, or change it to this."""
        held = self._document.get("metadata", {"name": "r", "uid": "u-r", "generation": 0})
        metadata = held | {"generation": held["generation"] + 1} | (meta or {})
        spec = {"resource": secret(data={"k": "djE="}) if resource is None else resource, "targets": targets}
        self._store(self._document | {"metadata": metadata, "spec": spec})

    def _store(self, document: Json) -> None:
        document["metadata"] = document["metadata"] | {"resourceVersion": str(next(self._versions))}
        self._document = document
        self.context.put(DISTRIBUTIONS, decoded(document, ResourceDistribution))

    def put(self, namespace: str, document: Json, **meta: Any) -> None:
        """Create or replace an object from outside."""
        resource = SECRET if document["kind"] == "Secret" else CONFIG_MAP
        held = self.objects.get((resource, namespace), {}).get("metadata", {"uid": f"u-{next(self._versions)}"})
        fresh = {"namespace": namespace, "resourceVersion": str(next(self._versions)), "uid": held["uid"]}
        stored = _as_stored(document) | {"metadata": document["metadata"] | fresh | meta}
        self.objects[resource, namespace] = stored
        self.context.put(COPIES[resource], decoded(stored, Copy))

    def edit(self, namespace: str, patch: Json, resource: Resource = SECRET) -> None:
        """Patch an object from outside."""
        self.put(namespace, merge(self.objects[resource, namespace], patch))

    def remove(self, namespace: str, resource: Resource = SECRET) -> None:
        """Delete an object from outside."""
        gone = self.objects.pop((resource, namespace))["metadata"]
        self.context.table(COPIES[resource]).remove(namespace, gone["name"], gone["uid"])

    def copies(self, resource: Resource = SECRET) -> list[str]:
        """Return the namespaces with an object that the ResourceDistribution controls."""
        return sorted(
            where
            for (kind, where), document in self.objects.items()
            if kind == resource and any(one["uid"] == "u-r" for one in document["metadata"].get("ownerReferences", []))
        )

    @property
    def status(self) -> ResourceDistributionStatus:
        held = self.context.table(DISTRIBUTIONS).get("", "r")
        assert held is not None
        return held.status

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return desired, succeeded, failed."""
        return self.status.desired, self.status.succeeded, self.status.failed

    @property
    def trouble(self) -> dict[int, list[str]]:
        """Return the conditions that are True, by their index, with their namespaces."""
        assert tuple(one.type for one in self.status.conditions) == CONDITIONS
        return {
            index: one.failed_namespaces for index, one in enumerate(self.status.conditions) if one.status == "True"
        }

    def plan(self) -> Plan:
        snapshot = self.gatherer.gather(("", "r"), self.memory)
        return Plan() if snapshot is None else plan(snapshot, self.now)

    def once(self) -> list[str]:
        """Run one pass with its writes; return the codes of its reasons.

        An urgent status that comes with writes is left to the next pass, which begins with it (see `StatusThrottle`).
        """
        made, failures = self.plan(), dict[str, str]()
        self.now += timedelta(seconds=1)
        early, self._owed = self._owed and made.status is not None, False
        if early:
            self._write_status(made)
        for action in made.actions:
            self.writes.append((action.verb, action.namespace))
            refusal = self.refusals.get((action.verb, action.namespace), "") or self._apply(action)
            if refusal:
                failures[action.phase] = refusal
        self.memory = Memory(failures=failures)
        if made.status is not None and not early:
            self._owed = bool(made.stages) and made.urgent_status
            if not self._owed:
                self._write_status(made)
        return [reason.code for reason in made.reasons]

    def settle(self) -> list[str]:
        """Run passes until nothing changes, apart from repeated refusals; return the codes of the last one."""
        for _ in range(40):
            before = (next(self._versions), self.memory)
            codes = self.once()
            if (next(self._versions) - 1, self.memory) == before and not self._owed:
                return codes
        raise AssertionError(f"never settles: {self.plan()}")

    def _write_status(self, made: Plan) -> None:
        assert made.status is not None
        self.statuses += 1
        self._store(patched(self._document, made.status))

    def _apply(self, action: Action) -> str:
        place = (action.resource, action.namespace)
        held = self.objects.get(place)
        match action:
            case Create():
                if held is not None:
                    return "already exists"
                self.put(action.namespace, msgspec.json.decode(msgspec.json.encode(action.body)))
            case Patch():
                assert held is not None
                assert (action.uid, action.resource_version) == _identity(held)
                if "type" in action.body:
                    return "type: field is immutable"
                if held.get("immutable"):
                    return "field is immutable when `immutable` is set"
                self.put(action.namespace, patched(held, action))
            case Delete():
                assert held is not None
                assert (action.uid, action.resource_version) == _identity(held)
                if held["metadata"].get("finalizers"):
                    self.edit(action.namespace, {"metadata": {"deletionTimestamp": "2026-03-01T12:00:00Z"}})
                else:
                    self.remove(action.namespace, action.resource)
        return ""


def _identity(document: Json) -> tuple[str, str]:
    return document["metadata"]["uid"], document["metadata"]["resourceVersion"]


def _as_stored(document: Json) -> Json:
    """Return a Secret as the apiserver stores it: with a type, without stringData, and base64 in one line."""
    if document["kind"] != "Secret":
        return document
    written = {key: base64.b64encode(value.encode()).decode() for key, value in _items(document, "stringData")}
    data = {key: value.replace("\n", "") for key, value in _items(document, "data")} | written
    rest = {key: value for key, value in document.items() if key not in ("stringData", "data")}
    return {"type": "Opaque"} | rest | ({"data": data} if data else {})


def _items(document: Json, member: str) -> Iterable[tuple[str, str]]:
    return mapping(document.get(member)).items()
