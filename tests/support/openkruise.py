"""A cluster as OpenKruise leaves it: its CRDs, its objects in the middle of rollouts, and stand-ins for its processes.

The objects are golden ones, read from files. In another cluster they get other uids, so references are rewritten to
those; generations restart, and with them observedGeneration. Everything else is unchanged: names, labels, hashes,
statuses. The nodes are created last: a fake kubelet has to find pods that run already.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import (
    CLAIM,
    CONFIG_MAP,
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
from flotilla_dev.cluster import kwok
from flotilla_dev.cluster.access import admin, ensure
from tests.support import openkruise_chart
from tests.support.cluster import Cluster, eventually
from tests.support.helm import Helm, helm
from tests.support.midway import SPACE, midway
from tests.support.workspace import moment
from tests.testkit.documents import Json

SYSTEM = "kruise-system"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
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
_LATER_BETA = (
    "CloneSet",
    "ContainerRecreateRequest",
    "PersistentPodState",
    "PodUnavailableBudget",
    "ResourceDistribution",
    "UnitedDeployment",
    "WorkloadSpread",
)
"""Kinds that got v1beta1 after the release of 1.9.0."""
_CORE = {"Pod": POD, "PersistentVolumeClaim": CLAIM, "ConfigMap": CONFIG_MAP}
_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp")


def resource(kind: str, *, released: bool = False) -> Resource:
    """Return the resource of a kind in its storage version."""
    plural, scope, _ = KINDS[kind]
    group = "policy.kruise.io" if kind == "PodUnavailableBudget" else "apps.kruise.io"
    return Resource(group, _versions(kind, released=released)[-1], plural, kind, scope == "Namespaced")


def definitions(*, released: bool = False) -> list[Json]:
    """Return the CRDs of all kinds, which accept any field."""
    return [_definition(kind, released=released) for kind in KINDS]


def _versions(kind: str, *, released: bool) -> tuple[str, ...]:
    return ("v1alpha1",) if kind in _ONE_VERSION or (released and kind in _LATER_BETA) else ("v1alpha1", "v1beta1")


def _definition(kind: str, *, released: bool) -> Json:
    plural, scope, converts = KINDS[kind]
    where = resource(kind, released=released)
    versions = _versions(kind, released=released)
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
            "conversion": {"strategy": "Webhook", "webhook": webhook}
            if converts and len(versions) > 1
            else {"strategy": "None"},
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


async def leave(cluster: Cluster, folder: Path, *, released: bool = False) -> Helm:
    """Bring the cluster into the state of the golden files, with stand-ins for OpenKruise's processes.

    With `released` it is the OpenKruise of the 1.9.0 release, which has fewer versions. Returns helm, which has its
    release.
    """
    async with admin(cluster.kubeconfig, SystemClock()) as api:
        runner = await install(cluster, folder, released=released)
        for name in ("golden", "golden-b", SPACE):
            await ensure(api, NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await eventually(lambda: "default" in cluster.kubectl("get", "sa", "-n", SPACE, "-o", "name"))
        golden = read(folder, released=released)
        golden += midway(golden)
        await Loader(api).load(golden)
        labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in golden if one["kind"] == "NodeImage"}
        for index, name in enumerate(sorted(labels)):  # a NodeImage has the labels of its node
            document = kwok.node(index)
            document["metadata"] |= {"name": name, "labels": labels[name]}
            await ensure(api, NODE, document)
        admit(cluster, runner)
        return runner


async def install(cluster: Cluster, folder: Path, *, released: bool = False) -> Helm:
    """Run `helm install` of OpenKruise, without its admission. Returns helm."""
    runner = await helm(cluster.kubeconfig)
    chart = cluster.plane.places.state_dir / "openkruise"
    openkruise_chart.write(chart, definitions(released=released), _configurations(folder))
    where = (openkruise_chart.RELEASE, str(chart), "-n", openkruise_chart.RELEASE_NAMESPACE)
    runner.run("install", *where, "--set", "admission=false")
    await eventually(lambda: all(map(_established, cluster.read("crd")["items"])))
    return runner


def _established(definition: Json) -> bool:
    found = {one["type"]: one["status"] for one in definition["status"]["conditions"] or ()}
    return found.get("Established") == "True"


def admit(cluster: Cluster, runner: Helm) -> None:
    """Start OpenKruise: its pods run, its manager leads, and its admission decides about every write."""
    chart = cluster.plane.places.state_dir / "openkruise"
    lead(cluster)
    cluster.kubectl("rollout", "status", "-n", SYSTEM, "deploy/kruise-controller-manager", "--timeout=60s")
    cluster.kubectl("rollout", "status", "-n", SYSTEM, "ds/kruise-daemon", "--timeout=60s")
    where = (openkruise_chart.RELEASE, str(chart), "-n", openkruise_chart.RELEASE_NAMESPACE)
    runner.run("upgrade", *where, "--set", "admission=true")


def lead(cluster: Cluster, seconds: int = 1) -> None:
    """Renew a manager's lease once."""
    renewed = SystemClock().now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kruise-manager", "namespace": SYSTEM},
        "spec": {"holderIdentity": "manager-0_x", "leaseDurationSeconds": seconds, "renewTime": renewed},
    }
    cluster.apply(msgspec.json.encode(lease).decode())


def read(folder: Path, *, released: bool = False) -> list[Json]:
    """Return all objects, with times moved so that the newest is now: no deadline has passed."""
    other = "v1beta1" if released else "v1alpha1"
    later = {f"{KINDS[kind][0]}.{other}.yaml" for kind in _LATER_BETA}
    files = [path for path in folder.glob("*.yaml") if "webhookconfigurations" not in path.name]
    texts = [path.read_text(encoding="utf-8") for path in sorted(files) if path.name not in later]
    newest = max(moment(found) for text in texts for found in _TIME.findall(text))
    later = SystemClock().now() - newest
    moved = [_TIME.sub(lambda found: rfc3339(moment(found[0]) + later), text) for text in texts]
    found: list[Json] = [item for text in moved for item in msgspec.yaml.decode(text.encode())["items"]]
    for item in found if released else ():
        for owner in item["metadata"].get("ownerReferences", ()):
            if owner["kind"] in _LATER_BETA:
                owner["apiVersion"] = resource(owner["kind"], released=True).api_version
    return [_unhurried(item) for item in found]


def _unhurried(item: Json) -> Json:
    """Return the object with its deadlines postponed beyond the test.

    The next run of a schedule is due tomorrow, and finished jobs stay for an hour.
    """
    spec = item.get("spec", {})
    if item["kind"] == "AdvancedCronJob":
        last = moment(item["status"]["lastScheduleTime"]).astimezone(ZoneInfo(spec["timeZone"]))
        spec["schedule"] = f"{last.minute} {last.hour} * * *"
    if item["kind"] == "BroadcastJob" and "ttlSecondsAfterFinished" in spec["completionPolicy"]:
        spec["completionPolicy"]["ttlSecondsAfterFinished"] = 3600
    return item


class Loader:
    """Creates objects, each after those whose uids it names: owners, and other references."""

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
        self._uids[own] = (await self.create(golden))["metadata"]["uid"]

    async def create(self, golden: Json) -> Json:
        """Create one object with its status; return it as stored."""
        where = _resource_of(golden)
        namespace, name = golden["metadata"].get("namespace", ""), golden["metadata"]["name"]
        made = msgspec.json.decode(await self.api.create(where, namespace, msgspec.json.encode(_fresh(golden))))
        if golden.get("status") and where != CLAIM:
            body = msgspec.json.encode({"status": _status(golden, made)})
            await self.api.patch(where, namespace, name, body, PatchType.MERGE, subresource="status")
        return made


def _fresh(golden: Json) -> Json:
    """Return the object without the fields that the server sets."""
    meta = {key: value for key, value in golden["metadata"].items() if key not in _SERVERS}
    document = golden | {"metadata": meta}
    if golden["kind"] == "PersistentVolumeClaim":  # the volume is created again
        meta.pop("annotations", None)
        document["spec"] = {key: value for key, value in golden["spec"].items() if key != "volumeName"}
    return document


def _resource_of(document: Json) -> Resource:
    kind = document["kind"]
    if kind == "ControllerRevision":
        return REVISION
    if kind in _CORE:
        return _CORE[kind]
    return msgspec.structs.replace(resource(kind), version=document["apiVersion"].rpartition("/")[2])


def _status(golden: Json, made: Json) -> Json:
    """Return the status, with the object's current generation.

    A container's image has the name from the spec, as fake kubelets report it.
    """
    status: Json = msgspec.json.decode(msgspec.json.encode(golden["status"]))
    generation = made["metadata"].get("generation", 1)
    for part in (status, *status.get("conditions", ())):
        if "observedGeneration" in part:
            part["observedGeneration"] = generation
    images = {one["name"]: one.get("image") for one in golden.get("spec", {}).get("containers", ())}
    for one in status.get("containerStatuses", ()):
        one["image"] = images[one["name"]]
    return status


def _configurations(folder: Path) -> Iterator[Json]:
    """Yield the webhook configurations, as in OpenKruise's chart."""
    for where in (MUTATING, VALIDATING):
        [golden] = msgspec.yaml.decode((folder / f"{where.plural}.yaml").read_bytes())["items"]
        for entry in golden["webhooks"]:
            entry["clientConfig"].pop("caBundle")
        meta = {"name": golden["metadata"]["name"], "annotations": {"template": ""}}
        yield golden | {"metadata": meta}
