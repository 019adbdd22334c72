"""What of the cluster an object is about: its pods and nodes, and how long these may take."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.keys import RECREATE_NODE_NAME
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.kinds.sidecarset.records import injected
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.api.meta import LabelSelector, metadata_of
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.api.rollout import Lifecycle
from flotilla_common.api.selectors import Selector
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.causes import Around

MOST_PODS = 1000
"""Of one object that are looked at, unless each is on a node of its own: then all are."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to an object."""

    pods: Sequence[Pod] = ()
    nodes: Sequence[str] = ()
    basis: Around = Around()
    namespaced: bool = False  # pods of several namespaces
    served: Sequence[Node] | None = None  # all nodes, if the object has a pod on each; None: it does not, or who knows
    denied: frozenset[str] = frozenset()  # what may not be read


async def scope_of(api: Api, resource: Resource, raw: bytes, now: datetime) -> Scope:
    """Read what belongs to the object. Raises ApiError (403: pods may not be read) and Unreachable."""
    finder = _FINDERS.get(resource)
    return await finder(api, raw, now) if finder is not None else Scope(basis=Around(now=now))


def basis_of(resource: Resource, raw: bytes, now: datetime) -> Around:
    """What the spec of a workload says of all of its pods."""
    if resource == CLONE_SET:
        spec = msgspec.json.decode(raw, type=CloneSet).spec
        return Around(now=now, lifecycle=spec.lifecycle or Lifecycle(), min_ready_seconds=spec.min_ready_seconds)
    if resource == DAEMON_SET:
        spec = msgspec.json.decode(raw, type=DaemonSet).spec
        return Around(now=now, lifecycle=spec.lifecycle or Lifecycle(), min_ready_seconds=spec.min_ready_seconds)
    if resource == STATEFUL_SET:
        spec = msgspec.json.decode(raw, type=StatefulSet).spec
        rolling = spec.update_strategy.rolling_update
        least = rolling.min_ready_seconds if rolling is not None else 0
        return Around(now=now, lifecycle=spec.lifecycle or Lifecycle(), min_ready_seconds=least)
    return Around(now=now)


async def _of_workload(
    api: Api, resource: Resource, selector: LabelSelector, raw: bytes, now: datetime, most: int = MOST_PODS
) -> Scope:
    """Pods that refer to the workload, at most so many; 0: all."""
    meta = metadata_of(raw)
    pods = await _selected(api, meta.namespace, selector, most)
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
    selector = msgspec.json.decode(raw, type=DaemonSet).spec.selector
    scope = await _of_workload(api, DAEMON_SET, selector, raw, now, most=0)
    try:
        nodes = [msgspec.json.decode(item, type=Node) for item in (await api.list(NODE)).items]
    except ApiError as failure:
        if failure.code not in (401, 403):
            raise
        return msgspec.structs.replace(scope, denied=frozenset({"nodes"}))
    return msgspec.structs.replace(scope, served=nodes)


async def _of_sidecarset(api: Api, raw: bytes, now: datetime) -> Scope:
    """Pods that were injected with it, wherever they are."""
    found = msgspec.json.decode(raw, type=SidecarSet)
    if found.spec.selector is None:
        return Scope(basis=Around(now=now))
    pods = await _selected(api, "", found.spec.selector)
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


async def _selected(api: Api, namespace: str, selector: LabelSelector, most: int = MOST_PODS) -> list[Pod]:
    """The pods of these labels, the first of them if there are too many; 0: all."""
    page = await api.list(POD, namespace, label_selector=str(Selector.compile(selector)), limit=most)
    return [msgspec.json.decode(item, type=Pod) for item in page.items]


_FINDERS: Mapping[Resource, Callable[[Api, bytes, datetime], Awaitable[Scope]]] = {
    CLONE_SET: _of_cloneset,
    DAEMON_SET: _of_daemonset,
    STATEFUL_SET: _of_statefulset,
    SIDECAR_SET: _of_sidecarset,
    RECREATE_REQUEST: _of_request,
    NODE_IMAGE: _of_node_image,
}
