"""Deletion protection on a real apiserver: every native kind, and deletions without a named object.

The single rules are in tests/unit/webhook/test_protection.py; here it counts that the apiserver calls, for which kinds,
and the text that users see. Numbers are those of the worked examples in deletionprotection.md §7.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from flotilla_common.api.resources import CLAIM
from tests.support.webhook import Running, cloneset, eventually, webhook
from tests.testkit.documents import typed

LABEL = "policy.kruise.io/delete-protection"
FORBIDDEN = "denied the request: forbidden by ResourcesProtectionDeletion for"
ALWAYS = f"{FORBIDDEN} {LABEL}=Always"
CASCADING = f"{FORBIDDEN} {LABEL}=Cascading and"
WEBHOOKS = {
    "Deployment": "vbuiltindeployment.kb.io",
    "ReplicaSet": "vbuiltinreplicaset.kb.io",
    "StatefulSet": "vbuiltinstatefulset.kb.io",
    "Service": "vservice.kb.io",
    "Ingress": "vingress.kb.io",
}
WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet")

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with webhook(tmp_path_factory.mktemp("webhook")) as here:
        yield here


def labelled(kind: str, name: str, label: str, **spec: Any) -> dict[str, Any]:
    """Return an object of a native kind that carries the label."""
    match kind:
        case "Service":
            version, fields = "v1", {"ports": [{"port": 80}]}
        case "Ingress":
            backend = {"service": {"name": "web", "port": {"number": 80}}}
            version, fields = "networking.k8s.io/v1", {"defaultBackend": backend}
        case _:
            containers = [{"name": "main", "image": "nginx:alpine"}]
            template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
            version, fields = "apps/v1", {"selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "default", "labels": {LABEL: label}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": fields | spec}


async def unlabel(running: Running, kind: str, name: str) -> None:
    await running.kubectl("label", kind, name, f"{LABEL}-")


@pytest.mark.parametrize("kind", WEBHOOKS)
async def test_always(running: Running, kind: str) -> None:
    await running.apply(labelled(kind, "always", "Always"))
    for arguments in ((), ("--cascade=orphan",), ("--cascade=foreground",), ("--force",), ("--dry-run=server",)):
        refused = await running.refused("delete", kind, "always", *arguments)
        assert f'admission webhook "{WEBHOOKS[kind]}" {ALWAYS}' in refused
    await unlabel(running, kind, "always")
    await running.kubectl("delete", kind, "always")


@pytest.mark.parametrize("kind", WORKLOADS)
async def test_cascading_asks_for_the_replicas(running: Running, kind: str) -> None:
    await running.apply(labelled(kind, "cascading", "Cascading", replicas=2))
    assert f"{CASCADING} replicas 2>0" in await running.refused("delete", kind, "cascading")
    await running.kubectl("scale", kind, "cascading", "--replicas=0")
    await running.kubectl("delete", kind, "cascading")


@pytest.mark.parametrize("kind", ["Service", "Ingress"])
async def test_17_cascading_means_nothing_without_replicas(running: Running, kind: str) -> None:
    await running.apply(labelled(kind, "lone", "Cascading"))
    await running.kubectl("delete", kind, "lone")


async def test_21_other_values_protect_nothing(running: Running) -> None:
    await running.apply(labelled("StatefulSet", "lower", "always", replicas=1))
    await running.kubectl("delete", "statefulset", "lower")


async def test_other_kinds_are_not_covered(running: Running) -> None:
    await running.apply(labelled("DaemonSet", "uncovered", "Always"))
    await running.kubectl("delete", "daemonset", "uncovered")
    await running.kubectl("create", "configmap", "uncovered")
    await running.kubectl("label", "configmap", "uncovered", f"{LABEL}=Always")
    await running.kubectl("delete", "configmap", "uncovered")


async def test_12_a_cloneset_is_kept_and_the_refusal_recorded(running: Running) -> None:
    await running.apply(cloneset("kept", replicas=2))
    await running.kubectl("label", "clone", "kept", f"{LABEL}=Cascading")
    assert f"{CASCADING} replicas 2>0" in await running.refused("delete", "clone", "kept")
    line = json.loads(running.protection_log.read_text(encoding="utf-8").splitlines()[-1])
    assert line.pop("UserAgent")
    assert line == {"Event": "DeletionProtection", "Kind": "CloneSet", "Namespace": "default", "Name": "kept"}
    await running.kubectl("scale", "clone", "kept", "--replicas=0")
    await running.kubectl("delete", "clone", "kept")


async def test_22_a_deletion_of_all_asks_for_each(running: Running) -> None:
    for name, label in (("first", "Cascading"), ("second", "Always")):
        await running.apply(cloneset(name, replicas=1))
        await running.kubectl("label", "clone", name, f"{LABEL}={label}", "together=yes")
    collection = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets?labelSelector=together%3Dyes"
    assert FORBIDDEN in await running.refused("delete", "--raw", collection)
    left = await running.read("clone", "-l", "together=yes")
    assert [item["metadata"]["name"] for item in left["items"]] == ["first", "second"]
    await running.kubectl("label", "clone", "-l", "together=yes", f"{LABEL}-")
    await running.kubectl("delete", "--raw", collection)


async def test_16_the_garbage_collector_is_refused_as_well(running: Running) -> None:
    await running.kubectl("create", "deployment", "owner", "--image=nginx:alpine")

    async def owned() -> bool:
        return bool((await running.read("replicaset", "-l", "app=owner"))["items"])

    await eventually(owned)
    await running.kubectl("label", "replicaset", "-l", "app=owner", f"{LABEL}=Always")
    lines = running.protection_log.read_text(encoding="utf-8").count('"ReplicaSet"')
    await running.kubectl("delete", "deployment", "owner")

    async def refused_again_and_again() -> bool:
        return running.protection_log.read_text(encoding="utf-8").count('"ReplicaSet"') >= lines + 2

    await eventually(refused_again_and_again)
    assert await owned()
    await running.kubectl("label", "replicaset", "-l", "app=owner", f"{LABEL}-")

    async def collected() -> bool:
        return not await owned()

    await eventually(collected)


async def test_24_what_is_being_deleted_may_be_deleted(running: Running) -> None:
    deployment = labelled("Deployment", "going", "Always")
    deployment["metadata"] |= {"labels": {}, "finalizers": ["example.com/hold"]}
    await running.apply(deployment)
    await running.kubectl("delete", "deployment", "going", "--wait=false")
    await running.kubectl("label", "deployment", "going", f"{LABEL}=Always")
    await running.kubectl("delete", "deployment", "going", "--wait=false")
    await running.kubectl("patch", "deployment", "going", "-p", '{"metadata":{"finalizers":null}}')
    await running.kubectl("wait", "--for=delete", "deployment/going", "--timeout=60s")


async def test_2_a_namespace_with_active_pods(running: Running) -> None:
    await running.kubectl("create", "namespace", "guarded")
    await running.kubectl("label", "namespace", "guarded", f"{LABEL}=Cascading")
    await running.kubectl("run", "alive", "-n", "guarded", "--image=nginx:alpine")
    assert f"{CASCADING} active pods 1>0" in await running.refused("delete", "namespace", "guarded", "--dry-run=server")
    await running.kubectl("delete", "pod", "alive", "-n", "guarded", "--now")
    await running.kubectl("delete", "namespace", "guarded", "--wait=false")


async def test_4_a_namespace_with_a_bound_claim(running: Running) -> None:
    await running.kubectl("create", "namespace", "storing")
    await running.kubectl("label", "namespace", "storing", f"{LABEL}=Cascading")
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    size = {"storage": "1Gi"}
    volume = {"capacity": size, "hostPath": {"path": "/data"}, **shared}
    claim = {"resources": {"requests": size}, "volumeName": "disk", **shared}
    await running.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": volume})
    await running.apply(typed(CLAIM, "data", "storing", spec=claim))
    await running.kubectl("wait", "-n", "storing", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=60s")
    assert f'{CASCADING} "Bound" status pvc 1>0' in await running.refused("delete", "namespace", "storing")
    await running.kubectl("delete", "pvc", "data", "-n", "storing")
    await running.kubectl("delete", "namespace", "storing", "--wait=false")


async def test_8_a_definition_with_objects(running: Running) -> None:
    await running.apply(cloneset("counted"))
    await running.kubectl("label", "crd", "clonesets.apps.kruise.io", f"{LABEL}=Cascading")
    assert f"{CASCADING} active CRs" in await running.refused("delete", "crd", "clonesets.apps.kruise.io")
    await running.kubectl("label", "crd", "clonesets.apps.kruise.io", f"{LABEL}-")
