"""SidecarSets: pods that are injected with sidecars, and what becomes of these while they run (sidecarset.md §7)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import REVISION, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.workload.predicates import is_serving
from tests.simulation.oracles.sidecars import Sidecars
from tests.simulation.oracles.terms import Reader, Terms
from tests.simulation.scenarios.manifests import cloneset, container, running
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import (
    NAMESPACE_NAME,
    REPOSITORY,
    BreakImage,
    Change,
    Create,
    Remove,
    Stage,
    Step,
    Wait,
    until,
)

EVERY = 12
SYSTEM = "kruise-system"
IDLE = "idle"


def sidecar(image: str, name: str = "proxy", **members: object) -> Json:
    """Return a sidecar behind the pod's own container, which stays the first one."""
    return {"name": name, "image": REPOSITORY + image, "podInjectPolicy": "AfterAppContainer", **members}


def hot(image: str) -> Json:
    """One that is injected as two containers."""
    return sidecar(image, upgradeStrategy={"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": REPOSITORY + IDLE})


def sidecar_set(*containers: Json, name: str = "side", top: Json | None = None, **strategy: object) -> Json:
    """Return a SidecarSet for the pods of `web`."""
    spec: Json = {
        "selector": {"matchLabels": {"app": "web"}},
        "containers": list(containers),
        "updateStrategy": strategy,
        **(top or {}),
    }
    return {"apiVersion": SIDECAR_SET.api_version, "kind": SIDECAR_SET.kind, "metadata": {"name": name}, "spec": spec}


def injected(*sets: Json, replicas: int = 3) -> tuple[Step, ...]:
    """Create the SidecarSets, and wait until pods with their sidecars serve."""
    made = (Create(document=one) for one in sets)
    return *made, WaitSidecars(), *running(cloneset(replicas)), WaitSidecars(matched=replicas)


def sidecars(*containers: Json, name: str = "side") -> Change:
    """Other sidecars."""
    return Change(name=name, patch={"spec": {"containers": list(containers)}})


def strategy(**members: object) -> Change:
    """Another strategy."""
    return Change(name="side", patch={"spec": {"updateStrategy": members}})


class WaitSidecars(Step):
    """Wait until the status counts at least these pods, and this number of sidecars have the image."""

    matched: int = 0
    updated: int = 0
    image: str = ""
    times: int = 1

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            document = stage.current.get(SIDECAR_SET, "", "side") or {}
            status: Json = document.get("status", {})
            if status.get("observedGeneration") != document.get("metadata", {}).get("generation"):
                return False
            found = images_of(stage.current.pods(NAMESPACE_NAME, "web"))
            enough = not self.image or found[self.image] >= self.times
            counts = status.get("matchedPods", 0), status.get("updatedPods", 0)
            return counts[0] >= self.matched and counts[1] >= self.updated and enough

        await until(stage, reached, str(self))


class Rolled(Frozen):
    """The pods of `web` and the SidecarSet `side` in the end."""

    sidecars: Mapping[str, int]  # images of all containers but the first ones, and how many run each
    counts: tuple[int, int, int, int]  # matched, updated, ready, updated and ready
    serving: int = 3
    revisions: int | None = None  # of all SidecarSets
    upgradable: Mapping[str, int] | None = None  # what the condition's messages say, and of how many pods
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        pods = stage.current.pods(NAMESPACE_NAME, "web")
        if (found := images_of(pods)) != self.sidecars:
            yield f"sidecars are {dict(found)}, not {self.sidecars}"
        if (serving := sum(map(is_serving, pods))) != self.serving:
            yield f"{serving} pods serve, not {self.serving}"
        document = stage.current.get(kind, "", name)
        if (document is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        status: Json = (document or {}).get("status", {})
        members = ("matchedPods", "updatedPods", "readyPods", "updatedReadyPods")
        if (counts := tuple(status.get(member, 0) for member in members)) != self.counts:
            yield f"counts are {counts}, not {self.counts}"
        revisions = list(stage.current.all(REVISION, SYSTEM))
        if self.revisions is not None and len(revisions) != self.revisions:
            yield f"there are {len(revisions)} revisions, not {self.revisions}"
        said = Counter(one.message for pod in pods if (one := pod.conditions.get(keys.SIDECAR_SET_UPGRADABLE)))
        if self.upgradable is not None and said != self.upgradable:
            yield f"the condition says {dict(said)}, not {self.upgradable}"


def images_of(pods: list[Pod]) -> Counter[str]:
    """Return the tags of all sidecars."""
    return Counter(one.image.rpartition(":")[2] for pod in pods for one in pod.spec.containers[1:])


def read_terms(document: Json) -> Terms:
    """Return empty terms: a SidecarSet controls no pods. Its rules are in `oracles.sidecars`."""
    return Terms(
        selector=Selector.compile(LabelSelector()),
        replicas=0,
        current_revision=document.get("status", {}).get("latestRevision", ""),
        terminating="deletionTimestamp" in document["metadata"],
    )


TERMS: Mapping[Resource, Reader] = {SIDECAR_SET: read_terms}
RULES = (Sidecars,)


about_sidecars = partial(
    Scenario, workload="side", kind=SIDECAR_SET.kind, services=("cloneset", "sidecar"), every=EVERY
)
"""A scenario about the SidecarSet `side` and the pods of CloneSet `web`."""


ALL = (3, 3, 3, 3)

SCENARIOS = (
    about_sidecars(
        name="sidecars-injected",
        given=(),
        when=injected(sidecar_set(sidecar("p1"))),
        then=Rolled(sidecars={"p1": 3}, counts=ALL, revisions=1),
    ),
    about_sidecars(
        name="sidecars-updated",
        given=injected(sidecar_set(sidecar("p1"), maxUnavailable=2)),
        when=(sidecars(sidecar("p2")),),
        then=Rolled(sidecars={"p2": 3}, counts=ALL, revisions=2, upgradable={'{"side":true}': 3}),
    ),
    about_sidecars(
        name="sidecars-updated-behind-a-partition",
        given=injected(sidecar_set(sidecar("p1"), partition="50%")),
        when=(sidecars(sidecar("p2")),),
        then=Rolled(sidecars={"p1": 2, "p2": 1}, counts=(3, 1, 3, 1)),
    ),
    about_sidecars(
        name="sidecars-of-two-sets-updated",
        given=injected(
            sidecar_set(sidecar("p1"), maxUnavailable="100%"),
            sidecar_set(sidecar("l1", "log"), name="logs", maxUnavailable="100%"),
        ),
        when=(sidecars(sidecar("p2")), sidecars(sidecar("l2", "log"), name="logs")),
        then=Rolled(sidecars={"p2": 3, "l2": 3}, counts=ALL, revisions=4, upgradable={'{"logs":true,"side":true}': 3}),
        exact=False,  # the two meet conflicts, in one order or the other
    ),
    about_sidecars(
        name="sidecars-updated-with-their-workload",
        given=injected(sidecar_set(sidecar("p1"))),
        when=(
            sidecars(sidecar("p2")),
            Change(patch={"spec": {"template": {"spec": {"containers": [container("two")]}}}}, kind="CloneSet"),
        ),
        then=Rolled(sidecars={"p2": 3}, counts=ALL),
        exact=False,
    ),
    about_sidecars(
        name="sidecars-rolled-back-in-mid-roll",
        given=injected(sidecar_set(sidecar("p1"))),
        when=(
            *(sidecars(sidecar("p2")), WaitSidecars(image="p2")),
            *(sidecars(sidecar("p1")), WaitSidecars(updated=3)),
            sidecars(sidecar("p3")),  # so that all pods have been updated, whichever had been before
        ),
        then=Rolled(sidecars={"p3": 3}, counts=ALL, revisions=3),
        exact=False,
    ),
    about_sidecars(
        name="sidecars-that-do-not-start",
        given=injected(sidecar_set(sidecar("p1"))),
        when=(BreakImage(image="p2"), sidecars(sidecar("p2")), WaitSidecars(updated=1), sidecars(sidecar("p3"))),
        then=Rolled(sidecars={"p3": 3}, counts=ALL),
        exact=False,
    ),
    about_sidecars(
        name="sidecars-paused-in-mid-roll",
        given=injected(sidecar_set(sidecar("p1"), partition=2)),
        when=(sidecars(sidecar("p2")), WaitSidecars(updated=1), strategy(paused=True), strategy(partition=0)),
        then=Rolled(sidecars={"p1": 2, "p2": 1}, counts=(3, 1, 3, 1)),
    ),
    about_sidecars(
        name="sidecars-changed-beyond-images",
        given=injected(sidecar_set(sidecar("p1"))),
        when=(sidecars(sidecar("p2", env=[{"name": "A", "value": "B"}])),),
        then=Rolled(sidecars={"p1": 3}, counts=(3, 0, 3, 0), upgradable={'{"side":false}': 3}),
    ),
    about_sidecars(
        name="sidecars-upgraded-without-a-break",
        given=injected(sidecar_set(hot("p1"), maxUnavailable=2)),
        when=(sidecars(hot("p2")),),
        then=Rolled(sidecars={"p2": 3, IDLE: 3}, counts=ALL),
        exact=False,  # pods go up and down twice, and each time the status of their workload may be written
    ),
    about_sidecars(
        name="sidecars-back-from-a-failed-upgrade",
        given=injected(sidecar_set(hot("p1"))),
        when=(BreakImage(image="p2"), sidecars(hot("p2")), WaitSidecars(updated=1), sidecars(hot("p1"))),
        then=Rolled(sidecars={"p1": 3, IDLE: 3}, counts=ALL),
        exact=False,
    ),
    about_sidecars(
        name="sidecar-history-forgotten",
        given=injected(sidecar_set(sidecar("p1"), maxUnavailable=3, top={"revisionHistoryLimit": 1})),
        when=(sidecars(sidecar("p2")), WaitSidecars(updated=3), sidecars(sidecar("p3"))),
        then=Rolled(sidecars={"p3": 3}, counts=ALL, revisions=1),
        exact=False,
    ),
    about_sidecars(
        name="sidecars-stay-without-their-set",
        given=injected(sidecar_set(sidecar("p1"), partition=2)),
        when=(sidecars(sidecar("p2")), WaitSidecars(image="p2"), Remove(name="side"), Wait(pods=3, serving=3)),
        then=Rolled(sidecars={"p1": 2, "p2": 1}, counts=(0, 0, 0, 0), revisions=0, exists=False),
        exact=False,
    ),
)
