"""Steps about the workloads and pods of a UnitedDeployment `web`, named by their subsets.

The names of the workloads differ from run to run.
"""

from collections import Counter

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.uniteddeployment.types import SUBSET_LABEL
from flotilla_common.api.resources import REVISION
from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import ApiError
from flotilla_common.workload.predicates import is_serving
from tests.simulation.oracles.united import TEMPLATES
from tests.simulation.scenarios.current_state import image_of
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Remove, Stage, Step, until


class ChangeChild(Step):
    """A merge patch of the workload of a subset."""

    subset: str
    patch: Json

    async def play(self, stage: Stage) -> None:
        for kind, name in children(stage, self.subset):
            await Change(patch=self.patch, name=name, kind=kind).play(stage)


class RemoveChild(Step):
    """`kubectl delete` of the workload of a subset."""

    subset: str

    async def play(self, stage: Stage) -> None:
        for kind, name in children(stage, self.subset):
            await Remove(name=name, kind=kind).play(stage)


class RemovePodOf(Step):
    """`kubectl delete pod` of the nth-oldest pod of a subset."""

    subset: str
    nth: int = 0

    async def play(self, stage: Stage) -> None:
        pods = pods_of(stage, self.subset)
        if self.nth < len(pods):
            await Remove(name=pods[self.nth].metadata.name, kind="Pod").play(stage)


class ChangePodOf(Step):
    """A merge patch of the nth-oldest pod of a subset."""

    subset: str
    patch: Json
    nth: int = 0
    subresource: str = ""

    async def play(self, stage: Stage) -> None:
        pods = pods_of(stage, self.subset)
        try:
            if self.nth < len(pods):
                name = pods[self.nth].metadata.name
                await Change(patch=self.patch, name=name, kind="Pod", subresource=self.subresource).play(stage)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


class WaitSubsets(Step):
    """Wait until subsets have exactly these numbers of active pods, which serve, or have an image."""

    pods: dict[str, int]
    serving: int | None = None
    image: str = ""
    matching: int = 1

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            found = pods_of(stage)
            counts = Counter(pod.metadata.labels[SUBSET_LABEL] for pod in found)
            serving = sum(map(is_serving, found)) >= (len(found) if self.serving is None else self.serving)
            images = sum(image_of(pod) == self.image for pod in found)
            return counts == Counter(self.pods) and serving and (not self.image or images >= self.matching)

        await until(stage, reached, str(self))


class WaitRevisions(Step):
    """Wait until there are these numbers of revisions: of the UnitedDeployment, and of its workloads."""

    count: int

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            return len(list(stage.current.all(REVISION, NAMESPACE_NAME))) >= self.count

        await until(stage, reached, str(self))


def children(stage: Stage, subset: str) -> list[tuple[str, str]]:
    """Kind and name of the workloads of a subset, oldest first."""
    found = [(kind, one) for kind in TEMPLATES for one in stage.current.all(kind, NAMESPACE_NAME)]
    return [
        (kind.kind, one["metadata"]["name"])
        for kind, one in found
        if one["metadata"].get("labels", {}).get(SUBSET_LABEL) == subset
    ]


def pods_of(stage: Stage, subset: str = "") -> list[Pod]:
    """Return the active pods of a subset, or of all, oldest first."""
    pods = [pod for pod in stage.current.pods(NAMESPACE_NAME) if SUBSET_LABEL in pod.metadata.labels]
    return [pod for pod in pods if subset in ("", pod.metadata.labels[SUBSET_LABEL])]
