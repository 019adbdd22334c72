"""The container launch priority controller: what it watches and writes."""

from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Access
from flotilla_sidecar.launchpriority.gather import PODS, Gatherer
from flotilla_sidecar.launchpriority.plan import plan

WORKERS = 4
"""As the reference (install.md §4)."""

CONTROLLER = ControllerSpec(
    name="container-launch-priority-controller",
    primary=PODS,
    wakes_itself=False,
    access=(Access(CONFIG_MAP, ("create", "get", "patch")),),
    workers=WORKERS,
    off=lambda settings, gates: "",
    build=lambda wiring, options: Gatherer(wiring),
    keys=Gatherer.keys,
    plan=plan,
)
