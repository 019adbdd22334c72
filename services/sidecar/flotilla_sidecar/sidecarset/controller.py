"""The SidecarSet controller: what it watches, writes, and is made of."""

from flotilla_common.control import spec
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.settings import Settings
from flotilla_sidecar.sidecarset.gather import NAMESPACES, PODS, REVISIONS, SIDECAR_SETS, Gatherer
from flotilla_sidecar.sidecarset.plan import plan
from flotilla_sidecar.sidecarset.snapshot import Options


def options(settings: Settings, server_version: str) -> Options:
    """The settings that decide about plans."""
    return Options(system_namespace=settings.namespace, drop_field_owners=not settings.keep_managed_fields)


CONTROLLER = ControllerSpec(
    name="sidecarset-controller",
    primary=SIDECAR_SETS,
    wakes_itself=False,  # the gatherer says which changes of a SidecarSet matter
    watches=(PODS, NAMESPACES, REVISIONS),
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
