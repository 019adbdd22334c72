"""A script: what a user does to one CloneSet, and what goes wrong meanwhile; drawn from a seed, or read from JSON.

Whatever happens in between, every script ends in calm: nothing is paused or held back any more, all nodes are there. So
the end is known: all pods wanted, on the last image, serving.
"""

import random
from collections.abc import Callable, Iterable, Sequence

import msgspec

from flotilla_common.control.plan import Json
from tests.simulation.perturbation.catalogue import CONTROLLERS, FAULT_KINDS
from tests.simulation.perturbation.fault import Fault, Place
from tests.simulation.scenarios.manifests import cloneset, image, label, rolling, running, spec
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import (
    REPOSITORY,
    AnyStep,
    ChangePod,
    LoseNode,
    NamePodsToDelete,
    RemovePod,
    ReturnNodes,
    Sleep,
    Step,
)

IMAGES = ("one", "two", "three", "four")
MOST_STEPS, MOST_FAULTS, MOST_REPLICAS = 8, 3, 5

RESOURCES = ("pods", "clonesets", "controllerrevisions")

WRITES, EVENTS, MESSAGES = 40, 60, 80
"""Up to which number points are drawn: about as many as a script passes."""


class Script(msgspec.Struct, frozen=True, kw_only=True, tag_field="about", tag="clonesets"):
    """One exploration."""

    seed: int
    document: Json
    steps: tuple[AnyStep, ...]
    faults: tuple[Fault, ...]

    def scenario(self) -> Scenario:
        """Return the script as a scenario that ends in calm."""
        rolling_update = {"paused": False, "partition": 0}
        end = spec(replicas=self.replicas, updateStrategy={"rollingUpdate": rolling_update})
        keeps = bool(self.document["spec"]["scaleStrategy"].get("enablePVCReuse"))
        failed = any(isinstance(step, ChangePod) and step.subresource for step in self.steps)  # they keep their claims
        counted = "volumeClaimTemplates" in self.document["spec"] and not keeps and not failed
        return Scenario(
            name=f"seed:{self.seed}",
            given=running(self.document),
            when=(*self.steps, ReturnNodes(), end),
            then=End(pods={self.image: self.replicas}, claims=self.replicas if counted else None),
            exact=False,
        )

    @property
    def replicas(self) -> int:
        """Return how many pods are wanted in the end."""
        wanted = [value for step in self.steps if (value := _member(step, "replicas")) is not None]
        return int(str(wanted[-1])) if wanted else int(self.document["spec"]["replicas"])

    @property
    def image(self) -> str:
        """Return the image that is wanted in the end."""
        return last_image(self.steps)

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def draw(seed: int) -> Script:
    """Draw the script of a seed."""
    rng = random.Random(seed)
    members = draw_members(rng, ACTIONS, lambda: _document(rng), "cloneset", RESOURCES)
    return msgspec.convert({"about": "clonesets", "seed": seed, **members}, type=Script)


def draw_members(
    rng: random.Random,
    actions: Sequence[Callable[[random.Random], Step]],
    document: Callable[[], Json],
    service: str,
    resources: Sequence[str],
) -> Json:
    """Draw steps, faults and the workload."""
    steps: list[Step] = []
    for _ in range(rng.randint(1, MOST_STEPS)):
        steps.append(rng.choice(actions)(rng))
        if rng.random() < 0.6:
            steps.append(Sleep(seconds=rng.choice((0.002, 0.01, 0.05, 0.3, 1.0, 3.0))))
    faults = [_fault(rng, service, resources) for _ in range(rng.randint(0, MOST_FAULTS))]
    return {
        "document": document(),
        "steps": msgspec.to_builtins(steps),
        "faults": msgspec.to_builtins(faults),
    }


def _document(rng: random.Random) -> Json:
    policy = rng.choice(("ReCreate", "InPlaceIfPossible", "InPlaceIfPossible", "InPlaceOnly"))
    surge = 0 if policy == "InPlaceOnly" else rng.choice((0, 0, 1, 2))
    return cloneset(
        rng.randint(1, MOST_REPLICAS),
        policy=policy,
        claims=rng.random() < 0.3,
        scale={"enablePVCReuse": True} if rng.random() < 0.3 else {},
        maxUnavailable=rng.choice((0, 1, "40%") if surge else (1, 2, "40%")),
        maxSurge=surge,
        partition=rng.choice((0, 0, 1, "50%")),
    )


def _fault(rng: random.Random, controller: str, resources: Sequence[str]) -> Fault:
    name = rng.choice(sorted(name for name, kind in FAULT_KINDS.items() if kind.drawn))
    kind = FAULT_KINDS[name]
    most = {Place.WRITE: WRITES, Place.EVENT: EVENTS, Place.MESSAGE: MESSAGES, Place.STEP: MOST_STEPS}[kind.place]
    service = rng.choice(kind.services).replace(CONTROLLERS, controller)
    resource = rng.choice(resources) if kind.per_resource else ""
    return Fault(name, f"{service}-0" if service else "", rng.randrange(most), resource)


ACTIONS: Sequence[Callable[[random.Random], Step]] = (
    lambda rng: spec(replicas=rng.randint(0, MOST_REPLICAS)),
    lambda rng: spec(replicas=rng.randint(1, MOST_REPLICAS)),
    lambda rng: image(rng.choice(IMAGES)),
    lambda rng: image(rng.choice(IMAGES)),
    lambda rng: image(rng.choice(IMAGES)),
    lambda rng: rolling(partition=rng.choice((0, 1, 2, "30%", "50%"))),
    lambda rng: rolling(paused=rng.random() < 0.5),
    lambda rng: RemovePod(nth=rng.randint(0, 4)),
    lambda rng: label(rng.randint(0, 4), **{"apps.kruise.io/specified-delete": "true"}),
    lambda rng: NamePodsToDelete(nths=(rng.randint(0, 4),)),
    lambda rng: ChangePod(nth=rng.randint(0, 4), patch={"status": {"phase": "Failed"}}, subresource="status"),
    lambda rng: LoseNode(nth=rng.randint(0, 4)),
    lambda _: ReturnNodes(),
)
"""Actions of users, nodes and pods that may come next."""


def last_image(steps: Iterable[Step]) -> str:
    """Return the image that the steps leave in the template."""
    image = "one"
    for step in steps:
        template = _member(step, "template")
        if isinstance(template, dict):
            image = str(template["spec"]["containers"][0]["image"]).removeprefix(REPOSITORY)
    return image


def _member(step: Step, name: str) -> Json | int | None:
    """Return the member of the spec that the step sets."""
    patch: Json = getattr(step, "patch", {})
    return patch.get("spec", {}).get(name)
