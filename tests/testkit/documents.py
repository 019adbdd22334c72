"""Raw JSON documents, and the parts that objects of all kinds have."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.resources import Resource

T = TypeVar("T")


def decoded(document: object, kind: type[T]) -> T:
    """Return the document as a struct of this kind, by way of JSON: datetimes in it become strings and back."""
    return msgspec.json.decode(msgspec.json.encode(document), type=kind)


def present(**members: Any) -> Json:
    """Return the members that are neither None nor empty."""
    return {name: value for name, value in members.items() if value is not None and value not in ({}, [], (), "")}


def metadata(
    name: str,
    namespace: str = "",
    /,
    *,
    uid: str = "",
    version: int | str = "",
    created: object = None,
    deleted: object = None,
    **more: Any,
) -> Json:
    """Return the metadata of an object; empty members are left out.

    `more`: labels, annotations, ownerReferences … Members under their own names replace arguments.
    """
    known = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(version)}
    times = {"creationTimestamp": created, "deletionTimestamp": deleted}
    return present(**known | times | more)


def typed(
    resource: Resource,
    name: str,
    namespace: str = "",
    /,
    *,
    spec: object = None,
    status: object = None,
    data: object = None,
    **meta: Any,
) -> Json:
    """Return an object of this resource; `meta` are arguments of `metadata` (uid, labels)."""
    members = {"spec": spec, "status": status, "data": data}
    given = {member: value for member, value in members.items() if value is not None}
    return {**resource.type_meta, "metadata": metadata(name, namespace, **meta), **given}


def owner(kind: str, name: str, uid: str, api_version: str = "apps.kruise.io/v1beta1", **more: Any) -> Json:
    """Return the reference to an object that controls others."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True} | more


def owned_by(resource: Resource, name: str, uid: str, **more: Any) -> Json:
    """Return the reference to an object of this resource that controls others."""
    return {**resource.type_meta, "name": name, "uid": uid, "controller": True} | more


def conditions(values: Mapping[str, bool | str], since: object = None) -> list[Json]:
    """Return conditions by type and status; `since` is the time of the last transition of them all."""
    moment = {} if since is None else {"lastTransitionTime": since}
    return [{"type": kind, "status": str(value)} | moment for kind, value in values.items()]
