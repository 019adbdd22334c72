"""Lists of images: a job for each (imagepull.md §7, §8.2)."""

from functools import partial

from tests.simulation.scenarios.node_steps import SetNode, WaitStatus, WaitTag
from tests.simulation.scenarios.pull_manifests import ONE, THREE, TWO, Pulled, everywhere, images
from tests.simulation.scenarios.pulls import pulling
from tests.simulation.scenarios.steps import Change, Create, Remove

DONE = {"desired": 2, "active": 0, "completed": 2, "succeeded": 2}
SLOW = SetNode(node="node-1", pull_seconds=1.0)


listed = partial(pulling, kind="ImageListPullJob", agents=1)
"""A scenario about the list `pull`."""

SCENARIOS = (
    listed(
        name="list-pulled",
        when=(Create(document=images("node-1")),),
        then=Pulled(nodes=everywhere(ONE, TWO, nodes=1), status=DONE, jobs=(ONE, TWO)),
    ),
    listed(
        name="list-changed-in-its-middle",
        given=(SLOW, Create(document=images("node-1")), WaitTag(node="node-1", phase="Waiting")),
        at_rest=False,
        when=(Change(patch={"spec": {"images": [ONE, THREE]}}, name="pull", kind="ImageListPullJob"),),
        then=Pulled(nodes=everywhere(ONE, THREE, nodes=1), status=DONE, jobs=(ONE, THREE)),
    ),
    listed(
        name="list-whose-template-changes",
        given=(SLOW, Create(document=images("node-1", wanted=(ONE,))), WaitTag(node="node-1", phase="Waiting")),
        at_rest=False,
        when=(Change(patch={"spec": {"parallelism": 2}}, name="pull", kind="ImageListPullJob"),),
        then=Pulled(
            nodes=everywhere(ONE, nodes=1), status=DONE | {"desired": 1, "completed": 1, "succeeded": 1}, jobs=(ONE,)
        ),
    ),
    listed(
        name="list-deleted",
        given=(
            Create(document=images("node-1")),
            WaitStatus(kind="ImageListPullJob", completed=True),
        ),
        when=(Remove(name="pull", kind="ImageListPullJob"),),
        then=Pulled(nodes={}, exists=False, jobs=()),
    ),
)
