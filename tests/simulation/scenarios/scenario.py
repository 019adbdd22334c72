"""A scenario: what is given, what happens, and what must be in the end. See docs/simulation.md for how a kind joins."""

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from flotilla_common.api.resources import CLAIM, POD, REVISION, Resource
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.workload.predicates import is_serving
from tests.simulation.scenarios.current_state import image_of
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Stage, Step, resource_of
from tests.simulation.world import CALM_SECONDS


class Ending(Protocol):
    """A condition on the final state."""

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state. `name` and `kind` are those of the scenario's workload."""
        ...


class End(Frozen):
    """The final state at rest. None is not checked."""

    pods: dict[str, int]  # how many active pods of the workload have which image
    serving: int | None = None  # how many of them serve; None: all
    names: tuple[str, ...] | None = None  # of the active pods, sorted
    claims: int | None = None
    revisions: int | None = None
    status: Json = {}  # members of the workload's status
    loose: int = 0  # pods without a controller
    exists: bool = True  # the workload does

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        current = stage.current
        pods = current.pods(NAMESPACE_NAME, name)
        if (images := dict(Counter(map(image_of, pods)))) != {image: n for image, n in self.pods.items() if n}:
            yield f"pods by image are {images}, not {self.pods}"
        if self.names is not None and (names := tuple(sorted(pod.metadata.name for pod in pods))) != self.names:
            yield f"the pods are {names}, not {self.names}"
        serving, wanted = sum(is_serving(pod) for pod in pods), len(pods) if self.serving is None else self.serving
        if serving != wanted:
            yield f"{serving} pods serve, not {wanted}"
        counts = ((CLAIM, self.claims), (REVISION, self.revisions))
        for resource, count in counts:
            found = len(list(current.all(resource, NAMESPACE_NAME)))
            if count is not None and found != count:
                yield f"there are {found} {resource.plural}, not {count}"
        loose = sum(not found["metadata"].get("ownerReferences") for found in current.all(POD, NAMESPACE_NAME))
        if loose != self.loose:
            yield f"{loose} pods have no owner, not {self.loose}"
        workload = current.get(kind, NAMESPACE_NAME, name)
        if (workload is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        status: Json = (workload or {}).get("status", {})
        for member, value in self.status.items():
            if status.get(member) != value:
                yield f"status.{member} is {status.get(member)!r}, not {value!r}"


OFTEN, SELDOM = 48, 0
"""`Scenario.every` of a kind with many scenarios: of those that stand for the others, and of the others."""


class Scenario(Frozen):
    """A scenario: `given` is played first and settles, unless `at_rest` is set; faults fall into `when`.

    `exact` scenarios make the same writes in spite of faults. In the others the writes depend on the state that a
    user's action meets, so that only final states are compared. `restless` ones retry a rejected write without end.
    `timed` ones depend on wall clocks, which must then agree. `uncertain`: members of the final state that are not
    compared, because they report the state of a process that may have died. `quiet`: seconds without a change after
    which it counts as settled, if backoffs make it pause for longer than usual. `every`: the sweep injects only every
    nth fault, where many scenarios of a kind pass similar points; 0: only an exhaustive sweep injects any.
    `restorable`: it ends in the same state after a restore of etcd, too. `services` take part beside the watcher, and
    the agents of the first `agents` nodes.
    """

    name: str
    given: tuple[Step, ...]
    when: tuple[Step, ...]
    then: Ending
    workload: str = "web"
    kind: str = "CloneSet"
    gates: str = ""
    services: tuple[str, ...] = ("cloneset",)
    agents: int = 0
    at_rest: bool = True
    every: int = 1
    exact: bool = True
    restorable: bool = True
    restless: bool = False
    timed: bool = False
    uncertain: tuple[str, ...] = ()
    quiet: float = CALM_SECONDS

    @property
    def resource(self) -> Resource:
        """The workload's resource."""
        return resource_of(self.kind)

    def problems(self, stage: Stage) -> list[str]:
        """Yield the differences of the final state from the scenario's end."""
        return list(self.then.problems(stage, self.workload, self.resource))
