"""The EphemeralJob controller: what it watches and writes."""

from flotilla_common.control.spec import ControllerSpec
from flotilla_jobs.ephemeraljob.gather import JOBS, PODS, Gatherer
from flotilla_jobs.ephemeraljob.plan import plan

CONTROLLER = ControllerSpec(
    name="ephemeraljob-controller",
    primary=JOBS,
    watches=(PODS,),
    build=lambda wiring, options: Gatherer(wiring),
    plan=plan,
)
