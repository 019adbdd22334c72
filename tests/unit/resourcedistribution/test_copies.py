"""Copies as they are written (resourcedistribution.md §5.4), and those that OpenKruise has left."""

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Namespace
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION, ResourceDistribution
from flotilla_common.api.meta import ObjectMeta, OwnerReference
from flotilla_common.control.plan import Create, PatchType
from flotilla_sidecar.resourcedistribution.copies import Copy, creation, hash_of, is_ours, removal, update
from flotilla_sidecar.resourcedistribution.plan import plan
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot
from tests.testkit.documents import decoded, owned_by
from tests.unit.workload import openkruise

NOW = datetime(2021, 9, 6, 8, 44, 52, 786_140, tzinfo=UTC)
VECTOR = (
    b'{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap",'
    b'"metadata":{"labels":{"from":"rd"},"name":"shared-config"}}'
)
HASH = "12a348fe84f85a67bf5b545aecc87a697cb296347a0c95b66e43487fbd23b2f7"
OURS = owned_by(RESOURCE_DISTRIBUTION, "r", "u-r", blockOwnerDeletion=True)


def distribution(resource: bytes) -> ResourceDistribution:
    """Return a ResourceDistribution as the apiserver shows it."""
    body = b'{"metadata":{"name":"r","uid":"u-r"},"spec":{"resource":' + resource + b',"targets":{}}}'
    return msgspec.json.decode(body, type=ResourceDistribution)


def written(resource: dict[str, Any], now: datetime = NOW) -> dict[str, Any]:
    """Return the body of a new copy in `a`."""
    return creation(distribution(json.dumps(resource).encode()), "a", now).body


def copy(*owners: OwnerReference, finalizers: tuple[str, ...] = ()) -> Copy:
    meta = ObjectMeta(
        name="s",
        namespace="a",
        uid="u-copy",
        resource_version="7",
        owner_references=list(owners),
        finalizers=list(finalizers),
    )
    return Copy(metadata=meta)


@pytest.mark.parametrize(
    "resource",
    [
        pytest.param(VECTOR, id="vector"),
        pytest.param(
            b'{"metadata":{"creationTimestamp":null},"data":{"a":"\\u003c\\u0026\\u003e\\u2028"}}', id="escapes"
        ),
        pytest.param(b'{"numbers":[1,1.5,1e+21,-0]}', id="numbers"),
    ],
)
def test_the_hash_is_of_the_bytes_as_they_are_shown(resource: bytes) -> None:
    assert hash_of(distribution(resource).spec.resource) == hashlib.sha256(resource).hexdigest()
    assert hash_of(VECTOR) == HASH


def test_a_new_copy() -> None:
    made = creation(distribution(VECTOR), "a", NOW)
    assert (made.resource.kind, made.namespace, made.name) == ("ConfigMap", "a", "shared-config")
    assert made.phase == "CreateResourceFailed a"
    assert made.body == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"k": "v"},
        "metadata": {
            "name": "shared-config",
            "namespace": "a",
            "labels": {"from": "rd"},
            "annotations": {
                "kruise.io/resourcedistribution.resource.from": "r",
                "kruise.io/resourcedistribution.resource.hashcode": HASH,
                "kruise.io/resourcedistribution.resource.distributed.timestamp": "2021-09-06 08:44:52.78614 +0000 UTC",
            },
            "ownerReferences": [OURS],
        },
    }


@pytest.mark.parametrize(
    ("now", "text"),
    [
        pytest.param(NOW.replace(microsecond=0), "2021-09-06 08:44:52 +0000 UTC", id="whole seconds"),
        pytest.param(NOW.replace(second=0, microsecond=100), "2021-09-06 08:44:00.0001 +0000 UTC", id="zeros"),
        pytest.param(
            NOW.astimezone(timezone(timedelta(hours=2))), "2021-09-06 08:44:52.78614 +0000 UTC", id="another zone"
        ),
    ],
)
def test_the_time_in_gos_own_form(now: datetime, text: str) -> None:
    annotations = written({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, now)["metadata"][
        "annotations"
    ]
    assert annotations["kruise.io/resourcedistribution.resource.distributed.timestamp"] == text


def test_the_source_is_copied_as_it_is_but_for_what_the_apiserver_gives() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-o"}
    metadata = {
        "name": "s",
        "namespace": "z",
        "creationTimestamp": None,
        "resourceVersion": "3",
        "finalizers": ["f/x"],
        "annotations": {"mine": "x", "kruise.io/resourcedistribution.resource.from": "else"},
        "ownerReferences": [OURS | {"controller": False}, other],
    }
    resource = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "stringData": {"a": "b"},
        "status": {"x": 1},
    }
    body = written(resource)
    assert {key: body[key] for key in body if key != "metadata"} == {
        "apiVersion": "v1",
        "kind": "Secret",
        "stringData": {"a": "b"},
    }
    meta = body["metadata"]
    assert meta.keys() == {"name", "namespace", "annotations", "ownerReferences", "finalizers"}
    assert (meta["namespace"], meta["finalizers"], meta["ownerReferences"]) == ("a", ["f/x"], [other, OURS])
    assert (meta["annotations"]["mine"], meta["annotations"]["kruise.io/resourcedistribution.resource.from"]) == (
        "x",
        "r",
    )


def test_an_update_is_of_the_version_that_was_looked_at() -> None:
    patch = update(distribution(VECTOR), copy(finalizers=("held/x",)), {"data": {"k": "v", "x": None}}, NOW)
    assert (patch.uid, patch.resource_version, patch.patch_type) == ("u-copy", "7", PatchType.MERGE)
    assert (patch.namespace, patch.name, patch.phase) == ("a", "s", "UpdateResourceFailed a")
    assert patch.body["data"] == {"k": "v", "x": None}
    meta = patch.body["metadata"]
    assert meta.keys() == {"labels", "annotations", "finalizers", "ownerReferences"}
    assert (meta["labels"], meta["finalizers"], meta["ownerReferences"]) == ({"from": "rd"}, ["held/x"], [OURS])


def test_a_deletion_is_of_the_version_that_was_looked_at() -> None:
    gone = removal(distribution(VECTOR), copy())
    assert (gone.uid, gone.resource_version, gone.phase) == ("u-copy", "7", "DeleteResourceFailed a")


def owner(**members: Any) -> OwnerReference:
    return msgspec.structs.replace(msgspec.convert(OURS, OwnerReference), **members)


@pytest.mark.parametrize(
    ("owners", "ours"),
    [
        pytest.param((owner(),), True, id="ours"),
        pytest.param((owner(api_version="apps.kruise.io/v1alpha1"),), True, id="in an older version"),
        pytest.param((owner(uid="u-o"),), False, id="of a namesake"),
        pytest.param((owner(controller=False),), False, id="not as its controller"),
        pytest.param((owner(uid="u-o"), owner(controller=False)), False, id="beside another controller"),
        pytest.param((owner(uid=""),), True, id="by name, without a uid"),
        pytest.param((owner(uid="", name="o"),), False, id="by another name, without a uid"),
        pytest.param((owner(uid="", kind="ConfigMap"),), False, id="of another kind, without a uid"),
        pytest.param((), False, id="nobody's"),
    ],
)
def test_whose_an_object_is(owners: tuple[OwnerReference, ...], ours: bool) -> None:
    assert is_ours(copy(*owners), distribution(VECTOR)) is ours


def golden() -> DistributionSnapshot:
    """Return the snapshot of OpenKruise's objects: `rd`, its namespaces and their copies."""
    (found,) = openkruise.documents("resourcedistributions")
    copies = [msgspec.convert(one, Copy) for one in openkruise.documents("configmaps")]
    namespaces = ("golden", "golden-b", "default", "kube-system")
    return DistributionSnapshot(
        distribution=decoded(found, ResourceDistribution),
        namespaces={name: Namespace(metadata=ObjectMeta(name=name)) for name in namespaces},
        copies={one.metadata.namespace: one for one in copies},
    )


def test_what_openkruise_has_left_stays_as_it_is() -> None:
    made = plan(golden(), NOW)
    assert (made.stages, made.status) == ((), None)
    assert [reason.code for reason in made.reasons] == ["Distributed"]


def test_openkruise_would_have_made_the_same_copies() -> None:
    snapshot = golden()
    made = plan(msgspec.structs.replace(snapshot, copies={}), NOW)
    bodies = {
        action.namespace: action.body
        for stage in made.stages
        for chain in stage.chains
        for action in chain
        if isinstance(action, Create)
    }
    for found in openkruise.documents("configmaps"):
        body = bodies.pop(found["metadata"]["namespace"])
        body["metadata"]["annotations"].pop("kruise.io/resourcedistribution.resource.distributed.timestamp")
        for given in ("uid", "resourceVersion", "creationTimestamp"):
            found["metadata"].pop(given)
        assert body == found
    assert bodies == {}
