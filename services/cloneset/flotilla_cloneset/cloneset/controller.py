"""The CloneSet controller: what it watches, writes, and is made of."""

from flotilla_cloneset.cloneset.gather import CLAIMS, CLONE_SETS, NODES, PODS, PULL_JOBS, REVISIONS, Gatherer
from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_common.control import spec
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.settings import Settings


def options(settings: Settings, server_version: str) -> Options:
    """The settings that decide about plans."""
    return Options(
        exclude_preparing_delete=settings.cloneset_scaling_exclude_preparing_delete,
        system_namespace=settings.namespace,
        drop_field_owners=not settings.keep_managed_fields,
        server_version=server_version,
    )


CONTROLLER = ControllerSpec(
    name="cloneset-controller",
    primary=CLONE_SETS,
    watches=(PODS, CLAIMS, REVISIONS, NODES, PULL_JOBS),
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
