"""Routes objects to nodes, reduced to what their agents need (docs/adr/0007).

An agent gets no more than it works with: of our kinds by their routes, and of the pods those whose containers are
reported on, without anything that the agent does not read.
"""

import msgspec

from flotilla_common.api.core import Container, ContainerStatus, Pod, PodSpec, PodStatus
from flotilla_common.api.keys import IN_PLACE_READY, RUNTIME_CONTAINERS_META, SIDECAR_SET_HASH
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Copy, NodeRoute
from flotilla_common.api.meta import Model, ObjectMeta, controller_of, group_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.workload.hashing import env_from_metadata


class _Place(Model):
    node_name: str = ""


class _Phase(Model):
    phase: str = ""


class _PodHead(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Place = _Place()
    status: _Phase = _Phase()


_decode_pod_head = msgspec.json.Decoder(_PodHead).decode
_decode_pod = msgspec.json.Decoder(Pod).decode
_encode = msgspec.json.Encoder().encode


def node_of_pod(body: bytes) -> str:
    """Return the node of a running pod of our workloads or with sidecars of a SidecarSet (nodeagent.md §5.2)."""
    head = _decode_pod_head(body)
    owner = controller_of(head.metadata)
    ours = owner is not None and group_of(owner.api_version) == "apps.kruise.io"
    if head.status.phase in ("Succeeded", "Failed"):
        return ""
    return head.spec.node_name if ours or SIDECAR_SET_HASH in head.metadata.annotations else ""


def trimmed_pod(body: bytes) -> Copy:
    """Return the part that the agent reads. Two versions with equal parts have the same digest."""
    full = _decode_pod(body)
    trimmed = _trimmed(full)
    digest = hash(_encode(trimmed))
    meta = msgspec.structs.replace(trimmed.metadata, resource_version=full.metadata.resource_version)
    return Copy(_encode(msgspec.structs.replace(trimmed, metadata=meta)), digest)


def _trimmed(full: Pod) -> Pod:
    """Return the part that the agent compares, without the version.

    These are identity, instances, environments from metadata and the metadata that they come from.
    """
    meta = full.metadata
    containers, labels, annotations = list[Container](), dict[str, str](), dict[str, str]()
    for container in full.spec.containers:
        sources = env_from_metadata(container)
        env = [each for each in container.env if each.name in sources]
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
            conditions=[each for each in full.status.conditions if each.type == IN_PLACE_READY],
            container_statuses=[
                ContainerStatus(name=each.name, container_id=each.container_id, restart_count=each.restart_count)
                for each in full.status.container_statuses
            ],
        ),
    )


def routes() -> dict[Resource, NodeRoute]:
    """Return the resources of which nodes get copies."""
    ours = {kind.resource: kind.node_route for kind in catalogue.KINDS if kind.node_route is not None}
    return {POD: NodeRoute(node_of_pod, trimmed_pod)} | ours
