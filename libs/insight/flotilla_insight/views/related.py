"""Reads the objects that belong to an object from the apiserver, as the view of its kind defines."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.resources import NODE, POD
from flotilla_common.api.selectors import Selector
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.causes import PodContext
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import Coverage, CoveredNodes, KindView, PodQuery, Related

MOST_PODS = 1000
"""Limit of pods for one object, unless each is on a node of its own: then all are read."""


async def related_of(api: Api, kind: KindView, raw: bytes, now: datetime) -> Related:
    """Return what belongs to the object itself. Raises ApiError (403: pods may not be read) and Unreachable."""
    if kind.related is not None:
        return await kind.related(api, raw, now)
    query, basis = pod_query(kind, raw), basis_of(kind, raw, now)
    if query is None:
        return Related(basis=basis)
    covers = _covers(kind, raw)
    pods = await pods_of(api, query, metadata_of(raw), most=MOST_PODS if kind.coverage is None else 0)
    related = Related(pods=pods, basis=basis, namespaced=query.everywhere)
    if covers is None:
        return related
    nodes = await _all_nodes(api)
    if nodes is None:
        return msgspec.structs.replace(related, denied=frozenset({"nodes"}))
    return msgspec.structs.replace(related, served=CoveredNodes(nodes=nodes, pods=pods, coverage=covers))


async def children_of(api: Api, kind: KindView, raw: bytes) -> list[tuple[KindView, bytes]]:
    """Return the objects of the view's `children` that the object controls. Raises ApiError and Unreachable."""
    meta = metadata_of(raw)
    found: list[tuple[KindView, bytes]] = []
    for resource in kind.children:
        page = await found_or_none(api.list(resource, meta.namespace))  # None: the cluster does not serve the kind
        items = map(bytes, page.items if page is not None else ())
        found += [(view_of(resource), item) for item in items if controls(meta, metadata_of(item))]
    return found


async def pods_of(api: Api, query: PodQuery, owner: ObjectMeta, most: int = MOST_PODS) -> list[Pod]:
    """Return the pods of the query, at most `most` (0: all)."""
    namespace, selector = "" if query.everywhere else owner.namespace, str(Selector.compile(query.selector))
    page = await api.list(POD, namespace, label_selector=selector, limit=most)
    pods = [msgspec.json.decode(item, type=Pod) for item in page.items]
    if query.keep is not None:
        return list(filter(query.keep, pods))
    return [pod for pod in pods if any(one.uid == owner.uid for one in pod.metadata.owner_references)]


def pod_query(kind: KindView, raw: bytes) -> PodQuery | None:
    """Return the query for the object's pods; None if it has none, or its selector cannot be read."""
    if kind.pods is not None:
        return kind.pods(raw)
    return PodQuery(selector=kind.workload(raw).selector) if kind.workload is not None else None


def basis_of(kind: KindView, raw: bytes, now: datetime) -> PodContext:
    """Return the context that a workload's spec defines for all of its pods."""
    if kind.workload is None:
        return PodContext(now=now)
    return kind.workload(raw).context(PodContext(now=now))


def controls(owner: ObjectMeta, dependent: ObjectMeta) -> bool:
    """Report whether the dependent's controller is the owner."""
    return any(one.controller and one.uid == owner.uid for one in dependent.owner_references)


async def node_itself(_: Api, raw: bytes, now: datetime) -> Related:
    """Return the node that the object is about, which has its name."""
    return Related(nodes=[metadata_of(raw).name], basis=PodContext(now=now))


def _covers(kind: KindView, raw: bytes) -> Coverage | None:
    """Return how the object covers nodes; None also if its template cannot be decoded, as it has no pods then."""
    try:
        return kind.coverage(raw) if kind.coverage is not None else None
    except ValueError:
        return None


async def _all_nodes(api: Api) -> Sequence[Node] | None:
    """Return the nodes of the cluster; None if they may not be read. Raises ApiError and Unreachable."""
    try:
        return [msgspec.json.decode(item, type=Node) for item in (await api.list(NODE)).items]
    except ApiError as failure:
        if failure.code not in (401, 403):
            raise
        return None
