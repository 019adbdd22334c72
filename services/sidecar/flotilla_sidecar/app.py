"""The sidecar service on one page: its controllers."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.assembly import controller_service
from flotilla_common.service import Service
from flotilla_sidecar.podreadiness.controller import pod_readiness

PARTS = (pod_readiness(CLONE_SET, STATEFUL_SET),)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return controller_service("sidecar", PARTS)
