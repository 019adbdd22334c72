"""The ends of jobs that pull images, and jobs that never end (imagepull.md §2.2, §5.2, §8.1)."""

from tests.simulation.scenarios.node_steps import SetNode, StopAgent, WaitStatus, WaitTag
from tests.simulation.scenarios.pull_manifests import ONE, Pulled, everywhere, job
from tests.simulation.scenarios.pulls import SINGLE, SLOW, pulling
from tests.simulation.scenarios.steps import Change, Create, WaitGone

NEVER = {"type": "Never"}
IN_TIME = {"activeDeadlineSeconds": 3}
AT_ONCE = {"timeoutSeconds": 1, "backoffLimit": 0}
LATE = {"active": 0, "message": "job exceeds activeDeadlineSeconds"}
POOL = {"matchLabels": {"pool": "a"}}


SCENARIOS = (
    pulling(
        name="pull-given-up-at-its-deadline",
        given=(StopAgent(node="node-1"),),
        when=(Create(document=job("node-1", completion=IN_TIME, pullPolicy=AT_ONCE)), WaitStatus(completed=True)),
        then=Pulled(nodes=everywhere(ONE, nodes=1, phase=""), status=LATE | {"failed": 1, "failedNodes": ["node-1"]}),
    ),
    pulling(
        name="pull-that-takes-too-long",
        given=(SetNode(node="node-1", pull_seconds=30.0),),
        when=(Create(document=job("node-1", pullPolicy=AT_ONCE)),),
        then=Pulled(
            nodes=everywhere(ONE, nodes=1, phase="Failed"),
            status=SINGLE | {"succeeded": 0, "failed": 1, "failedNodes": ["node-1"]},
        ),
    ),
    pulling(
        name="pull-removed-after-its-time",
        when=(
            Create(document=job("node-1", completion={"ttlSecondsAfterFinished": 1})),
            WaitStatus(completed=True),
            WaitGone(name="pull", kind="ImagePullJob"),
        ),
        then=Pulled(nodes={}, exists=False),
    ),
    pulling(
        name="pull-that-never-ends",
        given=(
            Create(document=job(completion=NEVER, selector=POOL)),
            Change(patch={"metadata": {"labels": {"pool": "a"}}}, name="node-1", kind="Node"),
            WaitStatus(least={"succeeded": 1}),
        ),
        when=(
            Change(patch={"metadata": {"labels": {"pool": "a"}}}, name="node-2", kind="Node"),
            WaitStatus(least={"succeeded": 2}),
        ),
        then=Pulled(
            nodes=everywhere(ONE, nodes=2),
            completed=False,
            status={"desired": 2, "succeeded": 2, "message": "job is running, progress 100.0%"},
        ),
    ),
    pulling(
        name="pull-that-ends-after-all",
        given=(SLOW, Create(document=job("node-1", completion=NEVER)), WaitTag(node="node-1", phase="Waiting")),
        at_rest=False,
        when=(Change(patch={"spec": {"completionPolicy": {"type": "Always"}}}, name="pull", kind="ImagePullJob"),),
        then=Pulled(nodes=everywhere(ONE, nodes=1), status=SINGLE),
    ),
)
