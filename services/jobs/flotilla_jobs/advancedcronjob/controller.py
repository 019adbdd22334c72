"""The AdvancedCronJob controller: what it watches and writes."""

import os

from flotilla_common.api.kinds.advancedcronjob.zones import zone_named
from flotilla_common.control import spec
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.settings import Settings
from flotilla_jobs.advancedcronjob.gather import BROADCAST_JOBS, CRON_JOBS, JOBS, LISTS, Gatherer
from flotilla_jobs.advancedcronjob.plan import plan
from flotilla_jobs.advancedcronjob.snapshot import Options


def options(settings: Settings, server_version: str) -> Options:
    """The time zone that the environment names, as it does for every program."""
    zone = os.environ.get("TZ", "")
    try:
        zone_named(zone)
    except ValueError:
        return Options()
    return Options(zone=zone)


CONTROLLER = ControllerSpec(
    name="advancedcronjob-controller",
    primary=CRON_JOBS,
    watches=(JOBS, BROADCAST_JOBS, LISTS),
    idle_first=True,  # many are due in the same second: starts do not wait for the statuses of other starts
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
