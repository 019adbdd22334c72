"""Images that are pulled before in-place updates (common.md §12), and containers restarted on request.

CloneSets use both by the nodes' agents.
"""

from tests.simulation.scenarios.manifests import cloneset, image, running
from tests.simulation.scenarios.pulls import EVERY
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import Wait

GATE = "PreDownloadImageForInPlaceUpdate=true"
SERVICES = ("cloneset", "jobs")

SCENARIOS = (
    Scenario(
        name="pulled-before-it-is-updated",
        given=running(cloneset(4)),
        when=(image("two"),),
        then=End(pods={"two": 4}, revisions=2, status={"updatedReplicas": 4, "readyReplicas": 4}),
        gates=GATE,
        services=SERVICES,
        agents=3,
        every=4 * EVERY,
        exact=False,
        timed=True,
    ),
    Scenario(
        name="rolled-back-while-it-is-pulled",
        given=running(cloneset(4)),
        when=(image("two"), Wait(image="two"), image("one")),
        then=End(pods={"one": 4}, revisions=2, status={"updatedReplicas": 4, "readyReplicas": 4}),
        gates=GATE,
        services=SERVICES,
        agents=3,
        every=4 * EVERY,
        exact=False,
        timed=True,
    ),
)
