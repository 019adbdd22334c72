"""A script about a BroadcastJob that never ends, similar to those of DaemonSets in `daemon_script.py`.

Nodes come, go and change, and pods fail and are deleted. In the end all nodes are there, as they were in the beginning:
each has had its pod.
"""

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.exploration.daemon_script import NODES, POOL, AnyDaemonStep, as_they_were, some_node
from tests.simulation.exploration.script import draw_members
from tests.simulation.oracles.node_history import node_of
from tests.simulation.perturbation.fault import Fault
from tests.simulation.scenarios.broadcastjob import broadcastjob, end_pod
from tests.simulation.scenarios.manifests import relabelled, spec
from tests.simulation.scenarios.node_steps import AddNode
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Create, LoseNode, RemovePod, ReturnNodes, Stage, Step

SERVICE = "jobs"
RESOURCES = ("pods", "broadcastjobs", "nodes")


class AllDone(Frozen):
    """Each node has one pod of the job, which has ended; the job says so."""

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield what is wrong."""
        pods = [msgspec.convert(one, type=Pod) for one in stage.current.all(POD, NAMESPACE_NAME)]
        if (nodes := sorted(map(node_of, pods))) != [*NODES]:
            yield f"pods are on {nodes}"
        if going := [pod.metadata.name for pod in pods if pod.active]:
            yield f"{going} have not ended"
        status: Json = (stage.current.get(kind, NAMESPACE_NAME, name) or {}).get("status", {})
        told = status.get("phase"), status.get("desired"), status.get("active")
        if told != ("running", len(NODES), 0) or status["succeeded"] + status["failed"] != len(NODES):
            yield f"the status is {status}"


class BroadcastScript(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="broadcasts"):
    """One exploration."""

    seed: int
    document: Json
    steps: tuple[AnyDaemonStep, ...]
    faults: tuple[Fault, ...]

    def scenario(self) -> Scenario:
        """Return the script as a scenario that ends in calm."""
        pools = [relabelled(node, **POOL) for node in NODES]
        calm = spec(paused=False, parallelism=len(NODES), failurePolicy={"type": "Continue"})
        return Scenario(
            name=f"seed:{self.seed}",
            kind=BROADCAST_JOB.kind,
            services=(SERVICE,),
            given=(AddNode(name=NODES[-1]), *pools, Create(document=self.document)),
            when=(*self.steps, *as_they_were(), *pools, calm),
            then=AllDone(),
            exact=False,
            at_rest=False,
        )

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def draw_for_broadcasts(seed: int) -> BroadcastScript:
    """Draw the script of a seed."""
    rng = random.Random(seed)
    members = draw_members(rng, ACTIONS, lambda: _document(rng), SERVICE, RESOURCES)
    return msgspec.convert({"about": "broadcasts", "seed": seed, **members}, type=BroadcastScript)


def _document(rng: random.Random) -> Json:
    return broadcastjob(
        pods={"nodeSelector": POOL},
        parallelism=rng.choice((1, 2, 4, "50%")),
        completionPolicy={"type": "Never"},
        failurePolicy={"type": rng.choice(("Continue", "Pause"))},
    )


ACTIONS: Sequence[Callable[[random.Random], Step]] = (
    *(some_node, some_node, some_node, some_node, some_node, some_node),
    lambda rng: end_pod(rng.choice(NODES), rng.choice((0, 3))),
    lambda rng: end_pod(rng.choice(NODES), 3),
    lambda rng: RemovePod(node=rng.choice(NODES)),
    lambda rng: RemovePod(node=rng.choice(NODES)),
    lambda rng: spec(paused=rng.random() < 0.5),
    lambda rng: spec(parallelism=rng.choice((0, 1, 3, "30%"))),
    lambda rng: spec(failurePolicy={"type": rng.choice(("Continue", "Pause"))}),
    lambda rng: LoseNode(node=rng.choice(NODES)),
    lambda _: ReturnNodes(nodes=NODES),
)
"""Actions of users, nodes and pods that may come next."""
