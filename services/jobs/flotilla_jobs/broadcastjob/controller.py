"""The BroadcastJob controller: what it watches and writes."""

from flotilla_common.control import spec
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.settings import Settings
from flotilla_jobs.broadcastjob.gather import JOBS, NODES, PODS, Gatherer
from flotilla_jobs.broadcastjob.plan import plan
from flotilla_jobs.broadcastjob.snapshot import Options


def options(settings: Settings, server_version: str) -> Options:
    """The settings that decide about plans."""
    return Options(system_namespace=settings.namespace, assign_by_scheduler=settings.assign_bcj_pods_by_scheduler)


CONTROLLER = ControllerSpec(
    name="broadcastjob-controller",
    primary=JOBS,
    watches=(PODS, NODES),
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
