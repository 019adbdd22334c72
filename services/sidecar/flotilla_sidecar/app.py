"""The sidecar service on one page: its controllers."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.assembly import controller_service
from flotilla_common.service import Service
from flotilla_sidecar.podreadiness.controller import pod_readiness
from flotilla_sidecar.resourcedistribution.controller import CONTROLLER as RESOURCE_DISTRIBUTIONS
from flotilla_sidecar.sidecarset.controller import CONTROLLER as SIDECAR_SETS

PARTS = (pod_readiness(CLONE_SET, STATEFUL_SET), RESOURCE_DISTRIBUTIONS, SIDECAR_SETS)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return controller_service("sidecar", PARTS)
