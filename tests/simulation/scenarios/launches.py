"""Containers that start in the order of their priorities (container-extras.md §B)."""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import CONTAINER_PRIORITY_ENV, LAUNCH_COMPLETED, LAUNCH_PRIORITY, LAUNCHED_IN_ORDER
from flotilla_common.api.resources import CONFIG_MAP, POD, Resource
from flotilla_common.control.plan import Frozen, Json
from flotilla_sidecar.launchpriority import launch
from tests.simulation.oracles.launch_order import LaunchOrder
from tests.simulation.scenarios.manifests import cloneset
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import (
    NAMESPACE_NAME,
    REPOSITORY,
    BreakImage,
    Create,
    Remove,
    Stage,
    Step,
    WaitGone,
    until,
)

EVERY = 6


def pod(priorities: dict[str, int | None], *, ordered: bool = False) -> Json:
    """Return a pod `web` with these containers; their images have the same names."""
    annotations = {LAUNCH_PRIORITY: LAUNCHED_IN_ORDER} if ordered else {}
    return {
        "apiVersion": "v1",
        "kind": POD.kind,
        "metadata": {"name": "web", "namespace": NAMESPACE_NAME, "annotations": annotations},
        "spec": {"containers": containers(priorities)},
    }


def containers(priorities: dict[str, int | None]) -> list[Json]:
    """Containers of these priorities, by name."""
    return [
        {"name": name, "image": REPOSITORY + name}
        | ({} if rank is None else {"env": [{"name": CONTAINER_PRIORITY_ENV, "value": str(rank)}]})
        for name, rank in priorities.items()
    ]


class WaitKeys(Step):
    """Wait until the ConfigMap of the pod `web` has these keys."""

    keys: tuple[str, ...]

    async def play(self, stage: Stage) -> None:
        await until(stage, lambda: keys_of(stage, "web") == self.keys, str(self))


class Launched(Frozen):
    """The pods and their ConfigMaps in the end."""

    keys: tuple[str, ...]
    pods: int = 1
    completed: bool = True
    serving: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        pods = stage.current.pods(NAMESPACE_NAME)
        if len(pods) != self.pods:
            yield f"there are {len(pods)} pods, not {self.pods}"
        for one in pods:
            title = one.metadata.name
            if (found := keys_of(stage, title)) != self.keys:
                yield f"{title} has the keys {found}, not {self.keys}"
            if (LAUNCH_COMPLETED in one.metadata.annotations) != self.completed:
                yield f"{title} says {one.metadata.annotations.get(LAUNCH_COMPLETED)}"
            if one.ready != self.serving:
                yield f"{title} {'does not serve' if self.serving else 'serves'}"
        maps = stage.current.all(CONFIG_MAP, NAMESPACE_NAME)
        owners = {owner["uid"] for one in maps for owner in one["metadata"].get("ownerReferences", [])}
        if owners != {one.metadata.uid for one in pods}:
            yield f"the ConfigMaps are those of {sorted(owners)}"


def keys_of(stage: Stage, title: str) -> tuple[str, ...]:
    """Return the keys of a pod's ConfigMap, sorted."""
    found = msgspec.convert({"metadata": {"name": title}}, Pod)
    document = stage.current.get(CONFIG_MAP, NAMESPACE_NAME, launch.barrier_name(found)) or {}
    return tuple(sorted(document.get("data", {})))


def launching(
    name: str,
    *when: Step,
    then: Launched,
    given: tuple[Step, ...] = (),
    services: tuple[str, ...] = ("sidecar",),
    kind: str = POD.kind,
    exact: bool = True,
) -> Scenario:
    """Return a scenario about the pod `web`, or the CloneSet of that name."""
    return Scenario(
        name=name, given=given, when=when, then=then, kind=kind, services=services, every=EVERY, exact=exact
    )


THREE: dict[str, int | None] = {"a": None, "b": 10, "c": -5}
ALL = ("p_-5", "p_0", "p_10")

SCENARIOS = (
    launching("launched-by-priority", Create(document=pod(THREE)), then=Launched(keys=ALL)),
    launching(
        "launched-in-order",
        Create(document=pod({"a": 1, "b": 9, "c": None}, ordered=True)),
        then=Launched(keys=("p_-1", "p_-2", "p_0")),
    ),
    launching(
        "launched-two-at-a-time",
        Create(document=pod({"a": 3, "b": 3, "c": 1})),
        then=Launched(keys=("p_1", "p_3")),
    ),
    launching(
        "launch-held-up",
        BreakImage(image="b"),
        Create(document=pod(THREE)),
        WaitKeys(keys=("p_10",)),
        then=Launched(keys=("p_10",), completed=False, serving=False),
    ),
    launching(
        "launch-goes-on",
        BreakImage(image="b", mend=True),
        given=(BreakImage(image="b"), Create(document=pod(THREE)), WaitKeys(keys=("p_10",))),
        then=Launched(keys=ALL),
    ),
    launching(
        "launched-under-the-same-name",
        Remove(),
        WaitGone(),
        Create(document=pod({"a": 7, "b": None})),
        given=(Create(document=pod(THREE)), WaitKeys(keys=ALL)),
        then=Launched(keys=("p_0", "p_7")),
        exact=False,  # the old ConfigMap is collected, or taken over
    ),
    launching(
        "launched-of-a-set",
        Create(
            document=cloneset(
                2, top={"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers(THREE)}}}
            )
        ),
        then=Launched(keys=ALL, pods=2),
        services=("cloneset", "sidecar"),
        kind="CloneSet",
    ),
)
RULES = (LaunchOrder,)
