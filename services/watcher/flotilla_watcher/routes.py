"""Which objects concern which node, and how much of them its agent gets (docs/adr/0007).

An agent gets what it works with and no more: its NodeImage, the active ContainerRecreateRequests of its pods, and of
the pods those whose containers are reported on, without anything that the agent does not read.
"""

from collections.abc import Callable

import msgspec

from flotilla_common.api.core import Container, ContainerStatus, Pod, PodSpec, PodStatus
from flotilla_common.api.keys import (
    IN_PLACE_READY,
    RECREATE_ACTIVE,
    RECREATE_NODE_NAME,
    RUNTIME_CONTAINERS_META,
    SIDECAR_SET_HASH,
)
from flotilla_common.api.meta import Model, ObjectMeta, controller_of, group_of
from flotilla_common.api.resources import NODE_IMAGE, POD, RECREATE_REQUEST, Resource
from flotilla_common.workload.hashing import env_from_metadata


class Copy(msgspec.Struct, frozen=True):
    """What a node gets of an object. Two copies with the same digest say the same."""

    node: str
    body: bytes
    digest: int


Route = Callable[[bytes], Copy | None]
"""The copy of an object (as published on kube.v1), if it concerns a node at all."""


class _Head(Model):
    metadata: ObjectMeta = ObjectMeta()


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_pod = msgspec.json.Decoder(Pod).decode
_encode = msgspec.json.Encoder().encode


def node_image(body: bytes) -> Copy | None:
    """A NodeImage has the name of its node."""
    meta = _decode_head(body).metadata
    return Copy(meta.name, body, hash(meta.resource_version))


def recreate_request(body: bytes) -> Copy | None:
    """A request concerns its node while it has the label `active`, whatever its value."""
    meta = _decode_head(body).metadata
    node = meta.labels.get(RECREATE_NODE_NAME, "")
    if not node or RECREATE_ACTIVE not in meta.labels:
        return None
    return Copy(node, body, hash(meta.resource_version))


def pod(body: bytes) -> Copy | None:
    """Pods of our workloads and pods with sidecars of a SidecarSet, while they are there to run (nodeagent.md §5.2)."""
    full = _decode_pod(body)
    owner = controller_of(full.metadata)
    ours = owner is not None and group_of(owner.api_version) == "apps.kruise.io"
    if not full.spec.node_name or full.status.phase in ("Succeeded", "Failed"):
        return None
    if not ours and SIDECAR_SET_HASH not in full.metadata.annotations:
        return None
    trimmed = _trimmed(full)
    digest = hash(_encode(trimmed))
    meta = msgspec.structs.replace(trimmed.metadata, resource_version=full.metadata.resource_version)
    return Copy(full.spec.node_name, _encode(msgspec.structs.replace(trimmed, metadata=meta)), digest)


def _trimmed(full: Pod) -> Pod:
    """What the agent compares, without the version: identity, instances, environments from metadata and the metadata
    that they come from."""
    meta = full.metadata
    containers, labels, annotations = list[Container](), dict[str, str](), dict[str, str]()
    for container in full.spec.containers:
        sources = env_from_metadata(container)
        env = [one for one in container.env if one.name in sources]
        containers.append(Container(name=container.name, image=container.image, env=env))
        for kind, key in sources.values():
            given, taken = (meta.labels, labels) if kind == "labels" else (meta.annotations, annotations)
            if key in given:
                taken[key] = given[key]
    if RUNTIME_CONTAINERS_META in meta.annotations:
        annotations[RUNTIME_CONTAINERS_META] = meta.annotations[RUNTIME_CONTAINERS_META]
    return Pod(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            deletion_timestamp=meta.deletion_timestamp,
            labels=labels,
            annotations=annotations,
        ),
        spec=PodSpec(node_name=full.spec.node_name, containers=containers),
        status=PodStatus(
            conditions=[one for one in full.status.conditions if one.type == IN_PLACE_READY],
            container_statuses=[
                ContainerStatus(name=one.name, container_id=one.container_id, restart_count=one.restart_count)
                for one in full.status.container_statuses
            ],
        ),
    )


ROUTES: dict[Resource, Route] = {POD: pod, NODE_IMAGE: node_image, RECREATE_REQUEST: recreate_request}
"""The resources of which nodes get copies."""
