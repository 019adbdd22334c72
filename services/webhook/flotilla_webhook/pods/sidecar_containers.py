"""Converts a SidecarSet's container to those of a pod (sidecarset.md §6.7 to §6.11).

Containers are new; their content may be shared with the SidecarSet or the pod, and is never changed in place.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from flotilla_common.api.documents import Json, mappings, member, sequence, text
from flotilla_common.api.keys import (
    INJECTED_ENV,
    SIDECAR_VERSION,
    SIDECAR_VERSION_ALT,
    SIDECAR_VERSION_ALT_ENV,
    SIDECAR_VERSION_ENV,
)
from flotilla_common.api.kinds.sidecarset.resources import computed_resources
from flotilla_common.api.kinds.sidecarset.types import ENABLED

_OWN_FIELDS = frozenset(
    {
        "podInjectPolicy",
        "resourcesPolicy",
        "shareVolumeDevicePolicy",
        "shareVolumePolicy",
        "transferEnv",
        "upgradeStrategy",
    }
)
"""Fields of a SidecarSet's container that a pod's container does not have."""

_EXPANSION = re.compile(r"\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_METADATA_PATH = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


def prepared(sidecar: Json, pod: Json, sidecars: Collection[str]) -> Json:
    """Return the container for the pod; `sidecars` are the names of all injected containers.

    Raises ValueError if its resources cannot be computed.
    """
    container = {key: value for key, value in sidecar.items() if key not in _OWN_FIELDS}
    if policy := member(sidecar, "resourcesPolicy"):
        container["resources"] = computed_resources(policy, pod, sidecars)
    applications = [one for one in _containers(pod) if not _is_injected(one)]
    mounts, needed = _shared_mounts(sidecar, applications)
    _extend(container, "volumeMounts", mounts)
    marker = {"name": INJECTED_ENV, "value": "true"}
    container["env"] = _merged_env(sidecar.get("env"), [marker, *_transferred(sidecar, pod), *needed])
    _extend(container, "volumeDevices", _shared_devices(sidecar, mounts, applications))
    return container


def used_volumes(sidecar: Json) -> Iterator[str]:
    """Yield the names of the volumes of its own mounts and devices."""
    for one in (*mappings(sidecar.get("volumeMounts")), *mappings(sidecar.get("volumeDevices"))):
        yield text(one.get("name"))


def hot_pair(container: Json, empty_image: str) -> tuple[Json, Json]:
    """Return the two containers of one that is upgraded hot: the second one idles (§6.10)."""
    return _hot_container(container, 1, text(container.get("image"))), _hot_container(container, 2, empty_image)


def _hot_container(container: Json, number: int, image: str) -> Json:
    name = f"{text(container.get('name'))}-{number}"
    made = container | {"name": name, "image": image}
    versions = [
        _from_annotation(SIDECAR_VERSION_ENV, SIDECAR_VERSION + name),
        _from_annotation(SIDECAR_VERSION_ALT_ENV, SIDECAR_VERSION_ALT + name),
    ]
    others = (SIDECAR_VERSION_ENV, SIDECAR_VERSION_ALT_ENV)
    made["env"] = [one for one in mappings(made.get("env")) if one.get("name") not in others] + versions
    return made


def _from_annotation(name: str, key: str) -> Json:
    return {
        "name": name,
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{key}']"}},
    }


def _containers(pod: Json) -> list[Json]:
    return mappings(member(pod, "spec").get("containers"))


def _is_injected(container: Json) -> bool:
    env = mappings(container.get("env"))
    return any(one.get("name") == INJECTED_ENV and one.get("value") == "true" for one in env)


def _extend(container: Json, key: str, more: list[Json]) -> None:
    if more:
        container[key] = [*sequence(container.get(key)), *more]


def _shared_mounts(sidecar: Json, applications: Iterable[Json]) -> tuple[list[Json], list[Json]]:
    """Return the mounts that it shares, and the env entries in their paths (§6.8)."""
    if member(sidecar, "shareVolumePolicy").get("type") != ENABLED:
        return [], []
    taken = _paths(sidecar, "volumeMounts", "mountPath") | _paths(sidecar, "volumeDevices", "devicePath")
    mounts: list[Json] = []
    needed: list[Json] = []
    for application in applications:
        env = {text(one.get("name")): one for one in mappings(application.get("env"))}
        for mount in mappings(application.get("volumeMounts")):
            named = _EXPANSION.findall(text(mount.get("subPathExpr")))
            needed += [env[name] for name in named if name in env]
            if text(mount.get("mountPath")) not in taken:
                taken.add(text(mount.get("mountPath")))
                mounts.append(mount)
    return mounts, needed


def _shared_devices(sidecar: Json, mounts: Iterable[Json], applications: Iterable[Json]) -> list[Json]:
    if member(sidecar, "shareVolumeDevicePolicy").get("type") != ENABLED:
        return []
    taken = _paths(sidecar, "volumeMounts", "mountPath") | _paths(sidecar, "volumeDevices", "devicePath")
    taken |= {text(mount.get("mountPath")) for mount in mounts}
    devices: list[Json] = []
    for application in applications:
        for device in mappings(application.get("volumeDevices")):
            if text(device.get("devicePath")) not in taken:
                taken.add(text(device.get("devicePath")))
                devices.append(device)
    return devices


def _paths(container: Json, key: str, path: str) -> set[str]:
    return {text(one.get(path)) for one in mappings(container.get(key))}


def _transferred(sidecar: Json, pod: Json) -> Iterator[Json]:
    """Yield the env entries that it copies from containers of the pod (§6.9); missing ones are left out."""
    env = {
        (text(container.get("name")), text(one.get("name"))): one
        for container in reversed(_containers(pod))
        for one in reversed(mappings(container.get("env")))
    }
    for entry in mappings(sidecar.get("transferEnv")):
        source = _source_container(entry, pod)
        names = {text(entry.get("envName")), *map(text, sequence(entry.get("envNames")))} - {""}
        for name in sorted(names):
            if source is not None and (source, name) in env:
                yield env[source, name]


def _source_container(entry: Json, pod: Json) -> str | None:
    reference = member(entry, "sourceContainerNameFrom", "fieldRef")
    if not reference:
        return text(entry.get("sourceContainerName"))
    found = _METADATA_PATH.fullmatch(text(reference.get("fieldPath")))
    return None if found is None else text(member(pod, "metadata", found[1]).get(found[2]))


def _merged_env(own: object, more: Iterable[Json]) -> list[Json]:
    """Return its own entries, and the others with new names."""
    env = list(sequence(own))
    names = {one.get("name") for one in mappings(env)}
    for entry in more:
        if entry.get("name") not in names:
            names.add(entry.get("name"))
            env.append(entry)
    return env
