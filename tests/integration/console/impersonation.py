"""The rules that let the console make requests as users: those of the chart, for any resource."""

from flotilla_common.api.resources import Resource
from flotilla_common.control.watches import AccessRule

IDENTITY = "authentication.k8s.io"


def constrained(verb: str, resource: Resource) -> tuple[AccessRule, ...]:
    """Return the rules for one verb on a resource, since Kubernetes 1.36."""
    users, groups = (Resource(IDENTITY, "v1", plural, plural, namespaced=False) for plural in ("users", "groups"))
    on = AccessRule(resource, (f"impersonate-on:user-info:{verb}",))
    return (*(AccessRule(one, ("impersonate:user-info",)) for one in (users, groups)), on)


def plain() -> tuple[AccessRule, ...]:
    """Return the rules for any request, in all versions."""
    users, groups = (Resource("", "v1", plural, plural, namespaced=False) for plural in ("users", "groups"))
    return tuple(AccessRule(one, ("impersonate",)) for one in (users, groups))
