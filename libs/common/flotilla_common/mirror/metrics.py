"""What a mirror shows of itself: how much it holds, how fresh that is."""

from typing import Any

from prometheus_client import Gauge

from flotilla_common.mirror.feed import Feed
from flotilla_common.mirror.intake import Intake
from flotilla_common.mirror.named import NamedFeed

OBJECTS = Gauge("flotilla_mirror_objects", "Objects in the mirror by resource.", ["resource"])
LAG = Gauge("flotilla_mirror_lag_seconds", "Seconds since the last proof that it is up to date.", ["resource"])
UNDECODABLE = Gauge("flotilla_mirror_undecodable_objects", "Objects that cannot be decoded now.", ["resource"])
DIRECT = Gauge("flotilla_mirror_direct", "1 while a resource is watched directly, without the bus.", ["resource"])


def report(intake: Intake[Any], feed: Feed | NamedFeed) -> None:
    """Let the series of one resource follow its table; they are computed when somebody asks."""
    resource = intake.resource.id
    OBJECTS.labels(resource).set_function(lambda: len(intake.table))
    LAG.labels(resource).set_function(lambda: feed.lag)
    UNDECODABLE.labels(resource).set_function(lambda: len(intake.undecodable))
    DIRECT.labels(resource).set_function(lambda: feed.direct)
