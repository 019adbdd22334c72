"""StatefulSets: pods and sets that are lost. A name is free again only when its pod is really gone."""

from collections.abc import Iterator

from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import answer, image, running, statefulset
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.statefulset import in_sets
from tests.simulation.scenarios.steps import (
    NAMESPACE_NAME,
    ChangePod,
    Create,
    LoseNode,
    Remove,
    ReturnNodes,
    Sleep,
    Stage,
    Wait,
    WaitGone,
)
from tests.testkit.documents import typed


class StillThere(End):
    """The pods of the beginning are those of the end: they were marked."""

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        yield from super().problems(stage, name, kind)
        for pod in stage.current.pods(NAMESPACE_NAME, name):
            if "marked" not in pod.metadata.labels:
                yield f"{pod.metadata.name} is another pod"


def _look_alike(name: str) -> Json:
    """Create a pod that the set selects, with a name that resembles those of its pods."""
    containers = [{"name": "main", "image": "other"}]
    return typed(POD, name, labels={"app": "web"}, spec={"containers": containers})


SCENARIOS = in_sets(
    Scenario(
        name="set-node-lost",
        given=running(statefulset(3)),
        when=(LoseNode(nth=1), Sleep(seconds=15), ReturnNodes()),
        then=End(pods={"one": 3}, status={"readyReplicas": 3}),
    ),
    Scenario(
        name="set-node-lost-in-mid-roll",
        given=running(statefulset(3, ordered=False, maxUnavailable=2)),
        when=(image("two"), Wait(image="two"), LoseNode(nth=0), Sleep(seconds=15), ReturnNodes()),
        then=End(pods={"two": 3}, status={"readyReplicas": 3}),
        exact=False,
    ),
    Scenario(
        name="set-pod-evicted",
        given=running(statefulset(3)),
        when=(ChangePod(nth=1, patch={"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status"),),
        then=End(pods={"one": 3}),
    ),
    Scenario(
        name="set-orphaned-and-made-again",
        given=(*running(statefulset(3)), answer("", marked="yes")),
        when=(Remove(propagation="Orphan"), WaitGone(), Create(document=statefulset(3))),
        then=StillThere(pods={"one": 3}, revisions=1, status={"readyReplicas": 3, "updatedReplicas": 3}),
        exact=False,
    ),
    Scenario(
        name="set-beside-pods-with-names-like-its-own",
        given=running(statefulset(2)),
        when=tuple(Create(document=_look_alike(name)) for name in ("web-01", "web-007", "web-2147483648")),
        then=End(pods={"one": 2}, names=("web-0", "web-1"), loose=3),
    ),
    Scenario(
        name="set-deleted-in-mid-roll",
        given=running(statefulset(3)),
        when=(image("two"), Wait(image="two"), Remove(propagation="Foreground")),
        then=End(pods={}, revisions=0, exists=False),
        exact=False,
    ),
)
