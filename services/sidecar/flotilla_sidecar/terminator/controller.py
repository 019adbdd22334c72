"""The sidecar terminator: what it watches and writes."""

from flotilla_common.control.spec import ControllerSpec
from flotilla_sidecar.terminator.gather import GATE, NODES, PODS, REQUESTS, Gatherer
from flotilla_sidecar.terminator.plan import plan

CONTROLLER = ControllerSpec(
    name="sidecarterminator-controller",
    primary=PODS,
    wakes_itself=False,
    watches=(NODES, REQUESTS),
    workers=lambda settings: settings.sidecarterminator_workers,
    off=lambda settings, gates: "" if gates.on(GATE) else f"off: gate {GATE}",
    build=lambda wiring, options: Gatherer(wiring),
    keys=Gatherer.keys,
    plan=plan,
)
