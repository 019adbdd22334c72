"""ResourceDistribution in its hub and storage version, apps.kruise.io/v1beta1 (resourcedistribution.md §2).

The distributed resource stays raw JSON: users compute the hash of its bytes, and copies are made from the original
text. Decisions read it through `ResourceDistribution.source`.
"""

from typing import TYPE_CHECKING

import msgspec

from flotilla_common.api.documents import Json, is_object, member, text
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.meta import LabelSelector, Model, Moment, ObjectMeta, struct_cached_property
from flotilla_common.api.resources import CONFIG_MAP, SECRET, Resource

if TYPE_CHECKING:
    from collections.abc import Sequence

RESOURCE_DISTRIBUTION = Resource(
    "apps.kruise.io", "v1beta1", "resourcedistributions", "ResourceDistribution", namespaced=False
)

GET_FAILED, CREATE_FAILED = "GetResourceFailed", "CreateResourceFailed"
UPDATE_FAILED, DELETE_FAILED = "UpdateResourceFailed", "DeleteResourceFailed"
CONFLICT, NO_NAMESPACE = "ConflictOccurred", "NamespaceNotExists"
CONDITIONS = (GET_FAILED, CREATE_FAILED, UPDATE_FAILED, DELETE_FAILED, CONFLICT, NO_NAMESPACE)
"""The types of the conditions, in the order that clients expect."""

DISTRIBUTED = (SECRET, CONFIG_MAP)
"""The resources that can be distributed."""


class NamespaceName(Model):
    name: str = ""


class NamespaceNames(Model):
    """Namespaces by name."""

    items: "list[NamespaceName]" = msgspec.field(default_factory=list[NamespaceName], name="list")

    @property
    def names(self) -> "Sequence[str]":
        """Return the names in their written order."""
        return [one.name for one in self.items]


class Targets(Model):
    """The namespaces that get a copy."""

    all_namespaces: bool = False
    included_namespaces: NamespaceNames = NamespaceNames()
    namespace_selector: LabelSelector = LabelSelector()
    excluded_namespaces: NamespaceNames = NamespaceNames()


class ResourceDistributionSpec(Model):
    resource: msgspec.Raw = msgspec.Raw(b"null")
    targets: Targets = Targets()


class DistributionCondition(Model):
    """One kind of failure, and the namespaces that it concerns."""

    type: str = ""
    status: str = ""  # True, False
    last_transition_time: Moment | None = None
    reason: str = ""
    failed_namespaces: list[str] = []


class ResourceDistributionStatus(Model):
    desired: int = 0
    succeeded: int = 0
    failed: int = 0
    observed_generation: int = 0
    conditions: list[DistributionCondition] = []


class Source(msgspec.Struct, frozen=True):
    """The distributed resource."""

    resource: Resource
    name: str
    document: Json


class ResourceDistribution(Model, dict=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceDistributionSpec = ResourceDistributionSpec()
    status: ResourceDistributionStatus = ResourceDistributionStatus()

    @struct_cached_property
    def source(self) -> Source:
        """Return the decoded `spec.resource`. Raises ValueError if it cannot be distributed."""
        document = read_json(self.spec.resource, object)
        if not is_object(document):
            raise ValueError("spec.resource is not an object")
        resource = distributed(document)
        name = text(member(document, "metadata").get("name"))
        if resource is None or not name:
            raise ValueError("spec.resource is not a Secret or ConfigMap with a name")
        return Source(resource, name, document)


def distributed(document: Json) -> Resource | None:
    """Return the resource that the document is of, in any version; None if it cannot be distributed."""
    core, kind = "/" not in text(document.get("apiVersion")), document.get("kind")
    return next((one for one in DISTRIBUTED if core and kind == one.kind), None)
