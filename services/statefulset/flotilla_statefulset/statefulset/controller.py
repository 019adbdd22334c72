"""The StatefulSet controller: what it watches, writes, and is made of."""

from flotilla_common.control import spec
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.settings import Settings
from flotilla_statefulset.statefulset.gather import (
    CLAIMS,
    PODS,
    PULL_JOBS,
    REVISIONS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Gatherer,
)
from flotilla_statefulset.statefulset.plan import plan
from flotilla_statefulset.statefulset.snapshot import Options


def options(settings: Settings, server_version: str) -> Options:
    """The settings that decide about plans."""
    return Options(
        system_namespace=settings.namespace,
        drop_field_owners=not settings.keep_managed_fields,
        server_version=server_version,
    )


CONTROLLER = ControllerSpec(
    name="statefulset-controller",
    primary=STATEFUL_SETS,
    watches=(PODS, CLAIMS, REVISIONS, STORAGE_CLASSES, PULL_JOBS),
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
