"""The check of budgets (podunavailablebudget.md §8, worked examples 26 to 54)."""

from typing import Any

import pytest

from flotilla_common.api.admission.review import ALLOWED, Answer, denied, error
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.podrules import PodRule
from flotilla_common.api.resources import NAMESPACE as NAMESPACES
from flotilla_common.api.resources import POD
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_webhook.pods.admission import Check, CheckResult, PodChange
from tests.testkit.documents import Json
from tests.unit.webhook.budget_world import NAMESPACE, NOW, World, budget, pod, with_image, with_metadata

UNREADY = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
BEGIN = 'podunavailablebudget.policy.kruise.io "pub" is forbidden: pub unavailable allowed is negative'
NOBODY = ": 3 of 3 pods are available and 3 must be"
RUN_BY = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d4", "uid": "u", "controller": True}


def refused(message: str = BEGIN + NOBODY) -> Answer:
    return Answer(allowed=False, code=403, message=message, reason="Forbidden")


def put_off(message: str = BEGIN + NOBODY) -> Answer:
    return Answer(allowed=False, code=429, message=message, reason="TooManyRequests")


async def test_a_unit_is_taken_once() -> None:
    """Follow examples 26 to 28."""
    world = await World(budget(1)).watch()
    assert await world.delete(pod("a")) == ALLOWED
    assert world.entries() == {"allowed": 0, "disruptedPods": ["a"]}
    assert world.stored()["status"]["disruptedPods"] == {"a": NOW}
    held = "; the budget is held by a (deletion, until 2026-01-01T00:00:20Z at most)"
    assert await world.delete(pod("b")) == refused(f"{BEGIN}: 3 of 3 pods are available and 2 must be{held}")
    assert await world.delete(pod("a")) == ALLOWED
    assert world.entries() == {"allowed": 0, "disruptedPods": ["a"]}
    assert world.cluster.writes == [("patch", "pub")]


FREE_ROWS = [
    pytest.param(pod(**UNREADY), {}, id="29 unready"),
    pytest.param(pod(metadata={"labels": {"unavailable-pod.kruise.io/x": ""}}), {}, id="32 unavailable by label"),
    pytest.param(pod(metadata={"deletionTimestamp": NOW}), {}, id="terminating"),
    pytest.param(pod(status={"phase": "Succeeded"}), {}, id="a pod of a Job that has ended"),
    pytest.param(pod(metadata={"annotations": {}}), {}, id="it names no budget"),
    pytest.param(pod(metadata={"annotations": {"pub.kruise.io/related-pub": "gone"}}), {}, id="its budget is gone"),
    pytest.param(
        pod(metadata={"annotations": {"pub.kruise.io/related-pub": "pub", "pub.kruise.io/no-protect": "T"}}),
        {},
        id="38 it is exempt",
    ),
    pytest.param(
        pod(metadata={"labels": {"expendable": ""}}),
        {"spec": {"ignoredPodSelector": {"matchExpressions": [{"key": "expendable", "operator": "Exists"}]}}},
        id="39 the budget ignores it",
    ),
    pytest.param(pod(), {"status": {"desiredAvailable": 0}}, id="49 no pass yet"),
]


@pytest.mark.parametrize(("document", "members"), FREE_ROWS)
async def test_what_needs_no_budget(document: Json, members: Json) -> None:
    world = await World(budget(0, **members)).watch()
    assert await world.delete(document) == ALLOWED
    assert await world.evict(document) == ALLOWED
    assert world.cluster.writes == []


async def test_what_the_pod_says_itself_asks_nobody() -> None:
    world = await World(budget(0)).watch()
    await world.delete(pod(**UNREADY))
    await world.delete(pod(metadata={"annotations": {}}))
    await world.update(pod(), with_metadata(pod(), finalizers=["a/b"]))
    assert world.cluster.gets == []


@pytest.mark.parametrize(
    ("operations", "deleted", "evicted", "updated"),
    [
        (["EVICT"], ALLOWED, put_off(), ALLOWED),
        (["UPDATE"], ALLOWED, ALLOWED, refused()),
        (["DELETE"], refused(), ALLOWED, ALLOWED),
    ],
    ids=["36", "37", "DELETE"],
)
async def test_protected_operations(operations: list[str], deleted: Answer, evicted: Answer, updated: Answer) -> None:
    world = await World(budget(0, spec={"protectOperations": operations})).watch()
    assert await world.delete(pod()) == deleted
    assert await world.evict(pod()) == evicted
    assert await world.update(pod(), with_image(pod(), "nginx:2")) == updated


async def test_updates_take_units() -> None:
    """Follow examples 30, 33 to 35."""
    world = await World(budget(1)).watch()
    assert await world.update(pod("a"), with_image(pod("a"), "nginx:2")) == ALLOWED
    assert world.entries() == {"allowed": 0, "unavailablePods": ["a"]}
    labelled = with_metadata(pod("b"), labels={"unavailable-pod.kruise.io/x": ""})
    assert not (await world.update(pod("b"), labelled)).allowed
    twice = with_metadata(pod("b"), labels={"unavailable-pod.kruise.io/x": "", "unavailable-pod.kruise.io/y": ""})
    assert await world.update(labelled, twice) == ALLOWED
    assert await world.update(pod("b"), with_metadata(pod("b"), finalizers=["a/b"], labels={})) == ALLOWED


async def test_an_update_that_leaves_the_budget_passes() -> None:
    """Admit an update that takes the budget's name away (§8.2)."""
    world = await World(budget(0)).watch()
    assert await world.update(pod(), with_metadata(with_image(pod(), "nginx:2"), annotations={})) == ALLOWED
    unnamed = pod(metadata={"annotations": {}})
    assert await world.update(unnamed, with_image(pod(), "nginx:2")) == ALLOWED


def sized(cpu: str) -> Json:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": "4"}}
    return pod(spec={"containers": [{"name": "main", "image": "nginx:1.29", "resources": resources}]})


async def test_resizes() -> None:
    """Follow examples 43 and 44."""
    apart = await World(budget(1), gates="PodUnavailableBudgetUpdateGate=true,InPlacePodVerticalScaling=true").watch()
    assert await apart.update(sized("1"), sized("2")) == ALLOWED
    assert apart.entries() == {"allowed": 1}
    together = await World(budget(1)).watch()
    assert await together.update(sized("1"), sized("2")) == ALLOWED
    assert together.entries() == {"allowed": 0, "disruptedPods": ["a"]}


@pytest.mark.parametrize(
    ("gates", "deleted", "updated"),
    [
        ("", refused(), ALLOWED),
        ("PodUnavailableBudgetDeleteGate=false,PodUnavailableBudgetUpdateGate=true", ALLOWED, refused()),
        ("PodUnavailableBudgetDeleteGate=false", ALLOWED, ALLOWED),
        ("PodWebhook=false", ALLOWED, ALLOWED),
    ],
    ids=["48 updates are off by default", "deletions off", "both off", "no pod webhook"],
)
async def test_gates(gates: str, deleted: Answer, updated: Answer) -> None:
    world = await World(budget(0), gates=gates).watch()
    assert await world.delete(pod()) == deleted
    assert (await world.evict(pod())).allowed is deleted.allowed
    assert await world.update(pod(), with_image(pod(), "nginx:2")) == updated


async def test_dry_runs_are_judged_and_take_nothing() -> None:
    """Follow examples 40 and 41."""
    world = await World(budget(1)).watch()
    assert await world.delete(pod("a"), dry_run=True) == ALLOWED
    assert await world.evict(pod("b"), dryRun=["All"]) == ALLOWED
    assert world.entries() == {"allowed": 1}
    assert await world.delete(pod("c")) == ALLOWED
    assert not (await world.delete(pod("a"), dry_run=True)).allowed
    assert not (await world.evict(pod("b"), dryRun=["All"])).allowed
    assert not (await world.update(pod("b"), with_image(pod("b"), "nginx:2"), dry_run=True)).allowed
    assert len(world.cluster.writes) == 1


async def test_the_code_of_evictions() -> None:
    """Follow example 41b."""
    world = await World(budget(0)).watch()
    assert await world.evict(pod("b")) == put_off()
    assert await world.delete(pod("b")) == refused()
    strict = await World(budget(0), eviction_code=403).watch()
    assert await strict.evict(pod("b")) == refused()


async def test_full_maps() -> None:
    entries = {f"p{number}": NOW for number in range(2001)}
    world = await World(budget(1, status={"disruptedPods": entries})).watch()
    answer = await world.delete(pod())
    begin = 'podunavailablebudget.policy.kruise.io "pub" is forbidden: DisruptedPods and UnavailablePods map too big'
    assert answer == refused(f"{begin}: 2001 entries are not confirmed by the controller yet")


async def test_a_spec_that_changed_counts_from_the_controllers_next_pass() -> None:
    """Follow example 50."""
    world = await World(budget(1, spec={"maxUnavailable": 0}, metadata={"generation": 2})).watch()
    assert await world.delete(pod()) == ALLOWED


@pytest.mark.parametrize("ending", [True, False])
async def test_namespaces_that_are_deleted_block_nothing(ending: bool) -> None:
    world = await World(budget(0)).watch()
    metadata: Json = {"name": NAMESPACE} | ({"deletionTimestamp": NOW} if ending else {})
    world.cluster.put(NAMESPACES, {"metadata": metadata})
    for answer in (await world.delete(pod()), await world.evict(pod())):
        assert answer.allowed is ending
    assert len(world.log) == (0 if ending else 2)


async def test_what_is_refused_is_told() -> None:
    world = await World(budget(0)).watch()
    await world.delete(pod("b", metadata={"ownerReferences": [RUN_BY]}), dry_run=True)
    await world.update(pod("bare"), with_image(pod("bare"), "nginx:2"))
    assert world.records.metrics.budgets._values == {
        (f"ReplicaSet_{NAMESPACE}_web-6d4", "jane"): 1,
        (f"unknown_{NAMESPACE}_bare", "jane"): 1,
    }
    assert world.log[0] == {
        "Event": "PodUnavailableBudget",
        "Kind": "Pod",
        "Namespace": NAMESPACE,
        "Name": "b",
        "UserAgent": "jane",
    }
    await world.records.events.flush()
    events = [document for (plural, *_), document in world.cluster.objects.items() if plural == "events"]
    assert {event["involvedObject"]["name"] for event in events} == {"b", "bare"}
    assert {(event["type"], event["reason"], event["message"]) for event in events} == {
        ("Warning", "PubPreventPodDeletion", "openkruise pub prevents pod deletion")
    }
    assert {event["source"]["component"] for event in events} == {"pub-controller"}


async def test_who_did_what_is_published() -> None:
    world = await World(budget(1)).watch()
    await world.delete(pod("a"))
    await world.evict(pod("b"))
    await world.delete(pod("c", **UNREADY))
    counted = [sample for family in world.records.metrics.budget_requests.collect() for sample in family.samples]
    assert {(one.labels["operation"], one.labels["outcome"]): one.value for one in counted if "total" in one.name} == {
        ("delete", "taken"): 1,
        ("evict", "refused"): 1,
    }
    assert [(one["action"], one["name"], one["outcome"], one["user"]) for one in world.bus.told] == [
        ("delete", "a", "Ok", "jane"),
        ("evict", "b", "Denied", "jane"),
    ]
    assert world.bus.told[0]["owner"] == {"kind": "PodUnavailableBudget", "namespace": NAMESPACE, "name": "pub"}


@pytest.mark.parametrize(
    ("failure", "message"),
    [(ApiError(422, "Invalid", "no"), "no"), (Unreachable("timed out"), "timed out")],
    ids=["refused", "no answer"],
)
async def test_what_cannot_be_written_is_refused(failure: Exception, message: str) -> None:
    world = await World(budget(1)).watch()

    async def patch(*call: Any, **more: Any) -> bytes:
        raise failure

    world.cluster.patch = patch  # type: ignore[method-assign]
    assert await world.delete(pod()) == refused(message)
    assert await world.evict(pod()) == put_off(message)
    assert world.log == []  # §8.6: only what finds no budget is counted


@pytest.mark.parametrize(
    "failure", [ApiError(403, "Forbidden", "no"), ApiError(500, "", "no"), Unreachable("no")], ids=str
)
@pytest.mark.parametrize("units", [0, 1], ids=["before a refusal", "after a conflict"])
async def test_a_budget_that_cannot_be_read_is_an_error(failure: Exception, units: int) -> None:
    """Answer with an error (§8.7), unlike where a budget cannot be written."""
    world = await World(budget(units)).watch()
    world.cluster.put(POD_UNAVAILABLE_BUDGET, budget(units))  # the watch has not shown this version

    async def get(*call: Any) -> bytes:
        raise failure

    document = pod()
    world.cluster.put(POD, document)
    world.cluster.get = get  # type: ignore[method-assign]
    assert await world.delete(document) == error(400, "no")
    assert await world.update(document, with_image(document, "nginx:2")) == error(400, "no")
    assert world.log == []


async def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    bad = {"ignoredPodSelector": {"matchExpressions": [{"key": "-", "operator": "Exists"}]}}
    world = await World(budget(0, spec=bad)).watch()
    answer = await world.delete(pod())
    assert (answer.code, answer.reason) == (400, "")


async def test_a_pod_that_cannot_be_read_is_an_error() -> None:
    world = await World(budget(0)).watch()
    answer = await world.delete(pod() | {"status": {"phase": 3}})
    assert (answer.code, answer.reason) == (400, "")


# The chain of checks


async def no_rules() -> list[PodRule]:
    return []


def refusing() -> Check:
    async def decide(change: PodChange) -> CheckResult:
        return CheckResult(denied("no"))

    return Check("later", no_rules, decide)


@pytest.mark.parametrize("way", ["delete", "update"])
async def test_what_a_later_check_refuses_is_taken_back(way: str) -> None:
    """Remove the entry; the controller counts how much is left."""
    world = await World(budget(1), after=(refusing(),)).watch()
    document = pod()
    answer = await (world.delete(document) if way == "delete" else world.update(document, with_image(document, "n:2")))
    assert answer == denied("no")
    assert world.entries() == {"allowed": 0}


async def test_what_an_earlier_check_wrote_is_taken_back() -> None:
    back: list[str] = []

    async def take_back() -> None:
        back.append("book")

    async def decide(change: PodChange) -> CheckResult:
        return CheckResult(take_back=take_back)

    world = await World(budget(0), before=(Check("book", no_rules, decide),)).watch()
    assert not (await world.delete(pod())).allowed
    assert back == ["book"]


# The rules


async def test_rules_stand_while_a_budget_exists() -> None:
    world = await World().watch()
    assert await world.checks.entries("") == ([], "")
    world.cluster.put(POD_UNAVAILABLE_BUDGET, budget())
    await world.watch()
    entries, _ = await world.checks.entries("")
    assert [entry["name"] for entry in entries] == ["vpod.kb.io", "vpodeviction.kb.io"]
    assert entries[0]["rules"][0]["operations"] == ["UPDATE", "DELETE"]
    assert {(one["failurePolicy"], one["timeoutSeconds"], one["sideEffects"]) for one in entries} == {
        ("Fail", 30, "NoneOnDryRun")
    }
    deleted, evicted = (entry["matchConditions"][0]["expression"] for entry in entries)
    assert '["pub"]' in deleted
    assert evicted == f'(request.namespace == "{NAMESPACE}" && (true))'


@pytest.mark.parametrize(
    ("gates", "operations"),
    [
        ("", [["DELETE"], ["CREATE"]]),
        ("PodUnavailableBudgetDeleteGate=false,PodUnavailableBudgetUpdateGate=true", [["UPDATE"]]),
    ],
)
async def test_rules_follow_the_gates(gates: str, operations: list[list[str]]) -> None:
    world = await World(budget(), gates=gates).watch()
    entries, _ = await world.checks.entries("")
    assert [entry["rules"][0]["operations"] for entry in entries] == operations


async def test_a_budget_that_is_about_to_be_stored_needs_the_rules_that_it_will_have() -> None:
    world = await World(budget(name="first")).watch()
    expected = await world.budgets.rules_of(budget(name="second"), NAMESPACE)
    world.cluster.put(POD_UNAVAILABLE_BUDGET, budget(name="second"))
    await world.watch()
    assert expected == await world.budgets.rules()


async def test_many_budgets_are_not_named() -> None:
    world = await World(*(budget(name=f"pub-{number}") for number in range(65))).watch()
    entries, _ = await world.checks.entries("")
    assert "pub-1" not in entries[0]["matchConditions"][0]["expression"]


async def test_a_budget_that_cannot_be_read_makes_nothing_necessary() -> None:
    world = await World(budget(spec={"maxUnavailable": [1]})).watch()
    assert await world.checks.entries("") == ([], "")
