"""What a ResourceDistribution must not be, in its hub version (resourcedistribution.md §4).

Values of the resource are never shown: it may be a Secret, and refusals are logged in many places.
"""

import re
from collections.abc import Iterator

from flotilla_common.api.admission.fields import Fault, forbidden, invalid, required
from flotilla_common.api.documents import Json, mapping, member
from flotilla_common.api.errors import ApiError
from flotilla_common.api.kinds.resourcedistribution.types import (
    DISTRIBUTED,
    NamespaceNames,
    ResourceDistribution,
    Targets,
    distributed,
)
from flotilla_common.api.selectors import Selector

RESOURCE, TARGETS = "spec.resource", "spec.targets"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IDENTITY = ("apiVersion", "kind", "metadata.name")
_NO_LABEL = (
    "must consist of at most 63 lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character"
)


def resource_of(document: Json) -> Json:
    """What is to be distributed."""
    return member(document, "spec", "resource")


def resource_faults(resource: Json, old: Json | None) -> Iterator[Fault]:
    """What is wrong with the resource before anybody has tried to make it; `old`: before the change."""
    if not resource:
        yield required(RESOURCE)
    elif distributed(resource) is None:
        supported = ", ".join(f"{one.api_version} {one.kind}" for one in DISTRIBUTED)
        yield invalid(RESOURCE, shown(resource), f"unsupported resource, supported are: {supported}")
    elif old is not None and _identity(resource) != _identity(old):
        yield invalid(RESOURCE, shown(resource), f"{', '.join(_IDENTITY)} are immutable")


def trial_fault(resource: Json, refusal: ApiError) -> Fault | None:
    """What the apiserver has against the resource, given its answer to a trial; None if that is no matter of it."""
    if refusal.reason == "AlreadyExists":
        return None
    if refusal.code in (400, 422):
        return invalid(RESOURCE, shown(resource), refusal.message)
    return forbidden(RESOURCE, refusal.message) if refusal.code == 403 else internal(refusal.message)


def internal(message: str) -> Fault:
    """The resource could not be judged."""
    return Fault(RESOURCE, f"Internal error: {message}")


def target_faults(distribution: ResourceDistribution) -> Iterator[Fault]:
    """What is wrong with the choice of namespaces."""
    targets = distribution.spec.targets
    yield from _name_faults(f"{TARGETS}.includedNamespaces", targets.included_namespaces)
    yield from _name_faults(f"{TARGETS}.excludedNamespaces", targets.excluded_namespaces)
    if both := sorted({*targets.included_namespaces.names} & {*targets.excluded_namespaces.names}):
        detail = f"ambiguous targets: namespaces are both included and excluded: {', '.join(both)}"
        yield invalid(TARGETS, list(both), detail)
    yield from _selector_faults(targets)


def shown(resource: Json) -> str:
    """The resource in a message, without anything that it holds."""
    metadata = mapping(resource.get("metadata"))
    return f"{resource.get('apiVersion')} {resource.get('kind')} {metadata.get('name')}"


def _name_faults(path: str, names: NamespaceNames) -> Iterator[Fault]:
    return (invalid(path, name, _NO_LABEL) for name in names.names if not _LABEL.fullmatch(name))


def _selector_faults(targets: Targets) -> Iterator[Fault]:
    try:
        Selector.compile(targets.namespace_selector)
    except ValueError as fault:
        yield Fault(f"{TARGETS}.namespaceSelector", f"Invalid value: {fault}")


def _identity(resource: Json) -> tuple[object, ...]:
    return resource.get("apiVersion"), resource.get("kind"), member(resource, "metadata").get("name")
