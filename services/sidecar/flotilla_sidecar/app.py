"""The program of the sidecar service: its controllers."""

from flotilla_common.service import Service, run_alone
from flotilla_common.service_runner import controller_service
from flotilla_sidecar.launchpriority.controller import CONTROLLER as LAUNCH_PRIORITIES
from flotilla_sidecar.podreadiness.controller import MERGING, pod_readiness
from flotilla_sidecar.resourcedistribution.controller import CONTROLLER as RESOURCE_DISTRIBUTIONS
from flotilla_sidecar.sidecarset.controller import CONTROLLER as SIDECAR_SETS
from flotilla_sidecar.terminator.controller import CONTROLLER as TERMINATOR

PARTS = (
    pod_readiness(*MERGING),
    LAUNCH_PRIORITIES,
    RESOURCE_DISTRIBUTIONS,
    SIDECAR_SETS,
    TERMINATOR,
)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return controller_service("sidecar", PARTS)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
