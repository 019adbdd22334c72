"""The program of the sidecar service: its controllers."""

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.service import Service, run_alone
from flotilla_common.service_runner import controller_service
from flotilla_sidecar.launchpriority.controller import CONTROLLER as LAUNCH_PRIORITIES
from flotilla_sidecar.podreadiness.controller import pod_readiness
from flotilla_sidecar.resourcedistribution.controller import CONTROLLER as RESOURCE_DISTRIBUTIONS
from flotilla_sidecar.sidecarset.controller import CONTROLLER as SIDECAR_SETS
from flotilla_sidecar.terminator.controller import CONTROLLER as TERMINATOR

PARTS = (
    pod_readiness(BROADCAST_JOB, CLONE_SET, DAEMON_SET, STATEFUL_SET),
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
