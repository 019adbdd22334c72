"""Secrets that pulls need: copied for nodes, kept up to date, taken away (imagepull.md §6)."""

from tests.simulation.scenarios.node_steps import SetNode, WaitTag
from tests.simulation.scenarios.pull_manifests import ONE, Pulled, everywhere, job, secret
from tests.simulation.scenarios.pulls import SINGLE, pulling
from tests.simulation.scenarios.steps import Create, Remove, Sleep

GUARDED = SetNode(node="node-1", passwords={"shop": "right"})
PATIENT = {"backoffLimit": 20}

SCENARIOS = (
    pulling(
        name="pulled-with-a-secret",
        given=(GUARDED, Create(document=secret("login", "right"))),
        when=(Create(document=job("node-1", pullSecrets=["login"], pullPolicy=PATIENT)),),
        then=Pulled(nodes=everywhere(ONE, nodes=1), status=SINGLE),
    ),
    pulling(
        name="secret-made-during-the-pull",
        given=(
            Create(document=job("node-1", pullSecrets=["login"], parallelism=2, completion={"type": "Never"})),
            WaitTag(node="node-1"),
        ),
        at_rest=False,
        when=(Create(document=secret("login", "right")), WaitTag(node="node-1", secrets=1)),
        then=Pulled(nodes=everywhere(ONE, nodes=1), completed=False, status={"succeeded": 1}, copies=1),
    ),
    pulling(
        name="secret-that-jobs-share",
        given=(
            SetNode(node="node-1", pull_seconds=2.0, passwords={"shop": "right"}),
            Create(document=secret("login", "right")),
            Create(document=job("node-1", pullSecrets=["login"], pullPolicy=PATIENT)),
            Create(document=job("node-2", name="other", pullSecrets=["login"], completion={"type": "Never"})),
            WaitTag(node="node-1"),
        ),
        at_rest=False,
        when=(Sleep(seconds=0.5), Remove(name="other", kind="ImagePullJob")),
        then=Pulled(nodes=everywhere(ONE, nodes=1), status=SINGLE),
    ),
)
