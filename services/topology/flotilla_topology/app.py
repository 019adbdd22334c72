"""The program of the topology service: its controllers."""

from flotilla_common.service import Service, run_alone
from flotilla_common.service_runner import controller_service
from flotilla_topology.uniteddeployment.controller import CONTROLLER as UNITED_DEPLOYMENTS
from flotilla_topology.workloadspread.controller import CONTROLLER as WORKLOAD_SPREADS

PARTS = (UNITED_DEPLOYMENTS, WORKLOAD_SPREADS)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return controller_service("topology", PARTS)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
