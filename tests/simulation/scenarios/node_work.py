"""A node's agent in the middle of all its kinds of work, while publishers and readers change.

Nothing is done twice and nothing is lost.
"""

from collections.abc import Iterator

from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Frozen
from tests.simulation.scenarios.manifests import cloneset, running
from tests.simulation.scenarios.node_steps import SetNode, WaitStatus
from tests.simulation.scenarios.pull_manifests import ONE, TWO, Pulled, everywhere, job
from tests.simulation.scenarios.pulls import DONE, EVERY
from tests.simulation.scenarios.restarts import Restart, Restarted, WaitRestarted
from tests.simulation.scenarios.scenario import Ending, Scenario
from tests.simulation.scenarios.steps import Create, Stage

SLOW = (SetNode(node="node-1", pull_seconds=1.5), SetNode(node="node-2", pull_seconds=1.5))


class Together(Frozen):
    """Several ends at once, by the workload that each speaks of."""

    ends: dict[str, Ending]

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        del name
        for workload, end in self.ends.items():
            yield from end.problems(stage, workload, kind)


SCENARIOS = (
    Scenario(
        name="restarted-while-it-pulls",
        given=(*SLOW, *running(cloneset(2))),
        when=(
            Create(document=job(parallelism=3)),
            Restart(name="once"),
            Restart(name="gently", nth=1, strategy={"unreadyGracePeriodSeconds": 1}),
            WaitRestarted(),
            WaitStatus(completed=True),
            Create(document=job(name="second", image=TWO, parallelism=3)),  # agents hear of what comes next
            WaitStatus(name="second", completed=True),
        ),
        then=Together(ends={"web": Restarted(stops=(1, 1)), "pull": Pulled(nodes=everywhere(ONE, TWO), status=DONE)}),
        workload="pull",
        kind="ImagePullJob",
        services=("cloneset", "jobs"),
        agents=3,
        every=4 * EVERY,
        exact=False,
        timed=True,
    ),
)
