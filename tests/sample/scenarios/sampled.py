"""Scenarios of Samples."""

from collections.abc import Iterator

from flotilla_common.api.resources import CONFIG_MAP, Resource
from flotilla_common.control.plan import Frozen, Json
from tests.sample.kind import SAMPLES
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Create, Remove, Stage


class Maps(Frozen):
    """Expects this number of ConfigMaps, also in the status of an existing Sample."""

    count: int
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        found = len(list(stage.current.all(CONFIG_MAP, NAMESPACE_NAME)))
        if found != self.count:
            yield f"there are {found} ConfigMaps, not {self.count}"
        sample = stage.current.get(kind, NAMESPACE_NAME, name)
        said = sample.get("status", {}).get("size") if sample is not None else None
        if said != (self.count if self.exists else None):
            yield f"the status says {said}"


def sample(size: int) -> Json:
    """Return a Sample of this size."""
    metadata = {"name": "some", "namespace": NAMESPACE_NAME}
    return {"apiVersion": SAMPLES.api_version, "kind": "Sample", "metadata": metadata, "spec": {"size": size}}


SCENARIOS = tuple(
    Scenario(
        name=name,
        given=() if name == "sample-made" else (Create(document=sample(2)),),
        when=(when,),
        then=then,
        workload="some",
        kind="Sample",
        services=("samples",),
        exact=name != "sample-removed",  # a controller that has not seen the deletion replaces deleted ones
    )
    for name, when, then in (
        ("sample-made", Create(document=sample(3)), Maps(count=3)),
        ("sample-scaled", Change(patch={"spec": {"size": 1}}, name="some", kind="Sample"), Maps(count=1)),
        ("sample-removed", Remove(name="some", kind="Sample"), Maps(count=0, exists=False)),
    )
)
