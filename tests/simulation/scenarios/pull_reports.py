"""Agents that say what is not so: of another round, of another NodeImage, of what is over (imagepull.md §13.18)."""

from tests.simulation.scenarios.node_steps import Say, WaitStatus, WaitTag
from tests.simulation.scenarios.pull_manifests import ONE, Pulled, everywhere, job
from tests.simulation.scenarios.pulls import SINGLE, SLOW, pulling
from tests.simulation.scenarios.steps import Create

WAITING = (SLOW, Create(document=job("node-1")), WaitTag(node="node-1", phase="Waiting"))

SCENARIOS = (
    pulling(
        name="reports-of-other-rounds",
        given=WAITING,
        at_rest=False,
        when=(
            Say(node="node-1", image="shop", tag="one", version=7, phase="Failed"),
            Say(node="node-1", image="shop", tag="one", version=-1, phase="Failed"),
            Say(node="node-1", image="shop", tag="one", version=0, phase="Failed", stranger=True),
            WaitStatus(completed=True),
        ),
        then=Pulled(nodes=everywhere(ONE, nodes=1), status=SINGLE),
    ),
    pulling(
        name="report-on-what-is-over",
        given=(Create(document=job("node-1")), WaitStatus(completed=True)),
        when=(
            Say(node="node-1", image="shop", tag="one", version=0, phase="Pulling"),
            Say(node="node-1", image="shop", tag="one", version=0, phase="Failed"),
        ),
        then=Pulled(nodes=everywhere(ONE, nodes=1), status=SINGLE),
    ),
)
