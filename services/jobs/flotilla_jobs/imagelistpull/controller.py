"""The ImageListPullJob controller: what it watches and writes."""

from flotilla_common.control.spec import ControllerSpec
from flotilla_jobs.imagelistpull.gather import JOBS, LISTS, Gatherer
from flotilla_jobs.imagelistpull.plan import plan
from flotilla_jobs.switches import jobs_off

CONTROLLER = ControllerSpec(
    name="imagelistpulljob-controller",
    primary=LISTS,
    watches=(JOBS,),
    off=jobs_off,
    build=lambda wiring, options: Gatherer(wiring),
    plan=plan,
)
