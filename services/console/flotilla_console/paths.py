"""Paths of the console's pages. Each segment is quoted, because names in links may come from anywhere."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

FLEET = "/"
CORE = "core"
"""The segment for the core group, as in subjects of the bus."""
CLUSTER = "-"
"""The segment for the namespace of cluster-scoped objects."""


def path(*segments: str, query: Mapping[str, str] | None = None) -> str:
    """Return the path of these segments, with a query if there is one."""
    joined = "/" + "/".join(quote(segment, safe="") for segment in segments)
    return f"{joined}?{urlencode(query)}" if query else joined


def workload(
    group: str, plural: str, namespace: str, name: str, *rest: str, query: Mapping[str, str] | None = None
) -> str:
    """Return the path of a workload's page, or of a page below it (`timeline`; `action`, verb)."""
    return path("workloads", group or CORE, plural, namespace or CLUSTER, name, *rest, query=query)


def pod(namespace: str, name: str, *rest: str) -> str:
    """Return the path of a pod's page."""
    return path("pods", namespace, name, *rest)


def node(name: str) -> str:
    """Return the path of a node's page."""
    return path("nodes", name)
