"""Other influences on the pods of a budget: other budgets and kinds, force deletes, Jobs."""

from tests.support.budgets import LABELS, REFUSED, allows, attempt, budget, counted, create, evict, remove
from tests.support.spread import NAME, plain, spread
from tests.support.workspace import Workspace, terminating, version_of
from tests.testkit.documents import Json

FORCED = {"gracePeriodSeconds": 0}
KEEP = "example.com/keep"


def test_a_refusal_names_pods_that_terminate(space: Workspace) -> None:
    """The status does not name them any more once they are seen to go."""
    space.apply(budget(maxUnavailable=2, protectTotalReplicas=4))
    create(space, ["a", "b", "c", "d"])
    allows(space, 2, currentAvailable=4)
    for name in ("a", "b"):
        space.set_finalizers(name, KEEP)
        assert remove(space, name)[0]
    allows(space, 0, currentAvailable=2)
    space.until(lambda: "disruptedPods" not in counted(space))
    named = f"{REFUSED}: 2 of 4 pods are available and 2 must be; 2 pods unavailable: "
    space.until(lambda: named in remove(space, "c")[1])  # the record follows the status in a tenth of a second
    for way in (remove, evict):
        told = way(space, "c")[1]
        assert named in told
        assert all(f"{name} (terminating, due to end by 20" in told for name in ("a", "b"))
    for name in ("a", "b"):
        space.set_finalizers(name)
    space.until(lambda: not {"a", "b"} & space.pods.keys())
    space.until(lambda: "must be; 2 of 4 pods do not exist" in remove(space, "c")[1])


def test_force_deletes(space: Workspace) -> None:
    """Forcing the deletion of a pod that serves is a delete like any other; a terminating pod may always be forced."""
    space.apply(budget(protectTotalReplicas=3))
    create(space, ["a", "b", "c"])
    allows(space, 1, currentAvailable=3)
    assert remove(space, "a", **FORCED)[0]
    space.until(lambda: "a" not in space.pods)
    assert not remove(space, "b", **FORCED)[0]
    space.patch({"spec": {"maxUnavailable": 2}}, "pub", "podunavailablebudget")
    allows(space, 1, desiredAvailable=1)
    space.set_finalizers("b", KEEP)
    assert remove(space, "b")[0]
    space.until(lambda: terminating(space.pod("b")))
    assert not remove(space, "c", **FORCED)[0]
    assert remove(space, "b", **FORCED)[0]
    space.set_finalizers("b")


def test_pods_of_a_job_that_has_completed(space: Workspace) -> None:
    space.apply(budget(maxUnavailable=0, protectTotalReplicas=2))
    template = {
        "metadata": {"labels": LABELS, "annotations": {"fake.flotilla.dev/complete": ""}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx:alpine"}]},
    }
    spec = {"completions": 3, "parallelism": 3, "template": template}
    space.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sample"}, "spec": spec})
    space.until(lambda: [pod["status"].get("phase") for pod in space.pods.values()] == ["Succeeded"] * 3)
    allows(space, 0, desiredAvailable=2)
    first, second, _ = sorted(space.pods)
    assert remove(space, first)[0]
    assert evict(space, second)[0]
    assert attempt(space, "delete", "job", "sample")[0]  # and the garbage collector the third
    space.until(lambda: not space.pods)


def test_an_eviction_that_a_disruption_budget_refuses(space: Workspace) -> None:
    """It is checked after ours. The unit stays with the pod, so that later tries take no second one."""
    space.apply(budget(protectTotalReplicas=3))
    create(space, ["a", "b", "c"])
    allows(space, 1, currentAvailable=3)
    spec = {"minAvailable": 3, "selector": {"matchLabels": LABELS}}
    space.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pdb"}, "spec": spec})
    space.until(lambda: space.read("pdb", "pdb").get("status", {}).get("currentHealthy") == 3)
    for _ in range(2):
        admitted, told = evict(space, "a")
        assert not admitted
        assert "disruption budget" in told
    space.until(lambda: counted(space).get("disruptedPods", {}).keys() == {"a"})
    admitted, told = evict(space, "b")
    assert not admitted
    assert f"{REFUSED}: 2 of 3 pods are available and 2 must be; the budget is held by a (deletion, until " in told
    space.kubectl("delete", "pdb", "pdb")
    assert evict(space, "a")[0]


def test_a_refusal_leaves_nothing_in_a_workload_spread(space: Workspace) -> None:
    """That check comes first and records the pod as deleted; the refusal removes the record (webhooks.md §8)."""
    space.apply(spread(1, None, zones=False))
    space.apply(plain("apps.kruise.io/v1beta1", "CloneSet", 2))
    space.apply(budget(maxUnavailable=0))
    allows(space, 0, currentAvailable=2)
    space.until(lambda: not written_down(space))
    before = version_of(space.read("workloadspread", NAME))
    for way in (remove, evict):
        for name in sorted(space.pods):
            admitted, told = way(space, name)
            assert not admitted
            assert REFUSED in told
    assert version_of(space.read("workloadspread", NAME)) > before
    assert not written_down(space)


def written_down(space: Workspace) -> set[str]:
    """Return the pods awaited in the status of the WorkloadSpread."""
    books: dict[str, list[Json]] = space.read("workloadspread", NAME)["status"].get("versionedSubsetStatuses", {})
    entries = [entry for book in books.values() for entry in book]
    return {key for entry in entries for kind in ("creatingPods", "deletingPods") for key in entry.get(kind, {})}
