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
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec

from flotilla_common.api.resources import CLAIM, Resource
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.kube.interface import Api
from flotilla_common.kube.reflector import HeadMeta, Reflector, Way
from flotilla_dev.cluster.access import admin, ensure

PROVISIONER = "flotilla.dev/directory"
CLASS = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
VOLUME = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)


async def run(api: Api, folder: Path, clock: Clock) -> None:
    """Create the default storage class, then serve claims and delete released volumes until cancelled."""
    await ensure(api, CLASS, storage_class())
    claims = _VolumeSink(CLAIM, partial(_serve, api, folder))
    volumes = _VolumeSink(VOLUME, partial(_clear, api, folder))
    await asyncio.gather(Reflector(api, CLAIM, claims, clock).run(), Reflector(api, VOLUME, volumes, clock).run())


class _VolumeSink:
    """Reconciles each version of the objects of one resource; the reflector repeats what the apiserver refused."""

    def __init__(self, resource: Resource, reconcile: Callable[[Json], Awaitable[None]]) -> None:
        self._resource = resource
        self._reconcile = reconcile
        self._trouble = ""

    async def listing(self, way: Way) -> None:
        """Keep nothing between two lists."""

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        await self._reconcile(msgspec.json.decode(item, type=Json))

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        """Do nothing for objects that are gone."""

    async def complete(self, version: str) -> None:
        """Keep nothing of objects that are gone."""

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        if kind != "DELETED":
            await self._reconcile(msgspec.json.decode(item, type=Json))

    async def progress(self, version: str) -> None:
        """Ignore versions."""

    def state(self, trouble: str) -> None:
        if trouble not in ("", self._trouble):
            print(f"{self._resource.plural}: {trouble}", file=sys.stderr, flush=True)
        self._trouble = trouble


async def _serve(api: Api, folder: Path, claim: Json) -> None:
    """Create the volume of a claim of our class, or grow it."""
    if claim["spec"].get("storageClassName") != "standard" or "deletionTimestamp" in claim["metadata"]:
        return
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


async def _clear(api: Api, folder: Path, volume: Json) -> None:
    """Delete a released volume with its content."""
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
