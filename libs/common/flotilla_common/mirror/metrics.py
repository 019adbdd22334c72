"""What a mirror shows of itself: how much it holds, how fresh that is."""

from collections.abc import Callable

from prometheus_client import Gauge

from flotilla_common.api.resources import Resource

OBJECTS = Gauge("flotilla_mirror_objects", "Objects in the mirror by resource.", ["resource"])
LAG = Gauge("flotilla_mirror_lag_seconds", "Seconds since the last proof that it is up to date.", ["resource"])
UNDECODABLE = Gauge("flotilla_mirror_undecodable_objects", "Objects that cannot be decoded now.", ["resource"])
DIRECT = Gauge("flotilla_mirror_direct", "1 while a resource is watched directly, without the bus.", ["resource"])


def report(
    resource: Resource,
    *,
    objects: Callable[[], int],
    lag: Callable[[], float],
    undecodable: Callable[[], int],
    direct: Callable[[], bool],
) -> None:
    """Let the series of one resource follow the mirror; they are computed when somebody asks."""
    OBJECTS.labels(resource.id).set_function(lambda: float(objects()))
    LAG.labels(resource.id).set_function(lag)
    UNDECODABLE.labels(resource.id).set_function(lambda: float(undecodable()))
    DIRECT.labels(resource.id).set_function(lambda: float(direct()))
