"""Provisions volumes for claims as a cloud would, reduced to directories of this machine.

A claim must be bound before its pod can run, also on fake nodes. So every claim of our storage class gets a
PersistentVolume, a grown claim a larger one, and the volume with its content is deleted after its claim. All nodes see
the same directory, and every user of a container may write to it, because the kubelet changes no group of directories,
as it does for other volumes.

It runs as a process of its own: `python -m flotilla_dev.cluster.volumes <kubeconfig> <folder>`.
"""

import asyncio
import shutil
import sys
from pathlib import Path

import msgspec

from flotilla_common.api.resources import CLAIM, Resource
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_dev.cluster.access import admin, ensure

PROVISIONER = "flotilla.dev/directory"
CLASS = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
VOLUME = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PAUSE = 1.0  # seconds before a new LIST after a broken watch


async def run(api: Api, folder: Path, clock: Clock) -> None:
    """Create the default storage class, then serve claims and delete released volumes until cancelled."""
    await ensure(api, CLASS, storage_class())
    await asyncio.gather(_follow(api, CLAIM, folder, clock), _follow(api, VOLUME, folder, clock))


async def _follow(api: Api, resource: Resource, folder: Path, clock: Clock) -> None:
    while True:
        try:
            page = await api.list(resource)
            for item in page.items:
                await _reconcile(api, resource, item, folder)
            async for event in api.watch(resource, page.resource_version):
                if event.type in {"ADDED", "MODIFIED"}:
                    await _reconcile(api, resource, event.object, folder)
        except (ApiError, Unreachable) as error:
            print(f"{resource.plural}: {error}; listing again", file=sys.stderr, flush=True)
            await clock.sleep(PAUSE)


async def _reconcile(api: Api, resource: Resource, raw: msgspec.Raw, folder: Path) -> None:
    document = msgspec.json.decode(raw, type=Json)
    if resource is VOLUME:
        await _clear(api, document, folder)
    elif document["spec"].get("storageClassName") == "standard" and "deletionTimestamp" not in document["metadata"]:
        await _serve(api, document, folder)


async def _serve(api: Api, claim: Json, folder: Path) -> None:
    if claim.get("status", {}).get("phase") == "Pending":
        volume = volume_for(claim, folder)
        await asyncio.to_thread(_make, Path(volume["spec"]["hostPath"]["path"]))
        await ensure(api, VOLUME, volume)
        return
    wanted = claim["spec"]["resources"]["requests"]["storage"]
    if claim["status"].get("capacity", {}).get("storage") != wanted:
        await _grow(api, claim, {"storage": wanted})


def _make(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o777)


async def _grow(api: Api, claim: Json, capacity: Json) -> None:
    volume = msgspec.json.encode({"spec": {"capacity": capacity}})
    await api.patch(VOLUME, "", claim["spec"]["volumeName"], volume, PatchType.MERGE)
    status = msgspec.json.encode({"status": {"capacity": capacity, "conditions": None}})
    meta = claim["metadata"]
    await api.patch(CLAIM, meta["namespace"], meta["name"], status, PatchType.MERGE, subresource="status")


async def _clear(api: Api, volume: Json, folder: Path) -> None:
    meta = volume["metadata"]
    ours = meta.get("annotations", {}).get("pv.kubernetes.io/provisioned-by") == PROVISIONER
    if ours and volume.get("status", {}).get("phase") == "Released" and "deletionTimestamp" not in meta:
        await asyncio.to_thread(shutil.rmtree, folder / meta["name"], ignore_errors=True)
        await api.delete(VOLUME, "", meta["name"], uid=meta["uid"])


def storage_class() -> Json:
    """Return the default class: bound at once, expandable."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }


def volume_for(claim: Json, folder: Path) -> Json:
    """Return the volume for one claim, named after the claim's uid as provisioners do."""
    meta, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"],
            "hostPath": {"path": str(folder / name), "type": "Directory"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
        },
    }


async def main(kubeconfig: Path, folder: Path) -> None:
    """Serve the cluster of this kubeconfig until stopped."""
    clock = SystemClock()
    async with admin(kubeconfig, clock) as api:
        await run(api, folder, clock)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
