"""Computes the apiserver access that a service needs, from the declarations of its parts."""

from collections.abc import Iterable

from flotilla_common.api.resources import EVENT, LEASE, Resource
from flotilla_common.control.spec import ControllerSpec, Part
from flotilla_common.control.watches import Access

READ = ("get", "list", "watch")

OWN_NAMESPACE = "namespace"
"""The setting that names Flotilla's own namespace."""

LEASES = Access(LEASE, ("create", "delete", "get", "list", "update"), namespace=OWN_NAMESPACE)
"""Access of services that share work among replicas."""

EVENTS = Access(EVENT, ("create", "patch"))


def access_of(parts: Iterable[Part]) -> list[Access]:
    """Return the access that the parts need, events and leases included; empty without parts."""
    found = [access for part in parts for access in _of_part(part)]
    return [*found, EVENTS, LEASES] if found else []


def reading(resources: Iterable[Resource]) -> tuple[Access, ...]:
    """Return the access for LIST and WATCH of all objects of these resources."""
    return tuple(Access(resource, READ) for resource in resources)


def _of_part(part: Part) -> Iterable[Access]:
    yield from part.access
    for watch in part.all_watches:
        yield Access(watch.resource, (*READ, *watch.writes), namespace=watch.private)
        yield from (Access(watch.resource, ("patch",), subresource=name) for name in watch.subresources)
    made = [watch.owner for watch in part.all_watches if "create" in watch.writes]
    if isinstance(part, ControllerSpec) and part.resource in made:
        # Creating objects with blockOwnerDeletion takes the right to set finalizers of their owner.
        yield Access(part.resource, ("update",), subresource="finalizers")
