"""Finds the installed services and the specs of their controllers.

Services never import each other; they find each other's declarations by entry points, like plug-ins.
"""

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource
from flotilla_common.control.spec import Component
from flotilla_common.gates import Gates


def installed_components() -> Mapping[str, tuple[Component, ...]]:
    """Return the components of each installed service of controllers, by service name."""
    points = sorted(entry_points(group="flotilla.parts"), key=lambda point: point.name)
    return {point.name: point.load() for point in points}


def published() -> tuple[Resource, ...]:
    """Return the resources that the watcher publishes: our own kinds and all others that installed services mirror."""
    components = [component for service in installed_components().values() for component in service]
    return tuple(dict.fromkeys((*mirrored(components), *(kind.resource for kind in catalogue.KINDS))))


def mirrored(components: Iterable[Component], gates: Gates | None = None) -> Iterable[Resource]:
    """Return the resources that these components read from the bus, without duplicates and disabled `gates`."""
    watches = [watch for component in components for watch in component.all_watches if not watch.direct]
    return dict.fromkeys(watch.resource for watch in watches if gates is None or not watch.gate or gates.on(watch.gate))
