"""The ImagePullJob controller: what it watches and writes."""

from flotilla_common.api.resources import SECRET
from flotilla_common.control import spec
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Access
from flotilla_common.settings import Settings
from flotilla_jobs.imagepull.gather import CLONE_SETS, COPIES, IMAGES, JOBS, LISTS, PODS, Gatherer
from flotilla_jobs.imagepull.plan import plan
from flotilla_jobs.imagepull.snapshot import Options
from flotilla_jobs.switches import jobs_off


def options(settings: Settings, server_version: str) -> Options:
    """The settings that decide about plans."""
    return Options(
        default_ttl=settings.default_ttlseconds_for_always_nodeimage,
        secrets_namespace=settings.daemon_config_namespace,
    )


CONTROLLER = ControllerSpec(
    name="imagepulljob-controller",
    primary=JOBS,
    watches=(LISTS, IMAGES, PODS, COPIES, CLONE_SETS),
    access=(Access(SECRET, ("get",)),),  # pull secrets, by the names that jobs give; never a list of them
    off=jobs_off,
    options=spec.Options(Options, options),
    build=Gatherer,
    plan=plan,
)
