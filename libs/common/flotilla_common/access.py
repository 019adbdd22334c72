"""Computes the apiserver access that a service needs, from the declarations of its components."""

from collections.abc import Iterable

from flotilla_common.api.resources import EVENT, LEASE, Resource
from flotilla_common.control.spec import Component, ControllerSpec
from flotilla_common.control.watches import AccessRule

READ = ("get", "list", "watch")

OWN_NAMESPACE = "namespace"
"""The setting that names Flotilla's own namespace."""

LEASES = AccessRule(LEASE, ("create", "delete", "get", "list", "update"), namespace=OWN_NAMESPACE)
"""Access of services that share work among replicas."""

EVENTS = AccessRule(EVENT, ("create", "patch"))


def access_of(components: Iterable[Component]) -> list[AccessRule]:
    """Return the access that the components need, events and leases included; empty without components."""
    found = [access for component in components for access in _of_component(component)]
    return [*found, EVENTS, LEASES] if found else []


def read_rules(resources: Iterable[Resource]) -> tuple[AccessRule, ...]:
    """Return the access for LIST and WATCH of all objects of these resources."""
    return tuple(AccessRule(resource, READ) for resource in resources)


def _of_component(component: Component) -> Iterable[AccessRule]:
    yield from component.access
    for watch in component.all_watches:
        yield AccessRule(watch.resource, (*READ, *watch.writes), namespace=watch.private)
        yield from (AccessRule(watch.resource, ("patch",), subresource=name) for name in watch.subresources)
    made = [watch.owner for watch in component.all_watches if "create" in watch.writes]
    if isinstance(component, ControllerSpec) and component.resource in made:
        # Creating objects with blockOwnerDeletion takes the right to set finalizers of their owner.
        yield AccessRule(component.resource, ("update",), subresource="finalizers")
