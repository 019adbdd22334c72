"""A script about nodes: image pulls and restarts, steps of nodes and agents, and faults.

It is drawn by seed, or read from JSON.

It ends in calm as well: all agents run, and every image can be pulled. So every object that is left gets its result,
nothing is left of deleted ones, and nothing was done twice.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.kube.interface import ApiError
from flotilla_common.workload.predicates import is_serving
from tests.simulation.perturbation.catalogue import CONTROLLERS, FAULT_KINDS, FaultKind, copied
from tests.simulation.perturbation.fault import Fault, Place
from tests.simulation.scenarios.manifests import cloneset, running
from tests.simulation.scenarios.node_steps import AddNode, SetNode, StartAgent, StopAgent
from tests.simulation.scenarios.pull_manifests import ONE, THREE, TWO, job, left_over
from tests.simulation.scenarios.restarts import Restart, WaitRestarted
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Create, Remove, RemovePod, Sleep, Stage, Step

NODES = ("node-1", "node-2", "node-3")
MOST_STEPS, MOST_FAULTS, PODS = 7, 2, 2
NUMBERS = {Place.WRITE: 40, Place.EVENT: 60, Place.MESSAGE: 60, Place.STEP: MOST_STEPS, Place.CALL: 8, Place.REPORT: 10}
"""Up to which number points are drawn: about as many as a script passes."""


class IfItCan(Step):
    """A step that the apiserver may refuse, because what it is about is there already, or not any more."""

    step: Create | Change | Remove | Restart | AddNode

    async def play(self, stage: Stage) -> None:
        try:
            await self.step.play(stage)
        except ApiError as error:
            if error.code not in (400, 403, 404, 409, 422):
                raise


AnyNodeStep = IfItCan | SetNode | StartAgent | StopAgent | RemovePod | Sleep


class AllAnswered(Frozen):
    """Every job is over and every request is completed; nothing is left of others; nothing was done twice."""

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield what is wrong."""
        del kind
        for one in stage.current.all(IMAGE_PULL_JOB, NAMESPACE_NAME):
            if "completionTime" not in one.get("status", {}):
                yield f"job {one['metadata']['name']} is not over: {one.get('status')}"
        requests = list(stage.current.all(RECREATE_REQUEST, NAMESPACE_NAME))
        for one in requests:
            if one.get("status", {}).get("phase") != "Completed":
                yield f"request {one['metadata']['name']} is not completed: {one.get('status')}"
        if not all(is_serving(pod) for pod in stage.current.pods(NAMESPACE_NAME, name)):
            yield "a pod does not serve"
        yield from left_over(stage)
        asked = Counter(one["spec"]["podName"] for one in requests)
        for machine in stage.world.machines.values():
            for (pod, _), times in Counter(machine.stops).items():
                if times > asked[pod]:
                    yield f"{pod} was stopped {times} times for {asked[pod]} requests"


class NodeScript(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="nodes"):
    """One exploration."""

    seed: int
    steps: tuple[AnyNodeStep, ...]
    faults: tuple[Fault, ...]

    def scenario(self) -> Scenario:
        """Return the script as a scenario that ends in calm."""
        calm = [step for node in NODES for step in (SetNode(node=node), StartAgent(node=node))]
        return Scenario(
            name=f"seed:{self.seed}",
            given=running(cloneset(PODS, maxUnavailable=PODS)),  # users may take all pods out of service themselves
            when=(*self.steps, *calm, WaitRestarted()),
            then=AllAnswered(),
            services=("cloneset", "jobs"),
            agents=len(NODES),
            exact=False,
            timed=True,
            quiet=15,  # an agent that came back misses an answer after ten seconds, and asks for its copies again
        )

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def draw_for_nodes(seed: int) -> NodeScript:
    """Draw the script of a seed."""
    rng = random.Random(seed)
    steps: list[Step] = []
    for number in range(rng.randint(2, MOST_STEPS)):
        steps.append(rng.choice(ACTIONS)(rng, number))
        if rng.random() < 0.6:
            steps.append(Sleep(seconds=rng.choice((0.002, 0.01, 0.05, 0.3, 1.0, 3.0))))
    faults = [_fault(rng) for _ in range(rng.randint(0, MOST_FAULTS))]
    drawn = {"about": "nodes", "seed": seed, "steps": msgspec.to_builtins(steps), "faults": msgspec.to_builtins(faults)}
    return msgspec.convert(drawn, type=NodeScript)


def _fault(rng: random.Random) -> Fault:
    kinds = sorted(
        name
        for name, kind in FAULT_KINDS.items()
        if kind.swept and not (kind.ends_channel or kind.setting.skew or kind.redone)  # a node cannot take back a stop
    )
    name = rng.choice(kinds)
    kind = FAULT_KINDS[name]
    service = rng.choice(kind.services).replace(CONTROLLERS, "jobs")
    resources = _resources(kind)
    number = f"-{rng.randint(1, len(NODES))}" if service == "agent" else "-0"
    writer = f"{service}{number}" if service else ""
    return Fault(name, writer, rng.randrange(NUMBERS[kind.place]), rng.choice(resources) if resources else "")


def _resources(kind: FaultKind) -> Sequence[str]:
    if kind.per_resource:
        return ("pods", "imagepulljobs", *copied())
    return copied() if kind.per_copied else ()


def _job(rng: random.Random, _: int) -> Step:
    nodes = rng.sample(NODES, rng.randint(1, len(NODES)))
    image = rng.choice((ONE, ONE, TWO, THREE))
    return IfItCan(step=Create(document=job(*nodes, name=_name(rng), image=image, parallelism=rng.randint(1, 3))))


def _change(rng: random.Random, _: int) -> Step:
    change = rng.choice(({"image": TWO}, {"image": ONE}, {"parallelism": 3}, {"parallelism": 1}))
    return IfItCan(step=Change(patch={"spec": change}, name=_name(rng), kind="ImagePullJob"))


def _restart(rng: random.Random, number: int) -> Step:
    strategies: Sequence[Json] = ({}, {}, {"forceRecreate": True}, {"unreadyGracePeriodSeconds": 1})
    return IfItCan(step=Restart(name=f"restart-{number}", nth=rng.randrange(PODS), strategy=rng.choice(strategies)))


def _node(rng: random.Random, _: int) -> Step:
    broken = (ONE,) if rng.random() < 0.3 else ()
    return SetNode(node=rng.choice(NODES), pull_seconds=rng.choice((0.01, 0.2, 1.0, 3.0)), broken=broken)


def _name(rng: random.Random) -> str:
    return rng.choice(("pull", "second"))


ACTIONS: Sequence[Callable[[random.Random, int], Step]] = (
    _job,
    _job,
    _job,
    _change,
    lambda rng, _: IfItCan(step=Remove(name=_name(rng), kind="ImagePullJob")),
    _restart,
    _restart,
    _restart,
    lambda rng, _: RemovePod(nth=rng.randrange(PODS)),
    _node,
    lambda rng, _: StopAgent(node=rng.choice(NODES)),
    lambda rng, _: StartAgent(node=rng.choice(NODES)),
)
"""Actions of users, nodes and pods that may come next."""
