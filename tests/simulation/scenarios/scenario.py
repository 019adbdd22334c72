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
    """What must be in the end."""

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """How what there is differs. `name` and `kind` are those of the scenario's workload."""
        ...


class End(Frozen):
    """What is there when everything has come to rest. What is None is not looked at."""

    pods: dict[str, int]  # how many active pods of the workload have which image
    serving: int | None = None  # how many of them serve; None: all
    names: tuple[str, ...] | None = None  # of the active pods, sorted
    claims: int | None = None
    revisions: int | None = None
    status: Json = {}  # members of the workload's status
    loose: int = 0  # pods without a controller
    exists: bool = True  # the workload does

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """How what there is differs."""
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
    """`given` is played before anything goes wrong, and comes to rest unless `at_rest` says otherwise; faults fall
    into `when`.

    `exact` scenarios make the same writes whatever goes wrong. In the others the way depends on what a user's action
    meets, so that only ends are compared. `restless` ones go on trying something that is refused for ever. `timed`
    ones hang on wall clocks, which must then agree. `uncertain`: members of the end that are not compared, because
    they say what a process knew that may have died. `quiet`: seconds without a change after which it has come to
    rest, if back-offs make it pause for longer than usual. `every`: the sweep tries only each so-many-th fault, where
    many scenarios of a kind pass much the same points; 0: none but an exhaustive sweep tries any. `restorable`: it
    ends in the same after a restore of etcd, too. `services` take part beside the watcher, and as many of the nodes'
    agents as `agents` says.
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
        """How the end differs from what was promised."""
        return list(self.then.problems(stage, self.workload, self.resource))
