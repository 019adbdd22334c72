"""The subset of a new pod (workloadspread.md §5.2, §5.3, §6 and the worked examples of §11)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.workloadspread.types import PLACE, WORKLOAD_SPREAD
from flotilla_common.api.resources import JOB, REPLICA_SET, Resource
from flotilla_common.kube.interface import ApiError
from flotilla_webhook.owners import CACHED_SECONDS
from flotilla_webhook.spreading.selection import ASKED_SECONDS, UNSEEN_SECONDS
from tests.testkit.documents import Json
from tests.unit.webhook.spread_world import CLONE_SET, NAMESPACE, World, mark, owner, pod, spread, subset

RS = ("apps/v1", "ReplicaSet", "web-5d8")
WEB = ("apps/v1", "Deployment", "web")
SET = ("apps.kruise.io/v1beta1", "StatefulSet", "web")
TRAIN = ("train.example.com/v1", "TrainJob", "net")
GROUP = ("train.example.com/v1", "TrainGroup", "net-0")
TRAIN_JOBS = Resource("train.example.com", "v1", "trainjobs", "TrainJob")
TRAIN_GROUPS = Resource("train.example.com", "v1", "traingroups", "TrainGroup")
WHITE_LIST = {
    "workloads": [
        {
            "Group": "train.example.com",
            "Version": "v1",
            "Kind": "TrainJob",
            "replicasPath": "spec.worker.replicas",
            "subResources": [{"Group": "train.example.com", "version": "v1", "kind": "TrainGroup"}],
        }
    ]
}
CLOSED = [{"type": "Schedulable", "status": "False", "reason": "PodUnschedulable", "message": ""}]
CLOSED[0]["lastTransitionTime"] = "2025-12-31T23:59:00Z"


def child(name: str, of: tuple[str, str, str] | None = None) -> Json:
    owners = {"ownerReferences": [owner(*of)]} if of is not None else {}
    return {"metadata": {"name": name, "namespace": NAMESPACE, **owners}}


def entry(name: str, missing: int, **more: Any) -> Json:
    return {"name": name, "replicas": 0, "missingReplicas": missing, **more}


# Which WorkloadSpread


@pytest.mark.parametrize("watched", [True, False], ids=["from the watch", "asked: the watch has not listed yet"])
async def test_the_owner_is_the_target(watched: bool) -> None:
    world = World(spread(subset("a", 3), subset("b")))
    if watched:
        await world.watch()
    found = await world.create(pod("web-x"))
    assert mark(found) == {"name": "ws", "subset": "a"}
    assert world.book()["a"]["creatingPods"] == {"web-x": "2026-01-01T00:00:00Z"}


UNTOUCHED_ROWS = [
    pytest.param(pod("p", of=None), id="no controller"),
    pytest.param(pod("p", ("apps.kruise.io/v1beta1", "CloneSet", "db")), id="another name"),
    pytest.param(pod("p", ("apps/v1", "CloneSet", "web")), id="another group"),
    pytest.param(pod("p", ("apps.kruise.io/v1beta1", "BroadcastJob", "web")), id="a kind that is not spread"),
    pytest.param(pod("p") | {"status": {"phase": "Succeeded"}}, id="done already"),
    pytest.param(pod("p", deletionTimestamp="2026-01-01T00:00:00Z"), id="being deleted"),
]


@pytest.mark.parametrize("document", UNTOUCHED_ROWS)
async def test_other_pods_stay_as_they_are(document: Json) -> None:
    world = await World(spread(subset("a", 3))).watch()
    assert await world.create(document) == document
    assert world.cluster.writes == []


async def test_without_the_gate_nothing_happens() -> None:
    world = await World(spread(subset("a", 3)), on=False).watch()
    assert await world.create(pod("p")) == pod("p")
    assert (await world.spreads.selection.rules(), await world.spreads.selection.removal_rules()) == ([], [])


async def test_a_dry_run_takes_no_place() -> None:
    """W18."""
    world = await World(spread(subset("a", 3))).watch()
    assert await world.create(pod("p"), dry_run=True) == pod("p")
    assert (world.cluster.writes, world.book()) == ([], {})


async def test_the_versions_of_clone_sets_do_not_matter() -> None:
    world = await World(spread(subset("a", 3))).watch()
    assert await world.places("p", of=("apps.kruise.io/v1alpha1", "CloneSet", "web")) == "a"


@pytest.mark.parametrize(
    ("target_filter", "expected"),
    [
        pytest.param(None, "a", id="none"),
        pytest.param({}, "a", id="without a selector: all"),
        pytest.param({"selector": {}}, "a", id="an empty selector: all"),
        pytest.param({"selector": {"matchLabels": {"tier": "compute"}}}, "a", id="it matches"),
        pytest.param({"selector": {"matchLabels": {"tier": "web"}}}, "_", id="it does not"),
        pytest.param({"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}, "_", id="unreadable"),
    ],
)
async def test_the_filter(target_filter: Json | None, expected: str) -> None:
    world = await World(spread(subset("a", 3), targetFilter=target_filter)).watch()
    assert mark(await world.create(pod("p", labels={"tier": "compute"}))).get("subset", "_") == expected


async def test_an_unreadable_one_harms_no_other() -> None:
    bad = {"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}
    world = await World(
        spread(subset("a"), name="bad", targetFilter=bad), spread(subset("b", 1)), spread(subset("c"), name="z")
    ).watch()
    assert mark(await world.create(pod("p")))["name"] == "ws"


async def test_the_first_one_by_name_wins() -> None:
    world = await World(spread(subset("a"), name="y"), spread(subset("b"), name="x")).watch()
    assert mark(await world.create(pod("p")))["name"] == "x"


async def test_one_without_a_target_or_subsets_harms_nobody() -> None:
    """Pitfall 3."""
    bare = {"metadata": {"name": "bare", "namespace": NAMESPACE, "uid": "u"}}
    broken = {"metadata": {"name": "broken", "namespace": NAMESPACE, "uid": "u2"}, "spec": {"subsets": 3}}
    empty = spread(name="empty", target=("apps.kruise.io/v1beta1", "CloneSet", "other"))
    world = await World(bare, broken, empty, spread(subset("a", 3))).watch()
    assert await world.places("p") == "a"
    assert await world.places("p", of=("apps.kruise.io/v1beta1", "CloneSet", "other")) == "_"


async def test_one_that_is_being_deleted_is_passed_over() -> None:
    leaving = spread(subset("a", 3))
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
    assert await (await World(leaving).watch()).places("p") == "_"


# The way up to the target


async def test_pods_of_a_deployment() -> None:
    world = World(spread(subset("a", 3), target=WEB))
    world.cluster.put(REPLICA_SET, child("web-5d8", WEB))
    await world.watch()
    found = await world.create(pod(of=RS, labels={"pod-template-hash": "5d8"}))
    assert set(mark(found)) == {"name", "subset", "uid"}
    assert list(world.book("5d8")["a"]["creatingPods"]) == [mark(found)["uid"]]


async def test_an_owner_is_not_asked_for_with_each_pod() -> None:
    world = World(spread(subset("a"), target=WEB))
    world.cluster.put(REPLICA_SET, child("web-5d8", WEB))
    await world.watch()
    assert await world.places("p", "q", of=RS) == "aa"
    assert world.cluster.gets.count(("replicasets", "web-5d8")) == 1
    world.cluster.put(REPLICA_SET, child("web-5d8"))  # the Deployment has let it go
    world.clock.time += CACHED_SECONDS
    assert await world.places("r", of=RS) == "_"


async def test_an_owner_that_is_not_seen_yet_has_the_pod_come_again() -> None:
    """W19."""
    world = await World(spread(subset("a"), target=WEB)).watch()
    answer = await world.admission(pod(of=RS))
    assert (answer.code, answer.allowed) == (500, False)
    assert 'replicasets "web-5d8" not found' in answer.message
    assert (await world.admission(pod("p"))).allowed  # of another kind: nothing has to be read


async def test_a_stand_alone_replica_set() -> None:
    world = World(spread(subset("a", 3), target=RS))
    await world.watch()
    assert await world.places("p", of=RS) == "a"
    assert world.cluster.gets == []
    assert list(world.book()) == ["a"]


# Kinds that administrators name


def train_world(*, replicas: object = 10, **spec: Any) -> World:
    world = World(spread(subset("a", "40%"), subset("b", "60%"), target=TRAIN, **spec))
    world.configure(WHITE_LIST)
    resources = [
        {"name": "trainjobs", "kind": "TrainJob", "namespaced": True},
        {"name": "trainjobs/status", "kind": "TrainJob"},
        {"name": "traingroups", "kind": "TrainGroup", "namespaced": True},
    ]
    world.cluster.discovery["/apis/train.example.com/v1"] = {"resources": resources}
    workload = {"metadata": {"name": "net", "namespace": NAMESPACE}, "spec": {"worker": {"replicas": replicas}}}
    world.cluster.put(TRAIN_JOBS, workload)
    world.cluster.put(TRAIN_GROUPS, child("net-0", TRAIN))
    return world


@pytest.mark.parametrize("of", [TRAIN, GROUP], ids=["its own pods", "those of what is below it"])
async def test_a_kind_that_administrators_name(of: tuple[str, str, str]) -> None:
    world = await train_world().watch()
    assert await world.places("p", of=of) == "a"
    assert world.missing() == [3, 6]


async def test_what_is_below_may_be_of_a_built_in_kind() -> None:
    world = await train_world().watch()
    world.cluster.put(REPLICA_SET, child("net-rs", TRAIN))
    assert await world.places("p", of=("apps/v1", "ReplicaSet", "net-rs")) == "a"


async def test_the_list_is_read_anew_for_each_pod() -> None:
    world = await train_world().watch()
    world.configure({"workloads": []})
    assert await world.places("p", of=TRAIN) == "_"
    world.configure(WHITE_LIST)
    assert await world.places("p", of=TRAIN) == "a"


async def test_a_list_that_cannot_be_read_harms_no_other_kind() -> None:
    world = await train_world().watch()
    world.cluster.put(WORKLOAD_SPREAD, spread(subset("z"), name="other"))
    await world.watch()
    world.configure({})
    world.cluster.objects["configmaps", "kruise-system", "kruise-configuration"]["data"] = {
        "WorkloadSpread_Watch_Custom_Workload_WhiteList": "{"
    }
    assert await world.places("p") == "z"
    assert await world.places("p", of=TRAIN) == "_"


@pytest.mark.parametrize("code", [401, 403])
async def test_an_owner_that_we_may_not_read_is_passed_over(code: int) -> None:
    world = await train_world().watch()
    held = world.cluster.named

    def named(resource: Resource, namespace: str, name: str) -> Json:
        if resource == TRAIN_GROUPS:
            raise ApiError(code, "Forbidden", "may not get")
        return held(resource, namespace, name)

    world.cluster.named = named  # type: ignore[method-assign]
    assert await world.places("p", of=GROUP) == "_"


async def test_a_kind_below_that_nobody_serves_is_passed_over() -> None:
    world = await train_world().watch()
    del world.cluster.discovery["/apis/train.example.com/v1"]
    assert await world.places("p", of=GROUP) == "_"


@pytest.mark.parametrize(
    ("spec", "missing"),
    [({}, [3, 6]), ({"targetFilter": {"replicasPathList": ["spec.worker.replicas", "spec.worker.replicas"]}}, [7, 12])],
    ids=["by the list's path", "by the filter's paths"],
)
async def test_how_many_pods_there_are_to_be(spec: Json, missing: list[int]) -> None:
    """W23."""
    world = await train_world(**spec).watch()
    await world.places("p", of=TRAIN)
    assert world.missing() == missing


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("spec.groups.2.replicas", "the workload has no spec.groups.2.replicas"),
        ("spec.groups.-1", "the workload has no spec.groups.-1"),
        ("spec.groups.one", "the workload has no spec.groups.one"),
        ("spec.worker.replicas.deep", "the workload has no spec.worker.replicas.deep"),
        ("spec.worker", "spec.worker of the workload is not a number"),
        ("spec..worker", "the workload has no spec..worker"),
        ("spec.flag", "spec.flag of the workload is not a number"),
    ],
)
async def test_a_path_that_leads_nowhere_has_the_pod_come_again(path: str, message: str) -> None:
    """Pitfall 4."""
    world = train_world(targetFilter={"replicasPathList": [path]})
    workload = world.cluster.named(TRAIN_JOBS, NAMESPACE, "net")
    workload["spec"] |= {"groups": [{"replicas": 1}, {"replicas": 2}], "flag": True}
    await world.watch()
    answer = await world.admission(pod("p", TRAIN))
    assert (answer.code, answer.message) == (500, message)


async def test_a_number_that_is_not_needed_is_not_asked_for() -> None:
    world = train_world(targetFilter={"replicasPathList": ["nowhere"]})
    world.stored()["spec"]["subsets"] = [subset("a", 3)]
    await world.watch()
    assert await world.places("p", of=TRAIN) == "a"


async def test_a_target_that_is_not_there_has_no_pods() -> None:
    world = train_world()
    del world.cluster.objects["trainjobs", NAMESPACE, "net"]
    await world.watch()
    assert await world.places("p", of=TRAIN) == "_"


# Choosing the subset


@pytest.mark.parametrize(
    ("subsets", "replicas", "pods", "expected", "writes"),
    [
        pytest.param([subset("a", 3), subset("b")], 5, 5, "aaabb", 3, id="W1"),
        pytest.param([subset("a", 2), subset("b", 2)], 6, 6, "aabb__", 4, id="W2"),
        pytest.param([subset("a", "33%"), subset("b", "33%"), subset("c")], 10, 10, "aaaabbbbcc", 8, id="W14"),
        pytest.param([subset("a", "50%"), subset("b", "50%")], 7, 7, "aaaabbb", 7, id="W15"),
        pytest.param([subset("a")], 3, 3, "aaa", 0, id="W16"),
        pytest.param([subset("a", 4)], 7, 7, "aaaa___", 4, id="W17"),
        pytest.param([subset("a", 0), subset("b")], 2, 2, "bb", 0, id="V10"),
    ],
)
async def test_pods_fill_the_subsets_in_order(
    subsets: list[Json], replicas: int, pods: int, expected: str, writes: int
) -> None:
    world = World(spread(*subsets))
    world.cluster.put(
        Resource("apps.kruise.io", "v1beta1", "clonesets", "CloneSet"),
        {"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": {"replicas": replicas}},
    )
    await world.watch()
    found = ""
    for number in range(pods):
        found += await world.places(f"p{number}")
        await world.clock.sleep(1)  # so few take nothing ahead
    assert found == expected
    assert len(world.cluster.writes) == writes
    if subsets[0].get("maxReplicas") == "50%":
        assert world.missing() == [0, 1]


async def test_a_pod_without_a_subset_stays_as_it_is() -> None:
    world = await World(spread(subset("a", 0), subset("b", 0))).watch()
    assert await world.create(pod("p")) == pod("p")


@pytest.mark.parametrize(
    ("subsets", "age", "waited"),
    [
        pytest.param([subset("a", 0)], 0.25, [0.75], id="of its first second"),
        pytest.param([subset("a", 0)], 1, [], id="later"),
        pytest.param([subset("a", 0)], -60, [1], id="by a clock that is behind"),
        pytest.param([subset("a", 1)], 0.25, [], id="there is room"),
        pytest.param([subset("a", "0%"), subset("b", "100%")], 0.25, [], id="shares"),
    ],
)
async def test_a_pod_that_no_subset_takes_is_younger_than_the_workload_spread(
    subsets: list[Json], age: float, waited: list[float]
) -> None:
    """Its timestamp, which the apiserver writes after us, counts seconds."""
    world = await World(spread(*subsets, made="2026-01-01T00:00:00Z")).watch()
    world.clock.time = age
    await world.create(pod("p"))
    assert world.clock.sleeps == waited


async def test_a_retried_call_takes_no_second_place() -> None:
    """W11."""
    world = await World(spread(subset("a", 2), subset("b"))).watch()
    assert await world.places("p", "p", "p") == "aaa"
    assert world.missing() == [1, -1]
    assert len(world.cluster.writes) == 1


@pytest.mark.parametrize(
    ("book", "expected"),
    [
        pytest.param([entry("a", 1), entry("b", 1)], "b", id="its own"),
        pytest.param([entry("a", 1), entry("b", 0)], "a", id="its own has gone to another pod"),
        pytest.param([entry("a", 1), entry("b", 1, conditions=CLOSED)], "a", id="its own finds no nodes"),
    ],
)
async def test_a_pod_that_comes_again_under_its_name_takes_a_place(book: list[Json], expected: str) -> None:
    """The former pod does not count as being deleted any more, and its place cannot be confused with the new one's."""
    book[1]["deletingPods"] = {"p": "2026-01-01T00:00:00Z", "q": "2026-01-01T00:00:00Z"}
    status = {"versionedSubsetStatuses": {"versionIgnored": book}}
    world = await World(spread(subset("a", 2), subset("b", 2)) | {"status": status}).watch()
    stored = await world.create(pod("p"))
    assert mark(stored) == {"name": "ws", "subset": expected}
    assert list(world.book()[expected]["creatingPods"]) == [stored["metadata"]["annotations"][PLACE]]
    assert list(world.book()["b"]["deletingPods"]) == ["q"]
    assert sum(world.missing()) == sum(one["missingReplicas"] for one in book) - 1


async def test_pods_without_a_name_do_not_collide() -> None:
    """Pitfall 5."""
    world = await World(spread(subset("a", 3), subset("b"))).watch()
    found = [mark(await world.create(pod())) for _ in range(4)]
    assert [one["subset"] for one in found] == ["a", "a", "a", "b"]
    assert list(world.book()["a"]["creatingPods"]) == [one["uid"] for one in found[:3]]
    assert "uid" not in found[3]  # nothing is written down about it


async def test_a_subset_that_finds_no_nodes_is_passed_over() -> None:
    book = [entry("a", 2, conditions=CLOSED), entry("b", -1)]
    status = {"versionedSubsetStatuses": {"versionIgnored": book}}
    world = await World(spread(subset("a", 2), subset("b")) | {"status": status}).watch()
    assert await world.places("p") == "b"


async def test_a_new_version_knows_of_subsets_that_find_no_nodes() -> None:
    """Pitfall 10. And what is written back has all that the schema demands."""
    totals = [entry("a", 2, conditions=CLOSED), entry("b", 2), entry("c", -1)]
    world = await World(
        spread(subset("a", 2), subset("b", 2), subset("c")) | {"status": {"subsetStatuses": totals}}
    ).watch()
    assert await world.places("p") == "b"
    assert world.book()["a"]["conditions"] == CLOSED
    assert "creatingPods" not in world.book()["a"]


async def test_a_subset_of_the_book_that_is_no_longer_in_the_spec_injects_nothing() -> None:
    """§5.4 and pitfall 16: the place expires."""
    status = {"versionedSubsetStatuses": {"versionIgnored": [entry("old", 1), entry("b", -1)]}}
    world = await World(spread(subset("new", 1), subset("b")) | {"status": status}).watch()
    assert await world.create(pod("p")) == pod("p")
    assert await world.places("q") == "b"


async def test_numbered_pods_go_by_their_ordinals() -> None:
    """W13: nothing is written, and a pod that comes back goes where it was."""
    world = await World(spread(subset("a", 3), subset("b", 1), subset("c"), target=SET)).watch()
    assert await world.places(*(f"web-{number}" for number in range(6)), "web-2", "web", of=SET) == "aaabccaa"
    assert await world.places("web-3", of=("apps/v1", "StatefulSet", "web")) == "_"
    assert world.cluster.writes == []


async def test_versions_have_books_of_their_own() -> None:
    """W7."""
    world = World(spread(subset("a", 2), subset("b"), target=WEB))
    for version in ("old", "new"):
        world.cluster.put(REPLICA_SET, child(f"web-{version}", WEB))
    await world.watch()
    for version in ("old", "new"):
        of = ("apps/v1", "ReplicaSet", f"web-{version}")
        found = [await world.create(pod(of=of, labels={"pod-template-hash": version})) for _ in range(4)]
        assert [mark(one)["subset"] for one in found] == ["a", "a", "b", "b"]


async def test_clone_sets_share_one_book_over_versions() -> None:
    """W8 and W10."""
    world = await World(spread(subset("a", 2), subset("b"))).watch()
    for version in ("old", "new"):
        labels = {"controller-revision-hash": f"web-{version}", "pod-template-hash": version}
        for number in range(2):
            await world.create(pod(f"{version}{number}", labels=labels))
    assert world.missing() == [0, -1]
    assert list(world.book()["a"]["creatingPods"]) == ["old0", "old1"]


async def test_jobs() -> None:
    """W12: percentages are of `spec.parallelism`."""
    job = ("batch/v1", "Job", "web")
    world = World(spread(subset("a", "50%"), subset("b"), target=job))
    world.cluster.put(JOB, {"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": {"parallelism": 3}})
    await world.watch()
    assert await world.places("p", "q", "r", of=job) == "aab"


# What makes the webhook necessary


async def expressions(world: World) -> set[str]:
    return {rule.expression for rule in await world.spreads.selection.rules()}


async def test_only_pods_of_the_target_are_asked_about() -> None:
    world = await World(spread(subset("a")), spread(subset("a"), name="d", target=WEB)).watch()
    owners = "object.metadata.ownerReferences"
    begin = f"has({owners}) && {owners}.exists(r, has(r.controller) && r.controller && ("
    assert await expressions(world) == {
        f"""{begin}(r.kind == "CloneSet" && r.apiVersion.startsWith("apps.kruise.io/") && r.name == "web")))""",
        f"""{begin}(r.kind == "ReplicaSet" && r.apiVersion.startsWith("apps/"))))""",
    }
    assert {rule.namespace for rule in await world.spreads.selection.rules()} == {NAMESPACE}


async def test_many_are_told_apart_by_the_kind_of_their_workload_alone() -> None:
    many = [spread(subset("a"), name=f"ws-{number}", target=(*CLONE_SET[:2], f"w{number}")) for number in range(65)]
    world = await World(*many).watch()
    assert len(await expressions(world)) == 1
    assert "r.name" not in (await expressions(world)).pop()
    rules = await world.spreads.selection.rules_of(spread(subset("a"), name="more"), NAMESPACE)
    assert {rule.expression for rule in rules} == await expressions(world)


async def test_what_is_about_to_be_stored() -> None:
    old = spread(subset("a"))
    old["apiVersion"] = "apps.kruise.io/v1alpha1"
    old["spec"]["subsets"][0]["requiredNodeSelectorTerm"] = None
    world = await World().watch()
    rule_sources = await world.spreads.selection.rules_of(old, NAMESPACE)
    world.cluster.put(WORKLOAD_SPREAD, spread(subset("a")))
    assert rule_sources == await (await world.watch()).spreads.selection.rules()


async def test_one_that_was_just_admitted_is_asked_for_until_the_watch_shows_it() -> None:
    world = await World().watch()
    stored = spread(subset("a"))
    world.spreads.selection.admitted(stored)
    world.cluster.put(WORKLOAD_SPREAD, stored)
    assert await world.places("p") == "a"
    world.clock.time += UNSEEN_SECONDS
    assert await world.places("q") == "a"


async def test_one_that_another_replica_admitted_is_found_before_the_watch_shows_it() -> None:
    """Pods without a place would be taken in by the controller, and be too many."""
    world = await World().watch()
    world.cluster.put(WORKLOAD_SPREAD, spread(subset("a")))
    assert await world.places("p") == "a"


async def test_that_there_is_none_counts_for_a_while() -> None:
    world = await World().watch()
    assert await world.places("p", "q") == "__"
    assert world.cluster.lists == [WORKLOAD_SPREAD.plural]
    world.clock.time += ASKED_SECONDS
    assert await world.places("r") == "_"
    assert len(world.cluster.lists) == 2


async def test_while_the_watch_is_broken_the_apiserver_is_asked() -> None:
    world = await World().watch()
    world.spreads.cache.state("the apiserver refuses workloadspreads")
    world.cluster.put(WORKLOAD_SPREAD, spread(subset("a")))
    assert await world.places("p") == "a"
    world.spreads.cache.state("")
    assert await world.places("q") == "a"


async def test_pods_of_the_kinds_that_administrators_name_are_asked_about() -> None:
    found = (await expressions(await train_world().watch())).pop()
    for kind in ("TrainJob", "TrainGroup", "ReplicaSet", "CloneSet"):
        assert f'r.kind == "{kind}"' in found
