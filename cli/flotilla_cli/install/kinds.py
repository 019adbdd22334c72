"""The resources of an installation's objects, by kind, and their identity in output."""

import msgspec

from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.resources import CRD, MUTATING, NAMESPACE, VALIDATING, Resource

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
SERVICE = Resource("", "v1", "services", "Service")
OPTIONAL = frozenset(
    Resource(_ADMISSION, "v1", f"{word.lower()}admission{plural}", f"{word}Admission{kind}", namespaced=False)
    for word in ("Mutating", "Validating")
    for plural, kind in (("policies", "Policy"), ("policybindings", "PolicyBinding"))
)
"""Kinds that older apiservers do not serve, that may be switched off, and that an installation can do without."""

ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING = (
    Resource(_RBAC, "v1", f"{kind.lower()}s", kind, namespaced=not kind.startswith("Cluster"))
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
)

_ALL = (
    NAMESPACE,
    CRD,
    MUTATING,
    VALIDATING,
    SERVICE,
    *OPTIONAL,
    ACCOUNT,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
)
_BY_KIND = {resource.kind: resource for resource in _ALL}


class Place(msgspec.Struct, frozen=True):
    """The place of an object. The namespace is empty for cluster-scoped ones."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.kind} {self.name}{where}"


def place_of(document: Json) -> Place:
    """Return the place of an installation's object."""
    return Place(resource_of(document), namespace_of(document), name_of(document))


def resource_of(document: Json) -> Resource:
    """Return the resource of an installation's object."""
    return _BY_KIND[document["kind"]]


def namespace_of(document: Json) -> str:
    """Return the object's namespace; empty for cluster-scoped ones."""
    return text(member(document, "metadata").get("namespace"))


def name_of(document: Json) -> str:
    """Return the object's name."""
    return text(member(document, "metadata").get("name"))


def title(document: Json) -> str:
    """Return the object's name as in kubectl: `clusterrole.rbac.authorization.k8s.io/flotilla-watcher`."""
    resource = resource_of(document)
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{name_of(document)}"
