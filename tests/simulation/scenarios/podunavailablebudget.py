"""PodUnavailableBudgets: drained, deleted and updated pods, scaled workloads, changed budgets.

The rules are in podunavailablebudget.md §5 to §9.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.errors import ApiError
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.resources import DEPLOYMENT, POD, Resource
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.model.built_in import is_active
from flotilla_common.model.kubelet import is_ready
from tests.simulation.oracles.budgets import Budgets, final_problems, wanted
from tests.simulation.scenarios.current_state import image_of
from tests.simulation.scenarios.manifests import cloneset, running
from tests.simulation.scenarios.scenario import OFTEN, SELDOM, Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Create, Remove, Stage, Step, Wait, until
from tests.simulation.scenarios.workloadspread import deployment, other_image, workload

NAME, KIND = "pub", POD_UNAVAILABLE_BUDGET.kind
UPDATES = "PodUnavailableBudgetUpdateGate=true"
RETRY_SECONDS = 0.5
TRIES = 120


class Kept(Frozen):
    """The number of pods of each image in the final state, all ready, with the right status of each budget."""

    pods: dict[str, int]
    budgets: tuple[str, ...] = (NAME,)

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Return how the cluster differs from what is expected."""
        current = stage.current
        documents = [pod for pod in current.all(POD, NAMESPACE_NAME) if is_active(pod)]
        found = Counter(image_of(msgspec.convert(pod, Pod)) for pod in documents)
        if found != Counter(self.pods):
            yield f"pods by image are {dict(found)}, not {self.pods}"
        if unready := [pod["metadata"]["name"] for pod in documents if not is_ready(pod)]:
            yield f"pods are not ready: {unready}"
        replicas = max(wanted(current.get(one, NAMESPACE_NAME, "web")) for one in (CLONE_SET, DEPLOYMENT))
        budgets = {one["metadata"]["name"]: one for one in current.all(POD_UNAVAILABLE_BUDGET, NAMESPACE_NAME)}
        if budgets.keys() != set(self.budgets):
            yield f"there are budgets {sorted(budgets)}, not {self.budgets}"
        for budget in budgets.values():
            yield from final_problems(budget, documents, replicas)


class Drain(Step):
    """`kubectl drain` comes by the oldest pods, all at once, and tries until each of them is gone."""

    pods: int
    evict: bool = True  # otherwise they are deleted

    async def play(self, stage: Stage) -> None:
        names = [pod.metadata.name for nth in range(self.pods) if (pod := stage.pod(nth, "web")) is not None]
        for _ in range(TRIES):
            names = [name for name in names if not await self._is_gone(stage, name)]
            if not names:
                return
            await stage.world.clock.sleep(RETRY_SECONDS)
        raise TimeoutError(f"{names} are still there")

    async def _is_gone(self, stage: Stage, name: str) -> bool:
        """Try to take the pod away. True when it is going, or gone."""
        try:
            if self.evict:
                eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
                path = POD.path(NAMESPACE_NAME, name, "eviction")
                await stage.world.api.raw("POST", path, msgspec.json.encode(eviction))
            else:
                await stage.world.delete(POD, NAMESPACE_NAME, name)
        except ApiError as error:
            if error.code not in (403, 404, 429):
                raise
            return error.code == 404
        return True


class WaitCounted(Step):
    """Wait until the budget allows this number of further disruptions."""

    allowed: int
    name: str = NAME

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            stored = stage.current.get(POD_UNAVAILABLE_BUDGET, NAMESPACE_NAME, self.name) or {}
            return stored.get("status", {}).get("unavailableAllowed") == self.allowed

        await until(stage, reached, str(self))


def budget(name: str = NAME, target: Resource | None = None, **spec: Any) -> Json:
    """Return a budget of the pods of `web`, by label or by target."""
    about: Json = {"selector": {"matchLabels": {"app": "web"}}}
    if target is not None:
        about = {"targetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": "web"}}
    metadata = {"name": name, "namespace": NAMESPACE_NAME}
    return {**POD_UNAVAILABLE_BUDGET.type_meta, "metadata": metadata, "spec": about | spec}


def protected(document: Json, stored: Json, allowed: int) -> tuple[Step, ...]:
    """Make the budget and all pods of the workload."""
    return (Create(document=stored), Create(document=document), WaitCounted(allowed=allowed))


def changed(**spec: Any) -> Change:
    """Change the budget's spec."""
    return Change(patch={"spec": spec}, name=NAME, kind=KIND)


scenario = partial(
    Scenario,
    services=("policy", "cloneset"),
    every=SELDOM,
    exact=False,
    restorable=False,  # budget that was taken is kept for twenty seconds
    timed=True,
    quiet=23.0,  # entries of pods that nobody saw go end by their time
)

SCENARIOS = (
    scenario(
        name="budget-of-pods-that-are-drained",
        given=protected(cloneset(4), budget(maxUnavailable=1), 1),
        when=(Drain(pods=4),),
        then=Kept(pods={"one": 4}),
        every=OFTEN,
    ),
    scenario(
        name="budget-of-many-pods-that-are-drained",  # units are taken ahead
        given=protected(cloneset(24), budget(maxUnavailable=22), 22),
        when=(Drain(pods=22),),
        then=Kept(pods={"one": 24}),
    ),
    scenario(
        name="budget-comes-while-pods-are-deleted",
        given=running(cloneset(4)),
        when=(Create(document=budget(target=CLONE_SET, minAvailable="75%")), Drain(pods=3, evict=False)),
        then=Kept(pods={"one": 4}),
    ),
    scenario(
        name="budget-of-a-workload-that-is-scaled",
        given=protected(cloneset(2), budget(target=CLONE_SET, maxUnavailable="25%"), 1),
        when=(workload(replicas=5), Drain(pods=2), workload(replicas=3), Drain(pods=2), workload(replicas=4)),
        then=Kept(pods={"one": 4}),
        every=OFTEN,
    ),
    scenario(
        name="budget-that-changes-while-pods-are-drained",
        given=protected(cloneset(4), budget(maxUnavailable=0), 0),
        when=(changed(maxUnavailable=2), Drain(pods=3), changed(maxUnavailable=1), Drain(pods=2)),
        then=Kept(pods={"one": 4}),
    ),
    scenario(
        name="budget-takes-pods-of-another-over",
        given=protected(cloneset(3), budget(maxUnavailable=1), 1),
        when=(
            Remove(name=NAME, kind=KIND),
            Create(document=budget("next", maxUnavailable=1)),
            WaitCounted(allowed=1, name="next"),
            Drain(pods=3),
        ),
        then=Kept(pods={"one": 3}, budgets=("next",)),
    ),
    scenario(
        name="budget-of-a-workload-that-goes",
        given=protected(cloneset(3), budget(maxUnavailable=0), 0),
        when=(Remove(),),
        then=Kept(pods={}),
    ),
    scenario(
        name="budget-holds-an-update-in-place",
        given=protected(cloneset(3, maxUnavailable="100%"), budget(maxUnavailable=1), 1),
        when=(other_image(), Wait(image="two", matching=1), Drain(pods=1)),
        then=Kept(pods={"two": 3}),
        gates=UPDATES,
        every=OFTEN,
    ),
    scenario(
        name="budget-holds-a-rollout-of-a-deployment",
        given=protected(deployment(3), budget(target=DEPLOYMENT, maxUnavailable=1), 1),
        when=(other_image(DEPLOYMENT),),
        then=Kept(pods={"two": 3}),
        services=("policy",),
        kind="Deployment",
    ),
)

RULES = (Budgets,)
