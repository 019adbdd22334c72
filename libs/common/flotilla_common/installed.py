"""Finds the installed services and the specs of their controllers.

Services never import each other; they find each other's declarations by entry points, like plug-ins.
"""

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource
from flotilla_common.control.spec import Part
from flotilla_common.gates import Gates


def installed_parts() -> Mapping[str, tuple[Part, ...]]:
    """Return the parts of each installed service of controllers, by service name."""
    points = sorted(entry_points(group="flotilla.parts"), key=lambda point: point.name)
    return {point.name: point.load() for point in points}


def published() -> tuple[Resource, ...]:
    """Return the resources that the watcher publishes: our own kinds and all others that installed services mirror."""
    parts = [part for service in installed_parts().values() for part in service]
    return tuple(dict.fromkeys((*mirrored(parts), *(kind.resource for kind in catalogue.KINDS))))


def mirrored(parts: Iterable[Part], gates: Gates | None = None) -> Iterable[Resource]:
    """Return the resources that these parts read from the bus, without duplicates and disabled `gates`."""
    watches = [watch for part in parts for watch in part.all_watches if not watch.direct]
    return dict.fromkeys(watch.resource for watch in watches if gates is None or not watch.gate or gates.on(watch.gate))
