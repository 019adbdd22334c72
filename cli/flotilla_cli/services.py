"""The services that are installed beside this command, and the kinds that they plan."""

from importlib.metadata import EntryPoint, entry_points

from flotilla_common.api.resources import Resource
from flotilla_common.control.offline import Offline
from flotilla_common.service import Service


def installed() -> dict[str, EntryPoint]:
    """The services by name; loaded only when they are asked for more."""
    return {
        point.name: point for point in sorted(entry_points(group="flotilla.services"), key=lambda point: point.name)
    }


def offline_kinds() -> dict[Resource, Offline]:
    """The kinds that can be planned without their service."""
    found: dict[Resource, Offline] = {}
    for point in installed().values():
        service = point.load()()
        assert isinstance(service, Service)
        found |= {kind.resource: kind for kind in service.offline}
    return found
