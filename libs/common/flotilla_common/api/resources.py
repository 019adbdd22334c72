"""The resources that Flotilla reads and writes: group, storage version, plural, kind, scope.

Mirrors watch storage versions only, so that they never depend on our own conversion webhook (architecture.md §3).
"""

import re
from urllib.parse import quote

import msgspec

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Matches path parts that need no escaping; anything else must not lead to another path."""


class Resource(msgspec.Struct, frozen=True):
    """A resource of the Kubernetes API in the version that Flotilla uses."""

    group: str  # empty for the core group
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return `group/version`, or `version` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def type_meta(self) -> dict[str, str]:
        """Return the members apiVersion and kind."""
        return {"apiVersion": self.api_version, "kind": self.kind}

    @property
    def id(self) -> str:
        """Return `<group>.<plural>` for streams and metrics, with `core` for no group and underscores for its dots."""
        return f"{(self.group or 'core').replace('.', '_')}.{self.plural}"

    @property
    def custom(self) -> bool:
        """Report whether one of our CRDs defines the kind, so that it may be missing."""
        return self.group.endswith("kruise.io")

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection, object or subresource.

        Without a namespace it spans all namespaces. Raises ValueError for a part that would lead elsewhere (`..`).
        """
        prefix = ("", "apis", self.group, self.version) if self.group else ("", "api", self.version)
        within = ("namespaces", namespace) if self.namespaced and namespace else ()
        parts = (*prefix, *within, self.plural, *(part for part in (name, subresource) if part))
        return "/".join(part if _PLAIN.fullmatch(part) else _escaped(part) for part in parts)


def _escaped(part: str) -> str:
    if part in (".", ".."):
        raise ValueError(f"{part!r} is not a valid name")
    return quote(part, safe="*:")


POD = Resource("", "v1", "pods", "Pod")
NODE = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CLAIM = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SECRET = Resource("", "v1", "secrets", "Secret")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
POD_TEMPLATE = Resource("", "v1", "podtemplates", "PodTemplate")
EVENT = Resource("", "v1", "events", "Event")
REVISION = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
STORAGE_CLASS = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
JOB = Resource("batch", "v1", "jobs", "Job")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SET = Resource("apps", "v1", "replicasets", "ReplicaSet")
BUILT_IN_STATEFUL_SET = Resource("apps", "v1", "statefulsets", "StatefulSet")
LEASE = Resource("coordination.k8s.io", "v1", "leases", "Lease")
TOKEN_REVIEW = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
CRD = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
MUTATING = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
)
VALIDATING = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False
)
