"""The installed services, and the kinds that their controllers plan."""

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from flotilla_common.api.resources import Resource
from flotilla_common.bus.permissions import OPERATOR, OPERATOR_PERMISSIONS, READER, READER_PERMISSIONS, Permissions
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.installed import installed_components
from flotilla_common.service import Service

ON_DEMAND = ("console", "statemetrics")
"""Services that run only if they are named: they show objects, and plan nothing."""

APART = ("console",)
"""Services that share a process with no other in a cluster, because browsers reach them."""


def usual() -> list[str]:
    """Return the names of the services that run by default."""
    return [name for name in installed() if name not in ON_DEMAND]


def installed() -> dict[str, EntryPoint]:
    """Return the services by name, without loading them."""
    return {
        point.name: point for point in sorted(entry_points(group="flotilla.services"), key=lambda point: point.name)
    }


def load(point: EntryPoint) -> Service:
    """Load the service behind an entry point."""
    service = point.load()()
    assert isinstance(service, Service)
    return service


def load_all() -> Sequence[Service]:
    """Load all installed services, in the order of their names."""
    return [load(point) for point in installed().values()]


def bus_permissions() -> Mapping[str, Permissions]:
    """Return the permissions of the users of the bus: services, people, and the read-only user."""
    own = {service.name: service.permissions for service in load_all() if service.permissions is not None}
    return {**own, OPERATOR: OPERATOR_PERMISSIONS, READER: READER_PERMISSIONS}


def controllers() -> Mapping[Resource, ControllerSpec[Any, Any]]:
    """Return the controllers of all installed services by the kind that they plan."""
    parts = [part for parts in installed_components().values() for part in parts]
    return {part.resource: part for part in parts if isinstance(part, ControllerSpec)}
