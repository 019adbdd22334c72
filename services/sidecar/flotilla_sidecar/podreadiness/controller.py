"""The pod readiness controller (install.md §11)."""

from flotilla_common.api.resources import Resource
from flotilla_common.control.spec import ControllerSpec
from flotilla_sidecar.podreadiness.gather import PODS, Gatherer
from flotilla_sidecar.podreadiness.plan import PodSnapshot, plan

WORKERS = 3
"""As the reference: one patch per pod is all there is to do."""


def pod_readiness(*merging: Resource) -> ControllerSpec[PodSnapshot]:
    """The controller. Pods of `merging` kinds, where those are served, get their condition from their own
    controllers, which merge it into writes that they make anyway."""
    return ControllerSpec(
        name="pod-readiness-controller",
        primary=PODS,
        wakes_itself=False,
        workers=WORKERS,
        off=lambda settings, gates: "",
        build=lambda wiring, options: Gatherer(wiring, merging),
        keys=Gatherer.keys,
        plan=plan,
    )
