"""The program of the policy service: its controllers."""

from flotilla_common.service import Service, run_alone
from flotilla_common.service_runner import controller_service
from flotilla_policy.nodepodprobe.controller import CONTROLLER as NODE_POD_PROBES
from flotilla_policy.podprobemarker.controller import CONTROLLER as POD_PROBE_MARKERS
from flotilla_policy.podunavailablebudget.controller import CONTROLLER as POD_UNAVAILABLE_BUDGETS

PARTS = (POD_UNAVAILABLE_BUDGETS, POD_PROBE_MARKERS, NODE_POD_PROBES)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return controller_service("policy", PARTS)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
