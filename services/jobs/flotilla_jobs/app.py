"""The jobs service: its controllers, and its responders to node agents."""

from flotilla_common.service import Service, run_alone
from flotilla_common.service_runner import controller_service
from flotilla_jobs.advancedcronjob.controller import CONTROLLER as ADVANCED_CRON_JOBS
from flotilla_jobs.broadcastjob.controller import CONTROLLER as BROADCAST_JOBS
from flotilla_jobs.containerrecreate.controller import CONTROLLER as CONTAINER_RECREATE_REQUESTS
from flotilla_jobs.ephemeraljob.controller import CONTROLLER as EPHEMERAL_JOBS
from flotilla_jobs.imagelistpull.controller import CONTROLLER as IMAGE_LIST_PULL_JOBS
from flotilla_jobs.imagepull.controller import CONTROLLER as IMAGE_PULL_JOBS
from flotilla_jobs.node_reports import REPORTS
from flotilla_jobs.nodeimage.controller import CONTROLLER as NODE_IMAGES
from flotilla_jobs.pull_secrets import PULL_SECRETS

PARTS = (
    NODE_IMAGES,
    IMAGE_PULL_JOBS,
    IMAGE_LIST_PULL_JOBS,
    CONTAINER_RECREATE_REQUESTS,
    BROADCAST_JOBS,
    ADVANCED_CRON_JOBS,
    EPHEMERAL_JOBS,
    PULL_SECRETS,
    REPORTS,
)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return controller_service("jobs", PARTS)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
