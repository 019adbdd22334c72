"""`flotilla get`, `explain`, `history`, `tail`, `bundle`, `replay` of PodUnavailableBudgets."""

from pathlib import Path

from tests.support.budgets import REFUSED, allows, budget, create, evict, remove
from tests.support.fleet import Fleet
from tests.support.verbs import Verbs
from tests.support.workspace import Workspace


def test_who_took_budget_and_who_was_refused(space: Workspace, shared: Fleet, tmp_path: Path) -> None:
    flotilla = Verbs(space, shared)
    space.apply(budget(protectTotalReplicas=3))
    create(space, ["a", "b", "c"])
    allows(space, 1, currentAvailable=3)
    assert "it may be disrupted now" in flotilla.run("explain", "pod", "b")
    space.set_finalizers("a", "example.com/keep")
    assert remove(space, "a")[0]
    assert not remove(space, "b")[0]
    assert not evict(space, "b")[0]
    allows(space, 0, currentAvailable=2)
    assert "it may not be disrupted now: 2 of 3 pods are available" in flotilla.run("explain", "pod", "b")
    assert "no budget is left: 2 of 3 pods available" in flotilla.run("explain", "pub", "pub")
    assert "0 more may become unavailable" in flotilla.run("get", "pub", "pub")
    story = flotilla.run("history", "pub", "pub")
    assert "admitted: delete by admin: a\n" in story
    assert f"refused: delete by admin: b: {REFUSED}" in story
    assert f"refused: evict by admin: b: {REFUSED}" in story
    story = flotilla.run("history", "pod", "b", "--all")
    assert f"evict by admin, decided by PodUnavailableBudget pub → Denied: {REFUSED}" in story
    lines = flotilla.run("tail", "pub/pub", "--since=10m", "--no-follow").splitlines()
    told = [line for line in lines if "decided by PodUnavailableBudget pub" in line]
    assert ["→ Ok" in line for line in told] == [True, False, False]
    bundle = tmp_path / "pub.jsonl"
    assert "decisions match those of the service" in flotilla.replayed(tmp_path, "pub", "pub")
    text = bundle.read_text()
    for subject in ("kube.v1.core.pods", "act.v1.webhook.pods", "why.v1.podunavailablebudgets"):
        assert f'"{subject}.{space.name}.' in text
    space.patch({"metadata": {"finalizers": None}}, "a", "pod")
