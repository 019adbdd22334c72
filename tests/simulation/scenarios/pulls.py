"""Jobs that pull one image: how many nodes at once, failures, second jobs, ends (imagepull.md §5, §8)."""

from functools import partial

from tests.simulation.oracles.pulls import Pulls
from tests.simulation.scenarios.node_steps import SetNode, WaitStatus, WaitTag
from tests.simulation.scenarios.pull_manifests import ONE, SERVICES, TWO, Pulled, everywhere, job
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import Change, Create, Remove, Sleep

DONE = {"desired": 3, "active": 0, "succeeded": 3, "failed": 0, "message": "job has completed"}
SINGLE = DONE | {"desired": 1, "succeeded": 1}
SLOW = SetNode(node="node-1", pull_seconds=2.0)
EVERY = 6
"""All faults of all scenarios of pulls would take as long as those of all CloneSets."""


pulling = partial(
    Scenario,
    given=(),
    workload="pull",
    kind="ImagePullJob",
    services=SERVICES,
    agents=3,
    exact=False,
    every=EVERY,
    timed=True,  # nodes are given up, and tags removed, by the wall clock
)
"""A scenario about the job or list `pull`; one that is under way when it begins to count is not `at_rest`."""


SCENARIOS = (
    pulling(
        name="pulled-node-by-node",
        when=(Create(document=job()),),
        then=Pulled(nodes=everywhere(ONE), status=DONE),
    ),
    pulling(
        name="pulled-two-at-a-time-after-a-pause",
        given=(Create(document=job("node-1", "node-2", parallelism=0)), Sleep(seconds=1.0)),
        when=(Change(patch={"spec": {"parallelism": 2}}, name="pull", kind="ImagePullJob"),),
        then=Pulled(nodes=everywhere(ONE, nodes=2), status=DONE | {"desired": 2, "succeeded": 2}),
    ),
    pulling(
        name="pull-that-fails-on-one-node",
        given=(SetNode(node="node-2", broken=(ONE,)),),
        when=(Create(document=job("node-1", "node-2", pullPolicy={"backoffLimit": 0})),),
        then=Pulled(
            nodes={"node-1": {ONE: "Succeeded"}, "node-2": {ONE: "Failed"}},
            status=DONE | {"desired": 2, "succeeded": 1, "failed": 1, "failedNodes": ["node-2"]},
        ),
    ),
    pulling(
        name="pull-tried-again",
        given=(SetNode(node="node-1", broken=(ONE,)),),
        when=(
            Create(document=job("node-1", pullPolicy={"backoffLimit": 5})),
            WaitTag(node="node-1"),
            Sleep(seconds=0.5),
            SetNode(node="node-1"),
        ),
        then=Pulled(nodes=everywhere(ONE, nodes=1), status=SINGLE),
    ),
    pulling(
        name="pull-for-two-jobs",
        given=(SLOW, Create(document=job("node-1")), WaitTag(node="node-1", phase="Waiting")),
        at_rest=False,
        when=(
            Create(document=job("node-1", name="second")),
            WaitStatus(name="second", completed=True),
        ),
        then=Pulled(nodes=everywhere(ONE, nodes=1), status=SINGLE),
    ),
    pulling(
        name="pull-deleted-in-its-middle",
        given=(SLOW, Create(document=job("node-1", "node-2")), WaitTag(node="node-1", phase="Waiting")),
        at_rest=False,
        when=(Remove(name="pull", kind="ImagePullJob"),),
        then=Pulled(nodes={}, exists=False),
    ),
    pulling(
        name="pull-deleted-and-made-again",
        given=(Create(document=job("node-1")), WaitStatus(completed=True)),
        when=(
            Remove(name="pull", kind="ImagePullJob"),
            WaitTag(node="node-1", gone=True),  # or its round would depend on whether the agent has forgotten it
            Create(document=job("node-1")),
        ),
        then=Pulled(nodes=everywhere(ONE, nodes=1), status=SINGLE),
    ),
    pulling(
        name="pull-of-another-image-in-its-middle",
        given=(
            SLOW,
            Create(document=job("node-1", completion={"type": "Never"})),
            WaitTag(node="node-1", phase="Waiting"),
        ),
        at_rest=False,
        when=(
            Change(patch={"spec": {"image": TWO}}, name="pull", kind="ImagePullJob"),
            WaitTag(node="node-1", tag="two"),
        ),
        then=Pulled(
            nodes=everywhere(ONE, TWO, nodes=1), completed=False, status={"desired": 1, "active": 0, "succeeded": 1}
        ),
    ),
)

RULES = (Pulls,)
