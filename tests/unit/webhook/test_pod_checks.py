"""A pod that is deleted or evicted gives its place back (workloadspread.md §5.5, webhooks.md §8)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.admission.review import ALLOWED, Answer, Request, denied
from flotilla_common.api.kinds.workloadspread.types import MATCHED, WORKLOAD_SPREAD
from flotilla_common.api.podrules import PodRule, encoded
from flotilla_common.api.resources import POD, Resource
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_webhook.pods.admission import Check, CheckResult, PodChange
from tests.testkit.documents import Json
from tests.unit.webhook.spread_world import CLONE_SET, NAMESPACE, World, pod, spread, subset

NOW = "2026-01-01T00:00:00Z"


def entry(name: str, missing: int, **more: Any) -> Json:
    return {"name": name, "replicas": 0, "missingReplicas": missing, **more}


def placed(name: str = "p", place: str = "a", of: tuple[str, str, str] | None = CLONE_SET, **metadata: Any) -> Json:
    value = msgspec.json.encode({"name": "ws", "subset": place}).decode()
    return pod(name, of, annotations={MATCHED: value}, **metadata)


async def full(*more: Check, subsets: tuple[Json, ...] = (subset("a", 2), subset("b"))) -> World:
    """Return a subset that is full, and one that never is."""
    status = {"versionedSubsetStatuses": {"versionIgnored": [entry("a", 0), entry("b", -1)]}}
    return await World(spread(*subsets) | {"status": status}, more_checks=more).watch()


@pytest.mark.parametrize("way", ["delete", "evict"])
async def test_a_place_is_given_back(way: str) -> None:
    """Follow examples W3 and W4."""
    world = await full()
    answer = await (world.delete(placed()) if way == "delete" else world.evict(placed()))
    assert answer == ALLOWED
    assert world.book()["a"] == entry("a", 1, deletingPods={"p": NOW})
    assert await world.places("q") == "a"
    assert world.book()["a"] == entry("a", 0, deletingPods={"p": NOW}, creatingPods={"q": NOW})


UNWRITTEN_ROWS = [
    pytest.param(placed(place="b"), id="W5: its subset takes any number"),
    pytest.param(placed(place="gone"), id="its subset is not in the book"),
    pytest.param(pod("p"), id="no mark"),
    pytest.param(pod("p", annotations={MATCHED: "{"}), id="a mark that cannot be read"),
    pytest.param(placed(of=None), id="no controller"),
    pytest.param(placed() | {"status": {"phase": "Failed"}}, id="it has failed"),
    pytest.param(placed(deletionTimestamp=NOW), id="the second delete, which the kubelet sends"),
    pytest.param(pod("p", annotations={MATCHED: '{"name":"other","subset":"a"}'}), id="its WorkloadSpread is gone"),
]


@pytest.mark.parametrize("document", UNWRITTEN_ROWS)
async def test_nothing_is_written_down(document: Json) -> None:
    world = await full()
    assert await world.delete(document) == ALLOWED
    assert world.cluster.writes == []


async def test_a_dry_run_gives_nothing_back() -> None:
    """Follow example W18."""
    world = await full()
    assert await world.delete(placed(), dry_run=True) == ALLOWED
    assert await world.evict(placed(), dryRun=["All"]) == ALLOWED
    assert world.cluster.writes == []


async def test_a_delete_that_is_sent_again_gives_nothing_more() -> None:
    world = await full()
    assert [await world.delete(placed()), await world.delete(placed())] == [ALLOWED, ALLOWED]
    assert world.missing() == [1, -1]


async def test_a_pod_that_was_never_seen_gives_nothing_back() -> None:
    """Leave its entry in creatingPods, which ends by itself."""
    world = await World(spread(subset("a", 2), subset("b"))).watch()
    stored = await world.create(pod("p"))
    assert await world.delete(stored) == ALLOWED
    assert world.book()["a"] == entry("a", 1, creatingPods={"p": NOW})


@pytest.mark.parametrize(
    ("subsets", "of"),
    [((subset("a"),), CLONE_SET), ((subset("a", 2), subset("b")), ("apps.kruise.io/v1beta1", "StatefulSet", "web"))],
    ids=["one subset without limit", "pods that go by their ordinals"],
)
async def test_without_a_book_there_is_nothing_to_write(subsets: tuple[Json, ...], of: tuple[str, str, str]) -> None:
    world = await World(spread(*subsets, target=of)).watch()
    assert await world.delete(placed(of=of)) == ALLOWED
    assert world.cluster.writes == []


async def test_no_book_is_opened_for_a_removal() -> None:
    """Open no book: one that is opened later begins with all places, so the pod would have two."""
    world = await World(spread(subset("a", 2), subset("b"))).watch()
    assert await world.delete(placed()) == ALLOWED
    assert world.cluster.writes == []


async def test_the_book_is_that_of_the_pods_version() -> None:
    books = {"old": [entry("a", 0)], "new": [entry("a", 0)]}
    target = ("apps/v1", "Deployment", "web")
    status = {"versionedSubsetStatuses": books}
    world = await World(spread(subset("a", 2), target=target) | {"status": status}).watch()
    of = ("apps/v1", "ReplicaSet", "web-old")
    assert await world.delete(placed(of=of, labels={"pod-template-hash": "old"})) == ALLOWED
    assert (world.missing("old"), world.missing("new")) == ([1], [0])


@pytest.mark.parametrize(
    "failure", [ApiError(409, "Conflict", "again"), ApiError(503, "", "busy"), Unreachable("timed out")], ids=str
)
async def test_what_cannot_be_written_down_is_refused(failure: Exception) -> None:
    """Refuse a deletion that cannot be written down (§5.5 4), and admit it when it is tried again."""
    world = await full()
    written = world.cluster.patch

    async def patch(*call: Any, **more: Any) -> bytes:
        raise failure

    world.cluster.patch = patch  # type: ignore[method-assign]
    answer = await world.delete(placed())
    assert (answer.allowed, answer.code, answer.message) == (False, 400, str(failure))
    world.cluster.patch = written  # type: ignore[method-assign]
    assert await world.delete(placed()) == ALLOWED
    assert world.missing() == [1, -1]


async def test_what_was_written_without_an_answer_counts_once() -> None:
    world = await full()
    written = world.cluster.patch

    async def patch(*call: Any, **more: Any) -> bytes:
        await written(*call, **more)
        raise Unreachable("timed out")

    world.cluster.patch = patch  # type: ignore[method-assign]
    assert await world.delete(placed()) == ALLOWED
    assert world.missing() == [1, -1]


async def test_one_that_cannot_be_read_refuses_the_removal() -> None:
    world = World(spread(subset("a", 2), subset("b")))  # the watch has listed nothing yet

    def named(resource: Resource, namespace: str, name: str) -> Json:
        raise ApiError(503, "", "busy")

    world.cluster.named = named  # type: ignore[method-assign]
    answer = await world.delete(placed())
    assert (answer.code, answer.message) == (400, "busy")


async def test_before_the_watch_has_listed_the_apiserver_is_asked() -> None:
    status = {"versionedSubsetStatuses": {"versionIgnored": [entry("a", 0), entry("b", -1)]}}
    world = World(spread(subset("a", 2), subset("b")) | {"status": status})
    assert await world.delete(placed()) == ALLOWED
    assert world.book()["a"]["deletingPods"] == {"p": NOW}


async def test_without_the_gate_nothing_is_written() -> None:
    world = await World(spread(subset("a", 2), subset("b")), on=False).watch()
    assert await world.delete(placed()) == ALLOWED
    assert world.cluster.writes == []


# The chain of checks


async def no_rules() -> list[PodRule]:
    return []


def refusing(answer: Answer) -> Check:
    async def decide(change: PodChange) -> CheckResult:
        return CheckResult(answer)

    return Check("budget", no_rules, decide)


async def test_what_a_later_check_refuses_is_taken_back() -> None:
    """Avoid pitfall 14."""
    world = await full(refusing(denied("the budget is spent")))
    assert await world.delete(placed()) == denied("the budget is spent")
    assert world.book()["a"] == entry("a", 0)


async def test_what_an_earlier_request_wrote_down_is_not_taken_back() -> None:
    world = await full(refusing(denied("the budget is spent")))
    world.stored()["status"]["versionedSubsetStatuses"]["versionIgnored"][0] |= {
        "missingReplicas": 1,
        "deletingPods": {"p": NOW},
    }
    await world.watch()
    assert not (await world.delete(placed())).allowed
    assert world.book()["a"] == entry("a", 1, deletingPods={"p": NOW})


async def test_a_place_that_was_given_away_meanwhile_is_not_counted_twice() -> None:
    async def decide(change: PodChange) -> CheckResult:
        assert await world.places("q") == "a"
        return CheckResult(denied("no"))

    world = await full(Check("budget", no_rules, decide))
    assert not (await world.delete(placed())).allowed
    assert world.book()["a"] == entry("a", 0, creatingPods={"q": NOW})


async def test_what_cannot_be_taken_back_changes_no_answer() -> None:
    async def decide(change: PodChange) -> CheckResult:
        async def patch(*call: Any, **more: Any) -> bytes:
            raise Unreachable("timed out")

        world.cluster.patch = patch  # type: ignore[method-assign]
        return CheckResult(denied("no"))

    world = await full(Check("budget", no_rules, decide))
    assert await world.delete(placed()) == denied("no")
    assert world.book()["a"]["deletingPods"] == {"p": NOW}  # it ends with its time


async def test_one_that_is_gone_takes_nothing_back() -> None:
    async def decide(change: PodChange) -> CheckResult:
        del world.cluster.objects[WORKLOAD_SPREAD.plural, NAMESPACE, "ws"]
        return CheckResult(denied("no"))

    world = await full(Check("budget", no_rules, decide))
    assert await world.delete(placed()) == denied("no")


async def test_a_refusal_ends_the_chain() -> None:
    async def decide(change: PodChange) -> CheckResult:
        raise AssertionError("it is not asked")

    world = await full(refusing(denied("no")), Check("last", no_rules, decide))
    assert await world.delete(placed()) == denied("no")


@pytest.mark.parametrize(
    ("members", "answer"),
    [
        ({"operation": "DELETE", "sub_resource": "status"}, ALLOWED),
        ({"operation": "DELETE"}, ALLOWED),
        ({"operation": "CREATE"}, ALLOWED),
        ({"operation": "UPDATE"}, ALLOWED),
        ({"operation": "CREATE", "sub_resource": "eviction", "name": "gone"}, ALLOWED),
    ],
)
async def test_requests_about_no_pod(members: Json, answer: Answer) -> None:
    world = await full(refusing(denied("no")))
    request = Request(uid="u", namespace=NAMESPACE, object={}, **members)
    assert await world.checks.validate(request) == answer


async def test_a_pod_that_cannot_be_read_is_not_evicted() -> None:
    world = await full()
    named = world.cluster.named

    def busy(resource: Resource, namespace: str, name: str) -> Json:
        if resource == POD:
            raise ApiError(503, "", "busy")
        return named(resource, namespace, name)

    world.cluster.named = busy  # type: ignore[method-assign]
    answer = await world.evict(placed())
    assert (answer.code, answer.message) == (400, "cannot read the pod from the apiserver: busy")


# The entries


async def test_entries_stand_while_something_needs_them() -> None:
    world = await World().watch()
    assert await world.checks.entries("") == ([], "")
    world.cluster.put(WORKLOAD_SPREAD, spread(subset("a")))
    await world.watch()
    entries, rules = await world.checks.entries("")
    assert [one["name"] for one in entries] == ["vpod.kb.io", "vpodeviction.kb.io"]
    assert {one["sideEffects"] for one in entries} == {"NoneOnDryRun"}
    assert [one["rules"][0]["resources"] for one in entries] == [["pods"], ["pods/eviction"]]
    assert rules == encoded(await world.spreads.selection.removal_rules())
    conditions = [one["matchConditions"][0]["expression"] for one in entries]
    assert MATCHED in conditions[0]
    assert conditions[1] == f'(request.namespace == "{NAMESPACE}" && (true))'


async def test_entries_stay_for_a_while() -> None:
    """Keep entries for a while: another replica may be admitting an object that this one cannot see yet."""
    world = await World(spread(subset("a"))).watch()
    _, rules = await world.checks.entries("")
    del world.cluster.objects[WORKLOAD_SPREAD.plural, NAMESPACE, "ws"]
    await world.watch()
    assert (await world.checks.entries(rules))[1] == rules
    world.clock.time += 11
    assert await world.checks.entries(rules) == ([], "")
