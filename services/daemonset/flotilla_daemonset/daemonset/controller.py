"""The DaemonSet controller: what it watches, writes, and is made of."""

from flotilla_common.control import spec
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.settings import Settings
from flotilla_daemonset.daemonset.gather import DAEMON_SETS, NODES, PODS, PULL_JOBS, REVISIONS, Gatherer
from flotilla_daemonset.daemonset.plan import plan
from flotilla_daemonset.daemonset.snapshot import Options


def options(settings: Settings, server_version: str) -> Options:
    """The settings that decide about plans."""
    return Options(
        system_namespace=settings.namespace,
        drop_field_owners=not settings.keep_managed_fields,
        assign_by_scheduler=settings.assign_pods_by_scheduler,
        server_version=server_version,
    )


CONTROLLER = ControllerSpec(
    name="daemonset-controller",
    primary=DAEMON_SETS,
    watches=(PODS, NODES, REVISIONS, PULL_JOBS),
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
