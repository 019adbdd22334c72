"""How what belongs to an object is found: a function for each kind that has more than itself."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.diagnosis import jobs
from flotilla_cli.diagnosis.reading import MOST_PODS, all_nodes, selected
from flotilla_cli.diagnosis.scope import Scope, Served, basis_of
from flotilla_common.api.core import Node, Pod
from flotilla_common.api.keys import RECREATE_NODE_NAME
from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.kinds.sidecarset.records import injected
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.api.meta import LabelSelector, metadata_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.causes import Around
from flotilla_common.workload.placement import Placement


async def scope_of(api: Api, resource: Resource, raw: bytes, now: datetime) -> Scope:
    """Read what belongs to the object. Raises ApiError (403: pods may not be read) and Unreachable."""
    finder = _FINDERS.get(resource)
    return await finder(api, raw, now) if finder is not None else Scope(basis=Around(now=now))


async def _of_workload(
    api: Api, resource: Resource, selector: LabelSelector, raw: bytes, now: datetime, most: int = MOST_PODS
) -> Scope:
    """Pods that refer to the workload, at most so many; 0: all."""
    meta = metadata_of(raw)
    pods = await selected(api, meta.namespace, selector, most)
    mine = [pod for pod in pods if any(one.uid == meta.uid for one in pod.metadata.owner_references)]
    return Scope(pods=mine, basis=basis_of(resource, raw, now))


async def _of_cloneset(api: Api, raw: bytes, now: datetime) -> Scope:
    selector = msgspec.json.decode(raw, type=CloneSet).spec.selector
    return await _of_workload(api, CLONE_SET, selector, raw, now)


async def _of_statefulset(api: Api, raw: bytes, now: datetime) -> Scope:
    selector = msgspec.json.decode(raw, type=StatefulSet).spec.selector
    return await _of_workload(api, STATEFUL_SET, selector, raw, now)


async def _of_daemonset(api: Api, raw: bytes, now: datetime) -> Scope:
    """All pods, and all nodes, as each has one or not."""
    spec = msgspec.json.decode(raw, type=DaemonSet).spec
    scope = await _of_workload(api, DAEMON_SET, spec.selector, raw, now, most=0)
    nodes = await all_nodes(api)
    if nodes is None:
        return msgspec.structs.replace(scope, denied=frozenset({"nodes"}))
    return msgspec.structs.replace(scope, served=_served(spec.template, nodes, scope.pods))


def _served(template: msgspec.Raw, nodes: Sequence[Node], pods: Sequence[Pod]) -> Served | None:
    """None if the template cannot be read: then nothing is done for any node."""
    try:
        placement = Placement.of_daemons(template)
    except ValueError:
        return None
    return Served(nodes=nodes, pods=pods, why_not=lambda node: placement.fit(node).why_not)


async def _of_sidecarset(api: Api, raw: bytes, now: datetime) -> Scope:
    """Pods that were injected with it, wherever they are."""
    found = msgspec.json.decode(raw, type=SidecarSet)
    if found.spec.selector is None:
        return Scope(basis=Around(now=now))
    pods = await selected(api, "", found.spec.selector)
    mine = [pod for pod in pods if pod.active and found.metadata.name in injected(pod.metadata.annotations)]
    return Scope(pods=mine, basis=Around(now=now), namespaced=True)


async def _of_request(api: Api, raw: bytes, now: datetime) -> Scope:
    """The pod whose containers are to be recreated, and its node."""
    found = msgspec.json.decode(raw, type=ContainerRecreateRequest)
    if found.status.completion_time is not None:
        return Scope(basis=Around(now=now))
    node = found.metadata.labels.get(RECREATE_NODE_NAME, "")
    try:
        pod = msgspec.json.decode(await api.get(POD, found.metadata.namespace, found.spec.pod_name), type=Pod)
    except ApiError as failure:
        if failure.code != 404:
            raise
        return Scope(nodes=[node] if node else (), basis=Around(now=now))
    return Scope(pods=[pod], nodes=[node or pod.spec.node_name], basis=Around(now=now))


async def _of_node_image(api: Api, raw: bytes, now: datetime) -> Scope:
    return Scope(nodes=[metadata_of(raw).name], basis=Around(now=now))


_FINDERS: Mapping[Resource, Callable[[Api, bytes, datetime], Awaitable[Scope]]] = {
    ADVANCED_CRON_JOB: jobs.of_cron_job,
    BROADCAST_JOB: jobs.of_broadcast_job,
    CLONE_SET: _of_cloneset,
    DAEMON_SET: _of_daemonset,
    STATEFUL_SET: _of_statefulset,
    SIDECAR_SET: _of_sidecarset,
    RECREATE_REQUEST: _of_request,
    NODE_IMAGE: _of_node_image,
}
