"""Objects for tests of actions."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import REVISION, Resource
from flotilla_console.actions.kinds import KINDS, ActionKind
from flotilla_console.model.sight import Sight, Workload

Json = dict[str, Any]
UID = "11111111-2222-3333-4444-555555555555"
TEMPLATE: Json = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"new": "yes"}},
    "spec": {"containers": [{"name": "main", "image": "web:2", "env": [{"name": "A", "value": "1"}]}]},
}
OLD: Json = {
    "metadata": {"labels": {"app": "web"}, "creationTimestamp": None},
    "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    "$patch": "replace",
}


def kind_of(plural: str, group: str = "apps.kruise.io") -> ActionKind:
    return KINDS[group, plural]


def workload(kind: ActionKind, spec: Json | None = None, **metadata: Any) -> Json:
    """Return an object of the kind as the apiserver has it."""
    named = {"name": "web", "namespace": "shop", "uid": UID, "generation": 3, "resourceVersion": "7", **metadata}
    parts: Json = {"replicas": 2, "template": TEMPLATE} if spec is None else spec
    return {**kind.resource.type_meta, "metadata": named, "spec": parts}


def revision(name: str, number: int, template: Json, owner: str = UID) -> Json:
    owners = [{"uid": owner, "controller": True, "kind": "CloneSet", "name": "web", "apiVersion": "x/v1"}]
    return {
        **REVISION.type_meta,
        "metadata": {"name": name, "namespace": "shop", "ownerReferences": owners},
        "revision": number,
        "data": {"spec": {"template": template}},
    }


def pod(name: str, uid: str = "") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="shop", uid=uid or f"uid-{name}"))


class FakeSight(Sight):
    """Sees one workload and its pods. `denied`: verbs that the user may not use."""

    def __init__(self, pods: Sequence[Pod] = (), *, exists: bool = True, denied: frozenset[str] = frozenset()) -> None:
        self._pods, self._exists, self._denied = pods, exists, denied

    def may(self, verb: str, resource: Resource, namespace: str, subresource: str = "") -> bool:
        return verb not in self._denied

    def workload(self, group: str, plural: str, namespace: str, name: str) -> Workload | None:
        return cast("Workload", object()) if self._exists else None  # nothing of it is read

    def pods_of(self, workload: Workload) -> Sequence[Pod]:
        return self._pods


def params(kind: ActionKind, verb: str) -> Mapping[str, str]:
    """Return the parameters of the path of an action."""
    place = {"group": kind.resource.group or "core", "plural": kind.resource.plural}
    return {**place, "namespace": "shop", "name": "web", "verb": verb}
