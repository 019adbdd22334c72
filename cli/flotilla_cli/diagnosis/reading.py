"""Lists of pods and nodes, read from the apiserver."""

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import NODE, POD
from flotilla_common.api.selectors import Selector
from flotilla_common.kube.interface import Api, ApiError

MOST_PODS = 1000
"""Of one object that are looked at, unless each is on a node of its own: then all are."""


async def selected(api: Api, namespace: str, selector: LabelSelector, most: int = MOST_PODS) -> list[Pod]:
    """The pods of these labels, the first of them if there are too many; 0: all."""
    page = await api.list(POD, namespace, label_selector=str(Selector.compile(selector)), limit=most)
    return [msgspec.json.decode(item, type=Pod) for item in page.items]


async def all_nodes(api: Api) -> list[Node] | None:
    """Those of the cluster; None if they may not be read. Raises ApiError and Unreachable."""
    try:
        return [msgspec.json.decode(item, type=Node) for item in (await api.list(NODE)).items]
    except ApiError as failure:
        if failure.code not in (401, 403):
            raise
        return None
