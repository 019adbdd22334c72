"""Check the last tokens of the subjects of pods: owner, bucket and trait."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus.affiliation import (
    BUCKETS,
    Affiliation,
    Outline,
    affiliation_of,
    bucket_of,
    buckets_of,
    key_hash,
    outline,
    owner_token,
    token_of,
)
from tests.testkit.documents import Json

KRUISE, APPS = "apps.kruise.io/v1beta1", "apps/v1"
GATE: Json = {"readinessGates": [{"conditionType": "KruisePodReady"}]}


def owner(kind: str, api_version: str, name: str = "web", *, controller: bool = True) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": controller}


def pod(*owners: Json, annotations: dict[str, str] | None = None, **spec: Any) -> bytes:
    meta = {"name": "web-x", "namespace": "shop", "ownerReferences": owners, "annotations": annotations or {}}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def with_env(*names: str) -> Json:
    """Return a spec whose second container has these variables."""
    return {"containers": [{"name": "main"}, {"name": "x", "env": [{"name": name, "value": "1"} for name in names]}]}


def affiliation(raw: bytes) -> Affiliation:
    """Return whose the pod is: to the watcher, which reads an outline, and to a service the same."""
    found = affiliation_of(outline(raw))
    assert affiliation_of(msgspec.json.decode(raw, type=Pod)) == found
    return found


@pytest.mark.parametrize(
    ("raw", "token"),
    [
        pytest.param(pod(owner("CloneSet", KRUISE)), "CloneSet_apps_kruise_io", id="a CloneSet"),
        pytest.param(
            pod(owner("CloneSet", "apps.kruise.io/v1alpha1")), "CloneSet_apps_kruise_io", id="another version"
        ),
        pytest.param(pod(owner("ReplicaSet", APPS)), "ReplicaSet_apps", id="a ReplicaSet"),
        pytest.param(pod(owner("Node", "v1")), "Node", id="the core group"),
        pytest.param(pod(owner("Odd.Kind", "x.io/v1")), "other", id="a kind that is no token"),
        pytest.param(pod(owner("K>", "x.io/v1")), "other", id="a wildcard"),
        pytest.param(pod(owner("", "")), "other", id="no kind"),
        pytest.param(pod(owner("K" * 200, "x.io/v1")), "other", id="a long kind"),
        pytest.param(pod(), "-", id="no owner"),
        pytest.param(pod(owner("CloneSet", KRUISE, controller=False)), "-", id="an owner that is no controller"),
        pytest.param(
            pod(owner("Job", "batch/v1", controller=False), owner("ReplicaSet", APPS)),
            "ReplicaSet_apps",
            id="the controller among owners",
        ),
    ],
)
def test_the_owner_is_the_kind_of_the_controller(raw: bytes, token: str) -> None:
    found = affiliation(raw)
    assert (found.owner, found.trait) == (token, "-")
    assert found.bucket == ("-" if token == "-" else bucket_of("shop", "web"))


@pytest.mark.parametrize(
    ("resource", "token"),
    [(CLONE_SET, "CloneSet_apps_kruise_io"), (POD, "Pod"), (NODE, "Node")],
    ids=lambda one: getattr(one, "plural", ""),
)
def test_the_token_of_a_resource_is_that_of_its_kind(resource: Resource, token: str) -> None:
    assert token_of(resource) == token == owner_token(resource.kind, resource.group)


@pytest.mark.parametrize(
    ("raw", "trait"),
    [
        pytest.param(pod(), "-", id="a pod without owner"),
        pytest.param(pod(owner("ReplicaSet", APPS), **with_env("PATH")), "-", id="other variables"),
        pytest.param(
            pod(annotations={"kruise.io/sidecarset-injected-list": "log"}), "sidecars", id="injected sidecars"
        ),
        pytest.param(pod(annotations={"kruise.io/sidecarset-injected-list": ""}), "-", id="an empty list of sidecars"),
        pytest.param(pod(**with_env("A", "KRUISE_CONTAINER_BARRIER")), "sidecars", id="ordered containers"),
        pytest.param(
            pod(owner("Job", "batch/v1"), **with_env("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT")),
            "sidecars",
            id="a sidecar that ends with its job",
        ),
        pytest.param(
            pod(owner("Job", "batch/v1"), **with_env("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE")),
            "sidecars",
            id="a sidecar that ends by its image",
        ),
        pytest.param(pod(**GATE), "sidecars", id="the gate without an owner"),
        pytest.param(pod(owner("ReplicaSet", APPS), **GATE), "sidecars", id="the gate, and a foreign owner"),
        pytest.param(
            pod(owner("StatefulSet", APPS), **GATE), "sidecars", id="the gate, and a StatefulSet of Kubernetes"
        ),
        pytest.param(pod(owner("CloneSet", KRUISE), **GATE), "-", id="the gate, and a CloneSet"),
        pytest.param(pod(owner("StatefulSet", KRUISE), **GATE), "-", id="the gate, and our StatefulSet"),
        pytest.param(pod(owner("DaemonSet", KRUISE), **GATE), "-", id="the gate, and our DaemonSet"),
        pytest.param(pod(owner("BroadcastJob", KRUISE), **GATE), "-", id="the gate, and a BroadcastJob"),
        pytest.param(
            pod(owner("CloneSet", KRUISE, controller=False), **GATE), "sidecars", id="the gate, and no controller"
        ),
        pytest.param(
            pod(owner("CloneSet", KRUISE), annotations={"kruise.io/sidecarset-injected-list": "log"}, **GATE),
            "sidecars",
            id="a CloneSet with sidecars",
        ),
        pytest.param(pod(readinessGates=[{"conditionType": "other"}]), "-", id="another gate"),
    ],
)
def test_the_trait_of_pods_that_the_sidecar_service_works_on(raw: bytes, trait: str) -> None:
    assert affiliation(raw).trait == trait


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        pytest.param(b"{", Affiliation("-", "-", "-"), id="no JSON"),
        pytest.param(b'{"metadata":[]}', Affiliation("-", "-", "-"), id="no pod"),
        pytest.param(
            b'{"metadata":{"namespace":"shop","annotations":null,"ownerReferences":'
            b'[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","controller":true,"blockOwnerDeletion":null}]},'
            b'"spec":{"containers":[{"env":null}],"readinessGates":null}}',
            Affiliation("ReplicaSet_apps", bucket_of("shop", "web"), "-"),
            id="null members",
        ),
        pytest.param(b'{"metadata":null}', Affiliation("-", "-", "-"), id="no metadata"),
    ],
)
def test_the_outline_of_what_cannot_be_decoded_at_once(raw: bytes, wanted: Affiliation) -> None:
    assert affiliation_of(outline(raw)) == wanted
    assert affiliation_of(outline(msgspec.Raw(raw))) == wanted


def test_an_outline_of_nothing_is_empty() -> None:
    assert affiliation_of(Outline()) == Affiliation("-", "-", "-")


def test_buckets_are_the_same_in_every_release() -> None:
    """Subjects outlive the processes that made them."""
    assert [bucket_of("shop", name) for name in ("web", "db", "cache")] == ["51", "53", "52"]


@pytest.mark.parametrize(
    ("shards", "count", "buckets"),
    [
        pytest.param([0], 1, ["*"], id="the only shard"),
        pytest.param([0, 1, 2, 3], 4, ["*"], id="all shards"),
        pytest.param([2], 3, ["*"], id="a count that does not divide the buckets"),
        pytest.param([], 4, [], id="no shard"),
        pytest.param([], 3, [], id="no shard of such a count"),
        pytest.param([1], 64, ["1"], id="a bucket for each shard"),
        pytest.param([3], 32, ["3", "35"], id="two buckets for each shard"),
        pytest.param([1, 0], 32, ["0", "1", "32", "33"], id="two shards"),
        pytest.param([5], 128, ["*"], id="more shards than buckets"),
    ],
)
def test_the_buckets_of_shards(shards: list[int], count: int, buckets: list[str]) -> None:
    assert list(buckets_of(shards, count)) == buckets


@given(st.text("abc-", min_size=1), st.text("abc-.", min_size=1), st.integers(1, 130), st.data())
def test_a_replica_follows_the_buckets_of_its_owners(
    namespace: str, name: str, count: int, data: st.DataObject
) -> None:
    held = data.draw(st.sets(st.integers(0, count - 1)))
    followed = buckets_of(held, count)
    if key_hash(namespace, name) % count in held:
        assert "*" in followed or bucket_of(namespace, name) in followed
    elif BUCKETS % count == 0:
        assert bucket_of(namespace, name) not in followed
