"""The services that are installed beside this command, and the kinds that their controllers plan."""

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import click

from flotilla_common.api.resources import Resource
from flotilla_common.bus.permissions import OPERATOR, OPERATOR_PERMISSIONS, READER, READER_PERMISSIONS, Permissions
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.installed import installed_parts
from flotilla_common.service import Service

ON_DEMAND = ("statemetrics",)
"""Services that run only where somebody asks for them by name."""


def usual() -> list[str]:
    """Return the names of the services that run unless others are named."""
    return [name for name in installed() if name not in ON_DEMAND]


def installed() -> dict[str, EntryPoint]:
    """The services by name; loaded only when they are asked for more."""
    return {
        point.name: point for point in sorted(entry_points(group="flotilla.services"), key=lambda point: point.name)
    }


def load(point: EntryPoint) -> Service:
    """The service behind an entry point."""
    service = point.load()()
    assert isinstance(service, Service)
    return service


def load_all() -> Sequence[Service]:
    """All installed services, by name."""
    return [load(point) for point in installed().values()]


def bus_permissions() -> Mapping[str, Permissions]:
    """What the users of the bus may do: services, people, and whoever only reads."""
    own = {service.name: service.permissions for service in load_all() if service.permissions is not None}
    return {**own, OPERATOR: OPERATOR_PERMISSIONS, READER: READER_PERMISSIONS}


def controllers() -> Mapping[Resource, ControllerSpec[Any]]:
    """The controllers of all installed services, by the kind that they plan."""
    parts = [part for parts in installed_parts().values() for part in parts]
    return {part.resource: part for part in parts if isinstance(part, ControllerSpec)}


def controller_of(resource: Resource) -> ControllerSpec[Any]:
    """The controller that plans the kind. Raises click.ClickException when no installed service does."""
    found = controllers().get(resource)
    if found is None:
        raise click.ClickException(f"no installed service plans {resource.plural}")
    return found
