"""The PersistentPodState controller: what it watches and writes."""

from flotilla_common.control.spec import ControllerSpec
from flotilla_statefulset.persistentpodstate.gather import (
    BUILT_IN_SETS,
    CONFIGURATIONS,
    NODES,
    PODS,
    SETS,
    STATES,
    Gatherer,
)
from flotilla_statefulset.persistentpodstate.plan import plan

CONTROLLER = ControllerSpec(
    name="persistentpodstate-controller",
    primary=STATES,
    watches=(BUILT_IN_SETS, SETS, PODS, NODES, CONFIGURATIONS),
    build=lambda wiring, options: Gatherer(wiring),
    keys=Gatherer.keys,
    plan=plan,
)
