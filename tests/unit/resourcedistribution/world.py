"""A small cluster around ResourceDistribution `r`."""

import base64
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from flotilla_common.api.documents import mapping, merge
from flotilla_common.api.kinds.resourcedistribution.types import (
    CONDITIONS,
    RESOURCE_DISTRIBUTION,
    ResourceDistributionStatus,
)
from flotilla_common.api.resources import CONFIG_MAP, NAMESPACE, SECRET, Resource
from flotilla_common.clock import ManualClock
from flotilla_common.control.plan import Action, Create, Outcome, OutcomeKind, Patch, Plan
from flotilla_common.model.store import owners_of
from flotilla_sidecar.resourcedistribution.controller import CONTROLLER, COPIES, DISTRIBUTIONS, Gatherer
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot
from tests.testkit.cluster import ControllerCluster
from tests.testkit.documents import Json, metadata

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


class World(ControllerCluster[DistributionSnapshot, Gatherer]):
    """Secrets and ConfigMaps by namespace; all of them have the name of the source, `s`."""

    def __init__(self) -> None:
        super().__init__(CONTROLLER, "r", namespace="", clock=ManualClock(NOW))
        self.refuse = self._refusal
        self.refusals: dict[tuple[str, str], str] = {}
        """The apiserver's refusals of writes, by verb and namespace."""
        self.tried: list[tuple[str, str]] = []
        """Verb and namespace of all writes, in order; those of the status not among them."""
        for name in SYSTEM:
            self.add_namespace(name)
        for name, label in GROUPS.items():
            self.add_namespace(name, group=label)

    def add_namespace(self, name: str, *, terminating: bool = False, **labels: str) -> None:
        known = {key: value for key, value in labels.items() if value}
        deleted = "2026-03-01T12:00:00Z" if terminating else None
        self.put(NAMESPACE, {"metadata": metadata(name, uid=f"n-{name}", labels=known, deleted=deleted)})

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace and everything in it."""
        for resource in COPIES:
            for document in self.objects.all(resource):
                if document["metadata"]["namespace"] == name:
                    self.objects.remove(resource, document)
        self.vanish(NAMESPACE, name)

    def distribute(self, resource: Json | None = None, *, meta: Json | None = None, **targets: Any) -> None:
        """Create the ResourceDistribution, or change it to this."""
        held = self.find(RESOURCE_DISTRIBUTION, "r") or {"metadata": {"name": "r", "uid": "u-r", "generation": 0}}
        changed = held["metadata"] | {"generation": held["metadata"]["generation"] + 1} | (meta or {})
        spec = {"resource": secret(data={"k": "djE="}) if resource is None else resource, "targets": targets}
        self.put(RESOURCE_DISTRIBUTION, held | {"metadata": changed, "spec": spec})

    def store(self, namespace: str, document: Json, **meta: Any) -> None:
        """Create or replace an object from outside."""
        resource = SECRET if document["kind"] == "Secret" else CONFIG_MAP
        named = document["metadata"] | {"namespace": namespace} | meta
        self.put(resource, _as_stored(document) | {"metadata": named})

    def edit_copy(self, namespace: str, patch: Json) -> None:
        """Patch a Secret from outside."""
        self.put(SECRET, merge(self.copy(namespace), patch))

    def remove_copy(self, namespace: str) -> None:
        """Delete a Secret from outside."""
        self.objects.remove(SECRET, self.copy(namespace))

    def copy(self, namespace: str) -> Json:
        """Return the Secret in this namespace."""
        found = self.objects.get(SECRET, namespace, "s")
        assert found is not None
        return found

    def copies(self) -> list[str]:
        """Return the namespaces with a Secret that the ResourceDistribution controls."""
        found = [one for one in self.objects.all(SECRET) if any(owner["uid"] == "u-r" for owner in owners_of(one))]
        return sorted(one["metadata"]["namespace"] for one in found)

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

    def once(self) -> list[str]:
        """Run one pass with its writes; return the codes of its reasons."""
        return [reason.code for reason in self.reconcile().reasons]

    def run(self) -> list[str]:
        """Run passes until nothing changes; return the codes of the last one."""
        return [reason.code for reason in self.settle().reasons]

    def reconcile(self, name: str = "") -> Plan:
        made = super().reconcile(name)
        self.wait(1)
        return made

    def answer(self, action: Action) -> Outcome:
        assert isinstance(action, Create) or (action.uid and action.resource_version)
        self.tried.append((action.verb, action.namespace))
        return super().answer(action)

    def admitted(self, resource: Resource, document: Json, old: Json | None) -> Json:
        return _as_stored(document)

    def _refusal(self, action: Action) -> Outcome | None:
        text = self.refusals.get((action.verb, action.namespace), "")
        if isinstance(action, Patch) and not text:
            held = self.objects.get(action.resource, action.namespace, action.name) or {}
            immutable = "field is immutable when `immutable` is set" if held.get("immutable") else ""
            text = "type: field is immutable" if "type" in action.body else immutable
        return Outcome(kind=OutcomeKind.INVALID, message=text) if text else None


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
