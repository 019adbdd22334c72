"""Rejections by admission and by quotas."""

from tests.simulation.scenarios.manifests import cloneset, image, rolling, running, spec
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import Change, Create, Remove, Sleep

QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few", "namespace": "shop"},
    "spec": {"hard": {"pods": "3"}},
}

SCENARIOS = (
    Scenario(
        name="denied-by-the-webhook",
        given=running(cloneset(2)),
        when=(
            Change(patch={"spec": {"selector": {"matchLabels": {"app": "other"}}}}, refused="spec"),
            Change(
                patch={"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}},
                refused="maxUnavailable and maxSurge should not both be less than 1",
            ),
            image("two"),
        ),
        then=End(pods={"two": 2}),
    ),
    Scenario(
        name="held-back-by-a-quota",
        given=(Create(document=QUOTA), *running(cloneset(2))),
        when=(spec(replicas=4), Sleep(seconds=3), Remove(name="few", kind="ResourceQuota")),
        then=End(pods={"one": 4}),
        quiet=8,  # nobody tells that there is room again: the next try comes when the back-off ends
    ),
    Scenario(
        name="updated-under-a-quota",
        given=(Create(document=QUOTA), *running(cloneset(3))),
        when=(rolling(maxSurge=1), image("two")),
        then=End(pods={"two": 3}),
    ),
)
