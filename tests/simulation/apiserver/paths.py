"""URL paths of the apiserver, read back into resources."""

from flotilla_common.api.resources import Resource
from tests.simulation.apiserver.errors import unknown_resource


def parse(path: str) -> tuple[Resource, str, str, str]:
    """Resource (without its kind), namespace, name and subresource. ApiError 404 for other paths."""
    parts = path.partition("?")[0].strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[1:]
    elif parts[0] == "apis" and len(parts) > 2:
        group, rest = parts[1], parts[2:]
    else:
        raise unknown_resource()
    version, rest = rest[0], rest[1:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if not rest:
        raise unknown_resource()
    plural, name, subresource = (*rest, "", "")[:3]
    return Resource(group, version, plural, "", bool(namespace)), namespace, name, subresource
