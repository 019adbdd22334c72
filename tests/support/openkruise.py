"""A cluster as OpenKruise leaves it: its CRDs, its objects in the middle of rollouts, and stand-ins for its processes.

The objects are golden ones, read from files. Loaded into another cluster they get other uids, so references are led
over to those; generations begin anew, and what was observed with them. Everything else is as it was: names, labels,
hashes, statuses. The nodes come last: a fake kubelet must meet pods that run already.
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from flotilla_cli.cluster import kwok
from flotilla_cli.cluster.admin import admin, ensure
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import (
    CLAIM,
    CONFIG_MAP,
    CRD,
    MUTATING,
    NAMESPACE,
    NODE,
    POD,
    REVISION,
    VALIDATING,
    Resource,
)
from flotilla_common.clock import SystemClock
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api
from tests.support.cluster import Cluster, eventually
from tests.support.workspace import moment

Json = dict[str, Any]
SYSTEM = "kruise-system"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_BOTH = ("v1alpha1", "v1beta1")
KINDS = {  # kind: plural, scope, whether its objects are converted by the webhook (install.md §2)
    "AdvancedCronJob": ("advancedcronjobs", "Namespaced", False),
    "BroadcastJob": ("broadcastjobs", "Namespaced", False),
    "CloneSet": ("clonesets", "Namespaced", True),
    "ContainerRecreateRequest": ("containerrecreaterequests", "Namespaced", True),
    "DaemonSet": ("daemonsets", "Namespaced", True),
    "EphemeralJob": ("ephemeraljobs", "Namespaced", False),
    "ImageListPullJob": ("imagelistpulljobs", "Namespaced", False),
    "ImagePullJob": ("imagepulljobs", "Namespaced", False),
    "NodeImage": ("nodeimages", "Cluster", False),
    "NodePodProbe": ("nodepodprobes", "Cluster", False),
    "PersistentPodState": ("persistentpodstates", "Namespaced", True),
    "PodProbeMarker": ("podprobemarkers", "Namespaced", False),
    "PodUnavailableBudget": ("podunavailablebudgets", "Namespaced", False),
    "ResourceDistribution": ("resourcedistributions", "Cluster", True),
    "SidecarSet": ("sidecarsets", "Cluster", True),
    "StatefulSet": ("statefulsets", "Namespaced", True),
    "UnitedDeployment": ("uniteddeployments", "Namespaced", True),
    "WorkloadSpread": ("workloadspreads", "Namespaced", True),
}
_ONE_VERSION = ("EphemeralJob", "NodePodProbe", "PodProbeMarker")
_CORE = {"Pod": POD, "PersistentVolumeClaim": CLAIM, "ConfigMap": CONFIG_MAP}
_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp")


def resource(kind: str) -> Resource:
    """The resource of a kind in its storage version."""
    plural, scope, _ = KINDS[kind]
    group = "policy.kruise.io" if kind == "PodUnavailableBudget" else "apps.kruise.io"
    return Resource(group, "v1alpha1" if kind in _ONE_VERSION else "v1beta1", plural, kind, scope == "Namespaced")


def definitions() -> list[Json]:
    """The CRDs of all kinds, which take any field."""
    return [_definition(kind) for kind in KINDS]


def _definition(kind: str) -> Json:
    plural, scope, converts = KINDS[kind]
    where = resource(kind)
    versions = ("v1alpha1",) if kind in _ONE_VERSION else _BOTH
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    service = {"namespace": SYSTEM, "name": "kruise-webhook-service", "path": "/convert"}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1", "v1beta1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{where.group}"},
        "spec": {
            "group": where.group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "conversion": {"strategy": "Webhook", "webhook": webhook} if converts else {"strategy": "None"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == where.version,
                    "schema": schema,
                    "subresources": {"status": {}},
                }
                for version in versions
            ],
        },
    }


async def leave(cluster: Cluster, folder: Path) -> None:
    """Bring the cluster into the state of the golden files, with stand-ins for OpenKruise's processes."""
    async with admin(cluster.kubeconfig, SystemClock()) as api:
        for name in (SYSTEM, "golden", "golden-b"):
            await ensure(api, NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for definition in definitions():
            await ensure(api, CRD, definition)
        cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        await eventually(lambda: "default" in cluster.kubectl("get", "sa", "-n", "golden", "-o", "name"))
        golden = _golden(folder)
        await _Loader(api).load(golden)
        labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in golden if one["kind"] == "NodeImage"}
        for index, name in enumerate(sorted(labels)):  # a NodeImage has the labels of its node
            document = kwok.node(index)
            document["metadata"] |= {"name": name, "labels": labels[name]}
            await ensure(api, NODE, document)
        await _install(cluster, api, folder)


def lead(cluster: Cluster, seconds: int = 1) -> None:
    """A manager renews its lease, once."""
    renewed = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kruise-manager", "namespace": SYSTEM},
        "spec": {"holderIdentity": "manager-0_x", "leaseDurationSeconds": seconds, "renewTime": renewed},
    }
    cluster.kubectl("apply", "-f", "-", stdin=msgspec.json.encode(lease).decode())


def _golden(folder: Path) -> list[Json]:
    """All objects, in time moved so that the newest moment of any is now: what expires has not expired."""
    files = [path for path in sorted(folder.glob("*.yaml")) if "webhookconfigurations" not in path.name]
    texts = [path.read_text(encoding="utf-8") for path in files]
    newest = max(moment(found) for text in texts for found in _TIME.findall(text))
    later = SystemClock().now() - newest
    moved = [_TIME.sub(lambda found: rfc3339(moment(found[0]) + later), text) for text in texts]
    return [item for text in moved for item in msgspec.yaml.decode(text.encode())["items"]]


class _Loader:
    """Objects, each after those whose uids it names: owners, and whatever else."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._uids: dict[str, str] = {}

    async def load(self, documents: Sequence[Json]) -> None:
        """Create all of them; those of one round side by side."""
        known = {document["metadata"]["uid"] for document in documents}
        left = {one["metadata"]["uid"]: msgspec.json.encode(one).decode() for one in documents}
        named = {own: {uid for uid in known if uid in text} - {own} for own, text in left.items()}
        while left:
            ready = [own for own in left if named[own] <= self._uids.keys()]
            assert ready, left.values()
            await asyncio.gather(*(self._create(own, self._led_over(left.pop(own), named[own])) for own in ready))

    def _led_over(self, text: str, named: set[str]) -> Json:
        for uid in named:
            text = text.replace(uid, self._uids[uid])
        return msgspec.json.decode(text)

    async def _create(self, own: str, golden: Json) -> None:
        where = _resource_of(golden)
        namespace, name = golden["metadata"].get("namespace", ""), golden["metadata"]["name"]
        made = msgspec.json.decode(await self.api.create(where, namespace, msgspec.json.encode(_fresh(golden))))
        self._uids[own] = made["metadata"]["uid"]
        if golden.get("status") and where != CLAIM:
            body = msgspec.json.encode({"status": _status(golden, made)})
            await self.api.patch(where, namespace, name, body, PatchType.MERGE, subresource="status")


def _fresh(golden: Json) -> Json:
    """The object without what the server says of it."""
    meta = {key: value for key, value in golden["metadata"].items() if key not in _SERVERS}
    document = golden | {"metadata": meta}
    if golden["kind"] == "PersistentVolumeClaim":  # the volume is made anew
        meta.pop("annotations", None)
        document["spec"] = {key: value for key, value in golden["spec"].items() if key != "volumeName"}
    return document


def _resource_of(document: Json) -> Resource:
    kind = document["kind"]
    if kind == "ControllerRevision":
        return REVISION
    return _CORE[kind] if kind in _CORE else resource(kind)


def _status(golden: Json, made: Json) -> Json:
    """The status, as of the generation that the object has now. A container's image is called what the spec calls it,
    as fake kubelets do."""
    status: Json = msgspec.json.decode(msgspec.json.encode(golden["status"]))
    generation = made["metadata"].get("generation", 1)
    for part in (status, *status.get("conditions", ())):
        if "observedGeneration" in part:
            part["observedGeneration"] = generation
    images = {one["name"]: one["image"] for one in golden["spec"].get("containers", ())} if "spec" in golden else {}
    for one in status.get("containerStatuses", ()):
        one["image"] = images[one["name"]]
    return status


async def _install(cluster: Cluster, api: Api, folder: Path) -> None:
    """OpenKruise itself, its admission last."""
    cluster.kubectl("apply", "-f", "-", stdin="---\n".join(msgspec.yaml.encode(one).decode() for one in _processes()))
    lead(cluster)
    cluster.kubectl("rollout", "status", "-n", SYSTEM, "deploy/kruise-controller-manager", "--timeout=60s")
    cluster.kubectl("rollout", "status", "-n", SYSTEM, "ds/kruise-daemon", "--timeout=60s")
    for where in (MUTATING, VALIDATING):
        [golden] = msgspec.yaml.decode((folder / f"{where.plural}.yaml").read_bytes())["items"]
        for entry in golden["webhooks"]:
            entry["clientConfig"].pop("caBundle")
        meta = {key: value for key, value in golden["metadata"].items() if key not in _SERVERS}
        await ensure(api, where, golden | {"metadata": meta})


def _processes() -> list[Json]:
    labels = {"control-plane": "controller-manager"}
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}]
    own = {"apiGroups": ["example.com"], "resources": ["games"], "verbs": ["get", "list", "watch"]}
    pods = {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["create", "delete", "get"]}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    return [
        role | {"metadata": {"name": "kruise-manager-role"}, "rules": [*everything, pods, own]},
        _workload("Deployment", "kruise-controller-manager", "kruise-manager", labels, {"replicas": 2}),
        _workload("DaemonSet", "kruise-daemon", "kruise-daemon", {"control-plane": "daemon"}, {}),
        _account("kruise-manager"),
        _account("kruise-daemon"),
    ]


def _account(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": SYSTEM}}


def _workload(kind: str, name: str, account: str, labels: Json, more: Json) -> Json:
    pod: Json = {"serviceAccountName": account, "containers": [{"name": "manager", "image": "busybox:1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": SYSTEM, "annotations": {"meta.helm.sh/release-name": "kruise"}},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}} | more,
    }
