"""The pods of a budget, their expected number, and the reads for that (podunavailablebudget.md §5.3)."""

import msgspec
import pytest

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.api.resources import DEPLOYMENT, POD, REPLICA_SET, Resource
from flotilla_common.api.workload import Workload
from flotilla_common.control.keystate import Memory
from flotilla_policy.podunavailablebudget.controller import BUDGETS, CONFIGURATIONS, PODS, WORKLOADS, Gatherer
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot, Counted
from tests.support.controller_context import FakeContext
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.unit.podunavailablebudget.build import BY, ago, budget, owner, pod, terminating, workload

GAME = {"apiVersion": "game.io/v1", "kind": "GameServerSet", "name": "web"}
CLONES = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web"}


GAME_SETS = Resource("game.io", "v1", "gameserversets", "GameServerSet")
SCALE: Json = {"metadata": {"name": "web", "namespace": "ns", "uid": "uid-web"}, "spec": {"replicas": 5}}


def apiserver(*, scaled: bool = True) -> FakeApi:
    """Return an apiserver with a GameServerSet, with or without a scale."""
    made = FakeApi({GAME_SETS: [SCALE]})
    names = ["gameserversets", *(["gameserversets/scale"] if scaled else [])]
    made.serve("game.io/v1", *({"name": name, "kind": "GameServerSet", "namespaced": True} for name in names))
    made.scales["web"] = SCALE | {"status": {"selector": "app=web"}}
    return made


class Scene:
    """A gatherer and its inputs."""

    def __init__(self, api: FakeApi | None = None) -> None:
        self.context = FakeContext()
        self.context.api = (api or apiserver()).api
        self.gatherer = Gatherer(self.context, None)

    def given(self, one: PodUnavailableBudget, *pods: Pod) -> "Scene":
        self.context.put(BUDGETS, one)
        self.context.put(PODS, *pods)
        return self

    def works(self, resource: Resource, *workloads: Workload) -> "Scene":
        self.context.put(WORKLOADS[resource], *workloads)
        return self

    def gather(self) -> BudgetSnapshot:
        found = self.gatherer.gather(("ns", "pub"), Memory())
        assert found is not None
        return found

    async def settled(self) -> BudgetSnapshot:
        """Gather until the apiserver has answered everything: an answer may lead to one more read."""
        for _ in range(2):
            self.gather()
            await self.context.work()
        return self.gather()


def names(snapshot: BudgetSnapshot) -> list[str]:
    return sorted(one.metadata.name for one in snapshot.pods)


SETS = owner("CloneSet", api_version="apps.kruise.io/v1beta1")


def test_active_pods_of_the_selector() -> None:
    there = [pod("a", owner=SETS), pod("b"), pod("other", labels={}), terminating("c")]
    scene = Scene().given(budget(maxUnavailable=1), *there).works(CLONE_SET, workload())
    found = scene.gather()
    assert (names(found), found.expected, found.workloads) == (["a", "b"], 3, [Counted("CloneSet", "web", 3)])
    assert [one.metadata.name for one in found.terminating] == ["c"]


@pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}])
def test_an_empty_selector_selects_nothing(selector: Json) -> None:
    found = Scene().given(budget(maxUnavailable=1, selector=selector), pod("a")).gather()
    assert (names(found), found.expected) == ([], 0)


def test_two_replica_sets_of_a_deployment_count_once() -> None:
    above = owner("Deployment", "dep")
    sets = [workload(name, 2, ownerReferences=[above | {"controller": True}]) for name in ("old", "new")]
    there = [pod("a", owner=owner("ReplicaSet", "old")), pod("b", owner=owner("ReplicaSet", "new"))]
    scene = Scene().given(budget(maxUnavailable=1), *there).works(REPLICA_SET, *sets)
    found = scene.works(DEPLOYMENT, workload("dep", 4)).gather()
    assert (found.expected, found.workloads) == (4, [Counted("Deployment", "dep", 4)])


async def test_a_replica_set_whose_deployment_has_gone() -> None:
    above = owner("Deployment", "dep") | {"controller": True}
    scene = Scene().given(budget(maxUnavailable=1), pod("a", owner=owner("ReplicaSet", "rs")))
    scene.works(REPLICA_SET, workload("rs", 2, ownerReferences=[above]))
    assert scene.gather().pending == "Deployment dep"
    found = await scene.settled()
    assert (found.pending, found.expected) == ("", -1)


async def test_a_deployment_that_the_mirror_does_not_know_yet() -> None:
    above = owner("Deployment", "dep") | {"controller": True}
    scene = Scene().given(budget(maxUnavailable=1), pod("a", owner=owner("ReplicaSet", "rs")))
    scene.works(REPLICA_SET, workload("rs", 2, ownerReferences=[above]))
    scene.context.server[DEPLOYMENT, "ns", "dep"] = workload("dep", 4)
    assert (await scene.settled()).expected == 4


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param([workload(deletionTimestamp=ago(0))], 0, id="being deleted"),
        pytest.param([workload(uid="another")], 0, id="a namesake"),
        pytest.param([], 0, id="gone"),
        pytest.param([workload(replicas=None)], 1, id="without a number"),
    ],
)
async def test_a_workload_that_adds_nothing(held: list[Workload], expected: int) -> None:
    scene = Scene().given(budget(maxUnavailable=1), pod("a", owner=SETS)).works(CLONE_SET, *held)
    found = await scene.settled()
    assert (names(found), found.expected) == (["a"], expected)


@pytest.mark.parametrize(
    ("replicas", "expected", "counted"),
    [pytest.param(3, 3, ["a", "b"], id="its pods"), pytest.param(0, 0, [], id="scaled to nothing")],
)
async def test_pods_of_the_target(replicas: int, expected: int, counted: list[str]) -> None:
    ending = pod("e", owner=SETS, deletionTimestamp=ago(-30))
    there = [pod("a", owner=SETS), pod("b", owner=SETS, labels={}), pod("c"), ending]
    scene = (
        Scene().given(budget(targetRef=CLONES, maxUnavailable=1), *there).works(CLONE_SET, workload("web", replicas))
    )
    found = scene.gather()
    assert (names(found), found.expected) == (counted, expected)
    assert list(found.terminating) == ([ending] if counted else [])


def test_pods_of_all_replica_sets_of_a_target() -> None:
    above = owner("Deployment", "dep") | {"controller": True}
    sets = [workload(name, size, ownerReferences=[above]) for name, size in (("old", 0), ("new", 3))]
    gone = workload("gone", 1, ownerReferences=[above], deletionTimestamp=ago(0))
    there = [pod(f"of-{name}", owner=owner("ReplicaSet", name)) for name in ("old", "new", "gone", "alone")]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "dep"}
    scene = Scene().given(budget(targetRef=target, maxUnavailable=1), *there).works(REPLICA_SET, *sets, gone)
    assert names(scene.works(DEPLOYMENT, workload("dep", 3)).gather()) == ["of-new", "of-old"]


async def test_a_target_that_the_mirror_does_not_know_is_asked_for() -> None:
    scene = Scene().given(budget(targetRef=CLONES, maxUnavailable=1), pod("a", owner=SETS))
    scene.context.server[CLONE_SET, "ns", "web"] = workload()
    assert scene.gather().pending == "CloneSet web"
    assert (await scene.settled()).expected == 3


async def test_fewer_pods_are_expected_only_when_the_apiserver_says_so() -> None:
    """The apiserver is read, because the mirror may be behind.

    The mirror has the workload from before it was scaled out, and the status was counted from a newer one.
    """
    scene = Scene().given(budget(targetRef=CLONES, maxUnavailable=1, status={"totalReplicas": 5}), pod("a", owner=SETS))
    scene.works(CLONE_SET, workload("web", 3))
    scene.context.server[CLONE_SET, "ns", "web"] = workload("web", 5, resourceVersion="2")
    assert scene.gather().pending == "CloneSet web"
    assert (await scene.settled()).expected == 5


def test_more_pods_are_expected_at_once() -> None:
    scene = Scene().given(budget(targetRef=CLONES, maxUnavailable=1, status={"totalReplicas": 2}))
    assert scene.works(CLONE_SET, workload("web", 3)).gather().expected == 3


@pytest.mark.parametrize("spec", [{"protectTotalReplicas": 14}, {}])
def test_the_number_that_the_budget_says(spec: Json) -> None:
    metadata = {"annotations": {"pub.kruise.io/protect-total-replicas": "14"}}
    scene = Scene().given(budget(maxUnavailable=1, metadata=metadata, **spec), pod("a", owner=SETS))
    found = scene.works(CLONE_SET, workload("web", 3)).gather()
    assert (names(found), found.expected) == (["a"], 14)


# Kinds that are not mirrored


@pytest.mark.parametrize(
    ("scaled", "listed", "expected", "read"),
    [
        pytest.param(True, False, 5, "gameserversets/scale", id="by its scale"),
        pytest.param(True, True, 5, "gameserversets", id="named by administrators"),
        pytest.param(False, False, -1, "gameserversets", id="without a scale"),
    ],
)
async def test_a_workload_of_any_kind(scaled: bool, listed: bool, expected: int, read: str) -> None:
    api = apiserver(scaled=scaled)
    scene = Scene(api).given(budget(targetRef=GAME, maxUnavailable=1), pod("a"))
    if listed:
        entry = '{"workloads": [{"group": "game.io", "version": "v1", "kind": "GameServerSet"}]}'
        document = {
            "metadata": {"name": CONFIGURATION, "namespace": "kruise-system", "uid": "c"},
            "data": {"PPS_Watch_Custom_Workload_WhiteList": entry},
        }
        scene.context.put(CONFIGURATIONS, msgspec.convert(document, ConfigMap))
    found = await scene.settled()
    assert (found.expected, api.gets) == (expected, [(read, "web")])
    assert names(found) == (["a"] if scaled and not listed else [])  # by the selector of its scale
    assert found.next_read is not None


@pytest.mark.parametrize(
    ("replicas", "uid", "served", "fault"),
    [
        pytest.param(None, "uid-web", True, "", id="does not exist"),
        pytest.param(5, "another", True, "", id="a namesake"),
        pytest.param(5, "uid-web", False, "GameServerSet web: game.io/v1 serves no", id="no such kind"),
    ],
)
async def test_a_controller_that_is_not_there(replicas: int | None, uid: str, served: bool, fault: str) -> None:
    api = apiserver()
    api.scales["web"] = SCALE | {"metadata": SCALE["metadata"] | {"uid": uid}}
    if replicas is None:
        api.scales.clear()
        api.replace_all(GAME_SETS)
    if not served:
        api.serve("game.io/v1")
    above = owner("GameServerSet", api_version="game.io/v1")
    found = await Scene(api).given(budget(maxUnavailable=1), pod("a", owner=above)).settled()
    assert found.fault.startswith(fault)
    assert (bool(found.fault), found.expected) == (bool(fault), 0)


async def test_what_nobody_watches_is_looked_at_again() -> None:
    api = apiserver()
    scene = Scene(api).given(budget(targetRef=GAME, maxUnavailable=1))
    scene.gather()
    await scene.context.work()
    first = scene.gather()
    api.scales["web"] |= {"spec": {"replicas": 9}}
    assert scene.gather().expected == 5
    second = scene.gather()
    assert first.next_read is not None
    assert second.next_read is not None
    assert second.next_read < first.next_read
    await scene.context.clock.sleep(1.1)
    assert scene.gather().pending == "GameServerSet web"
    assert (await scene.settled()).expected == 9


# What entries and names of other budgets require


async def test_the_apiserver_is_asked_about_pods_whose_entries_have_ended() -> None:
    scene = Scene()
    status = {"disruptedPods": {"a": "2020-01-01T00:00:00Z"}, "unavailablePods": {"b": "2999-01-01T00:00:00Z"}}
    scene.given(budget(maxUnavailable=1, status=status), pod("a"), pod("b"))
    scene.context.server[POD, "ns", "a"] = terminating("a")
    assert scene.gather().just_read == frozenset()
    assert (await scene.settled()).just_read == {"a"}
    assert scene.context.read_objects == [("ns", "a")]


async def test_a_budget_that_pods_name_counts_as_missing_when_the_apiserver_says_so() -> None:
    scene = Scene().given(budget(maxUnavailable=1), pod("a", annotations={BY: "other"}))
    assert scene.gather().missing_budgets == frozenset()
    assert (await scene.settled()).missing_budgets == {"other"}


def test_a_budget_that_is_being_deleted_is_left_alone() -> None:
    scene = Scene().given(budget(maxUnavailable=1, metadata={"deletionTimestamp": ago(0)}))
    assert scene.gatherer.gather(("ns", "pub"), Memory()) is None
