"""ResourceDistributions: a ConfigMap in namespaces that come and go, changed copies, foreign objects.

The rules are in resourcedistribution.md §5.
"""

from collections.abc import Awaitable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.resources import CONFIG_MAP, NAMESPACE, Resource
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.kube.interface import ApiError
from tests.simulation.oracles.copies import Copies, controller, equal, targets
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import MERGE, QUOTA, Change, Create, Remove, Stage, Step, WaitGone, until

EVERY = 6
NAME = "shared"
"""The name of the ResourceDistribution, and of the object that it distributes."""

THEIRS: Json = {"data": {"k": "theirs"}}


class Distributed(Frozen):
    """In the end every target that exists has an equal copy, and nothing else has one."""

    counts: tuple[int, int, int]  # desired, succeeded, failed
    failures: Mapping[int, tuple[str, ...]] = {}  # conditions that are True, by index, and their namespaces
    theirs: tuple[str, ...] = ()  # namespaces in which somebody else's object has the name, and is as it was
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        document = stage.current.get(kind, "", name)
        if (document is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        for namespace in _namespaces(stage):
            found = stage.current.get(CONFIG_MAP, namespace, NAME)
            if namespace in self.theirs:
                uid = "" if document is None else document["metadata"]["uid"]
                if found is None or controller(found) == uid != "" or found["data"] != THEIRS["data"]:
                    yield f"somebody else's object in {namespace} is {found}"
                continue
            wanted = document is not None and targets(document, namespace, stage.current.get(NAMESPACE, "", namespace))
            if (found is not None) != wanted:
                yield f"{namespace} has {'no' if wanted else 'a'} copy"
            if found is not None and document is not None and not equal(found, document):
                yield f"the copy in {namespace} is {found}"
        status: Json = (document or {}).get("status", {})
        if (counts := tuple(status.get(count, 0) for count in ("desired", "succeeded", "failed"))) != self.counts:
            yield f"counts are {counts}, not {self.counts}"
        true = [(at, one) for at, one in enumerate(status.get("conditions", ())) if one["status"] == "True"]
        if (failures := {at: tuple(one["failedNamespaces"]) for at, one in true}) != self.failures:
            yield f"failures are {failures}, not {self.failures}"


class Edit(Step):
    """Somebody patches what has the name in a namespace, if there is anything."""

    namespace: str
    patch: Json

    async def play(self, stage: Stage) -> None:
        body = msgspec.json.encode(self.patch)
        await _if_it_exists(stage.world.api.patch(CONFIG_MAP, self.namespace, NAME, body, MERGE))


class Drop(Step):
    """Somebody deletes what has the name in a namespace."""

    namespace: str

    async def play(self, stage: Stage) -> None:
        await _if_it_exists(stage.world.api.delete(CONFIG_MAP, self.namespace, NAME))


class Plant(Step):
    """Somebody makes an object of the name, or of another kind, in a namespace."""

    namespace: str
    document: Json

    async def play(self, stage: Stage) -> None:
        resource = QUOTA if self.document["kind"] == QUOTA.kind else CONFIG_MAP
        await stage.world.api.create(resource, self.namespace, msgspec.json.encode(self.document))


class LiftQuota(Step):
    """The quota of a namespace goes."""

    namespace: str

    async def play(self, stage: Stage) -> None:
        await stage.world.api.delete(QUOTA, self.namespace, "none")


class WaitCopies(Step):
    """Wait until exactly these namespaces have copies of this value, and the status has this number of targets."""

    namespaces: tuple[str, ...]
    value: str = "one"
    desired: int | None = None

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            found = {name: stage.current.get(CONFIG_MAP, name, NAME) for name in _namespaces(stage)}
            copies = [name for name, one in found.items() if one is not None and controller(one)]
            right = all((found[name] or {}).get("data") == {"k": self.value} for name in copies)
            status: Json = (stage.current.get(RESOURCE_DISTRIBUTION, "", NAME) or {}).get("status", {})
            counted = self.desired is None or status.get("desired", 0) == self.desired
            return right and counted and sorted(copies) == sorted(self.namespaces)

        await until(stage, reached, str(self))


class WaitCounted(Step):
    """Wait until the status has this number of targets of the newest spec."""

    desired: int

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            document = stage.current.get(RESOURCE_DISTRIBUTION, "", NAME) or {}
            status: Json = document.get("status", {})
            seen = status.get("observedGeneration") == document.get("metadata", {}).get("generation")
            return seen and status.get("desired", 0) == self.desired

        await until(stage, reached, str(self))


def namespace(name: str, **labels: str) -> Create:
    """Create a namespace."""
    return Create(document={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def label(name: str, team: str | None) -> Change:
    """Set the label `team` of a namespace."""
    return Change(kind="Namespace", name=name, patch={"metadata": {"labels": {"team": team}}})


def config_map(**members: object) -> Json:
    """Under the name of all."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, **members}


def names(*those: str) -> Json:
    """As targets name namespaces."""
    return {"list": [{"name": name} for name in those]}


def distribution(source: Json | None = None, name: str = NAME, **wish: Any) -> Json:
    """Return a ResourceDistribution with these targets."""
    spec = {"resource": config_map(**(source or {"data": {"k": "one"}})), "targets": wish}
    kind = RESOURCE_DISTRIBUTION
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


def value(text: str) -> Change:
    """Other content."""
    return Change(name=NAME, patch={"spec": {"resource": {"data": {"k": text}}}})


def wish(**targets: object) -> Change:
    """Other targets."""
    return Change(name=NAME, patch={"spec": {"targets": targets}})


def shared(*namespaces: str, **targets: Json) -> tuple[Step, ...]:
    """Create these namespaces, and wait until they have copies."""
    chosen: Json = targets or {"includedNamespaces": names(*namespaces)}
    made = (namespace(name) for name in namespaces)
    return *made, Create(document=distribution(**chosen)), WaitCopies(namespaces=namespaces)


distributing = partial(
    Scenario, given=(), workload=NAME, kind=RESOURCE_DISTRIBUTION.kind, services=("sidecar",), every=EVERY
)
"""A scenario about the one ResourceDistribution."""


async def _if_it_exists(call: Awaitable[bytes]) -> None:
    try:
        await call
    except ApiError as error:
        if error.code != 404:
            raise


def _namespaces(stage: Stage) -> list[str]:
    return [name for kind, _, name in list(stage.current.objects) if kind == NAMESPACE]


SCENARIOS = (
    distributing(
        name="distributed-before-a-namespace-comes",
        given=(namespace("a"), namespace("b", team="one")),
        when=(
            Create(
                document=distribution(
                    includedNamespaces=names("a", "later"), namespaceSelector={"matchLabels": {"team": "one"}}
                )
            ),
            WaitCopies(namespaces=("a", "b"), desired=3),
            namespace("later"),
            WaitCopies(namespaces=("a", "b", "later")),
            namespace("never"),
        ),
        then=Distributed(counts=(3, 3, 0)),
    ),
    distributing(
        name="distributed-anew-while-copies-are-edited",
        given=shared("a", "b", "c"),
        when=(
            value("two"),
            Edit(namespace="a", patch={"data": {"k": "mine", "more": "x"}, "metadata": {"labels": {"mine": "x"}}}),
            Drop(namespace="b"),
            WaitCopies(namespaces=("a", "b", "c"), value="two"),
            Edit(namespace="c", patch={"data": {"k": "one"}}),
        ),
        then=Distributed(counts=(3, 3, 0)),
        exact=False,  # who edits what depends on who comes first
    ),
    distributing(
        name="distributed-beside-an-object-of-somebody-else",
        given=(namespace("a"), namespace("b"), Plant(namespace="a", document=config_map(**THEIRS))),
        when=(Create(document=distribution(includedNamespaces=names("a", "b"))), WaitCopies(namespaces=("b",))),
        then=Distributed(counts=(2, 1, 1), failures={4: ("a",)}, theirs=("a",)),
    ),
    distributing(
        name="distributed-by-two",
        given=(
            namespace("a"),
            namespace("b"),
            Create(document=distribution(THEIRS, name="other", includedNamespaces=names("a"))),
            WaitCopies(namespaces=("a",), value="theirs"),
        ),
        when=(
            Create(document=distribution(allNamespaces=True, excludedNamespaces=names("default", "shop"))),
            WaitCounted(desired=4),
            wish(allNamespaces=None, includedNamespaces=names("b")),
            WaitCounted(desired=1),
            wish(includedNamespaces=names("a", "b")),
        ),
        then=Distributed(counts=(2, 1, 1), failures={4: ("a",)}, theirs=("a",)),
    ),
    distributing(
        name="object-of-somebody-else-makes-room",
        given=(
            namespace("a"),
            Plant(namespace="a", document=config_map(**THEIRS)),
            *shared("b", includedNamespaces=names("a", "b")),
        ),
        when=(Drop(namespace="a"), WaitCopies(namespaces=("a", "b")), value("two")),
        then=Distributed(counts=(2, 2, 0)),
    ),
    distributing(
        name="copy-that-lost-its-owner",
        given=shared("a", "b"),
        when=(Edit(namespace="a", patch={"metadata": {"ownerReferences": []}, **THEIRS}), value("two")),
        then=Distributed(counts=(2, 1, 1), failures={4: ("a",)}, theirs=("a",)),
        exact=False,  # a copy may get its new value before it is given away
    ),
    distributing(
        name="targets-by-labels-that-change",
        given=(
            namespace("a", team="one"),
            *shared("b", "c", namespaceSelector={"matchLabels": {"team": "one"}}, includedNamespaces=names("b", "c"))[
                :-1
            ],
            WaitCopies(namespaces=("a", "b", "c")),
        ),
        when=(
            label("a", None),
            WaitCopies(namespaces=("b", "c"), desired=2),
            wish(includedNamespaces=names("b")),
            label("a", "one"),
            WaitCopies(namespaces=("a", "b"), desired=2),
            wish(includedNamespaces=None, excludedNamespaces=names("b")),
        ),
        then=Distributed(counts=(1, 1, 0)),
    ),
    distributing(
        name="namespaces-that-come-and-go",
        given=(
            namespace("a"),
            namespace("b"),
            Create(document=distribution(includedNamespaces=names("a", "b"))),
            WaitCopies(namespaces=("a", "b")),
        ),
        when=(
            Remove(kind="Namespace", name="a"),
            WaitGone(kind="Namespace", name="a"),
            namespace("a"),
            WaitCopies(namespaces=("a", "b")),
            Remove(kind="Namespace", name="b"),
        ),
        then=Distributed(counts=(2, 1, 1), failures={5: ("b",)}),
        exact=False,  # a copy that goes with its namespace may be met by a last write
    ),
    distributing(
        name="distribution-that-goes",
        given=(*shared("a", "b"), namespace("c"), Plant(namespace="c", document=config_map(**THEIRS))),
        when=(wish(includedNamespaces=names("a", "b", "c")), Remove(name=NAME)),
        then=Distributed(counts=(0, 0, 0), theirs=("c",), exists=False),
        exact=False,
    ),
    distributing(
        name="distribution-that-goes-after-its-copies",
        given=shared("a", "b"),
        when=(value("two"), Remove(name=NAME, propagation="Foreground")),
        then=Distributed(counts=(0, 0, 0), exists=False),
        exact=False,
    ),
    distributing(
        name="distributed-under-a-quota",
        given=(
            *(namespace(name) for name in "abc"),
            Plant(
                namespace="b",
                document={
                    "apiVersion": "v1",
                    "kind": "ResourceQuota",
                    "metadata": {"name": "none"},
                    "spec": {"hard": {"configmaps": "0"}},
                },
            ),
        ),
        when=(
            Create(document=distribution(includedNamespaces=names("a", "b", "c"))),
            WaitCopies(namespaces=("a", "c"), desired=3),
            LiftQuota(namespace="b"),
        ),
        then=Distributed(counts=(3, 3, 0)),
        exact=False,
    ),
)
RULES = (Copies,)
