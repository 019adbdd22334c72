"""The ResourceDistribution controller: what it watches and writes."""

from flotilla_common.control.spec import ControllerSpec
from flotilla_sidecar.resourcedistribution.gather import COPIES, DISTRIBUTIONS, NAMESPACES, Gatherer, read_copies
from flotilla_sidecar.resourcedistribution.plan import plan

CONTROLLER = ControllerSpec(
    name="resourcedistribution-controller",
    primary=DISTRIBUTIONS,
    watches=(NAMESPACES, *COPIES.values()),
    build=lambda wiring, options: Gatherer(wiring),
    plan=plan,
    also_read=read_copies,
)
