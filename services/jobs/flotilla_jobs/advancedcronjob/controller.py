"""The AdvancedCronJob controller: what it watches and writes."""

from flotilla_common.control.spec import ControllerSpec
from flotilla_jobs.advancedcronjob.gather import BROADCAST_JOBS, CRON_JOBS, JOBS, LISTS, Gatherer
from flotilla_jobs.advancedcronjob.plan import plan

CONTROLLER = ControllerSpec(
    name="advancedcronjob-controller",
    primary=CRON_JOBS,
    watches=(JOBS, BROADCAST_JOBS, LISTS),
    build=lambda wiring, options: Gatherer(wiring),
    plan=plan,
)
