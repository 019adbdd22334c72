"""Each rule by which DaemonSets are planned is needed: without it, the oracles find breaches."""

# pyright: reportPrivateUsage=false
# Taking a guard out means reaching into what it guards.

import itertools
from datetime import datetime

import msgspec
import pytest

from flotilla_common.api.core import Node, Pod
from flotilla_common.workload.pernode import PodFactory
from flotilla_common.workload.placement import FITS, Fit, Placement
from flotilla_common.workload.predicates import is_serving
from flotilla_daemonset.daemonset import manage, pod_actions, rollout
from flotilla_daemonset.daemonset.manage import _Manage
from flotilla_daemonset.daemonset.pods import Criteria, NodeState
from flotilla_daemonset.daemonset.snapshot import PreviousPod
from tests.simulation.perturbation.removal import Removal, each, shown_to_be_needed
from tests.testkit.tables import cases


def no_look_at_nodes(patch: pytest.MonkeyPatch) -> None:
    """Give every node a pod, and keep it."""

    def fit(placement: Placement, node: Node) -> Fit:
        del placement, node
        return FITS

    patch.setattr(Placement, "fit", fit)


def no_wait_for_the_end(patch: pytest.MonkeyPatch) -> None:
    """Create a node's next pod while the last one is still terminating."""
    visit = _Manage.visit

    def look_past(step: _Manage, state: NodeState) -> bool:
        return visit(step, msgspec.structs.replace(state, pods=state.living))

    patch.setattr(_Manage, "visit", look_past)


def no_look_at_deletions(patch: pytest.MonkeyPatch) -> None:
    """Delete terminating pods again."""
    visit = _Manage.visit

    def look_again(step: _Manage, state: NodeState) -> bool:
        return visit(step, msgspec.structs.replace(state, living=state.pods))

    patch.setattr(_Manage, "visit", look_again)


def no_derived_names(patch: pytest.MonkeyPatch) -> None:
    """Give new pods new names in each plan."""
    counter = itertools.count()

    def name(factory: PodFactory, node: str) -> str:
        del factory
        return f"web-{node}-{next(counter)}"

    patch.setattr(PodFactory, "_name", name)


def no_count_of_the_unavailable(patch: pytest.MonkeyPatch) -> None:
    """Count no nodes without an available pod against maxUnavailable."""
    patch.setattr(rollout, "_lost", nothing)


def nothing(*arguments: object) -> int:
    """Return an empty result for any arguments."""
    del arguments
    return 0


def no_look_at_availability(patch: pytest.MonkeyPatch) -> None:
    """Count every pod as available, in spite of updates."""

    def is_available(criteria: Criteria, pod: Pod) -> bool:
        del criteria, pod
        return True

    patch.setattr(Criteria, "is_available", is_available)


def no_time_to_become_available(patch: pytest.MonkeyPatch) -> None:
    """Count a ready pod as available at once."""

    def is_available(criteria: Criteria, pod: Pod) -> bool:
        del criteria
        return is_serving(pod)

    patch.setattr(Criteria, "is_available", is_available)


def no_back_off(patch: pytest.MonkeyPatch) -> None:
    """Replace a failed pod at once, each time."""

    def backoff_until(former: PreviousPod, now: datetime, generation: int) -> datetime | None:
        del former, now, generation

    patch.setattr(PreviousPod, "backoff_until", backoff_until)


def no_turn_for_the_chosen(patch: pytest.MonkeyPatch) -> None:
    """Delete all pods that the user marked at once."""

    def keeps_many(*arguments: object) -> int:
        del arguments
        return 2

    patch.setattr(manage, "_keeps_a_pod", keeps_many)


def no_hook(patch: pytest.MonkeyPatch) -> None:
    """Delete pods without calling their hooks."""
    patch.setattr(pod_actions, "hooked", nothing)


GUARDS: dict[str, tuple[Removal, str, list[list[str]]]] = {
    "nodes are asked": (no_look_at_nodes, "daemons-made-on-all-nodes", [[]]),
    "a pod that goes blocks its node": (no_wait_for_the_end, "daemons-replaced-by-share", [[]]),
    "nobody is deleted twice": (no_look_at_deletions, "nodes-tainted", [[]]),
    "names are derived": (no_derived_names, "daemons-made-on-all-nodes", each("straggler@daemonset-0:{}", points=3)),
    "the unavailable count": (no_count_of_the_unavailable, "daemons-replaced-by-share", [[]]),
    "who does not serve counts": (no_look_at_availability, "daemons-rolled-back-in-mid-roll", [[]]),
    "minReadySeconds pass": (no_time_to_become_available, "daemons-surged-and-available-after-a-while", [[]]),
    "failed pods wait": (no_back_off, "daemons-that-fail", [[]]),
    "pods that are chosen wait for their turn": (no_turn_for_the_chosen, "daemons-chosen-by-the-user", [[]]),
    "hooks are asked": (no_hook, "daemons-held-before-they-go", [[]]),
}


@pytest.mark.parametrize(("remove", "scenario", "attempts"), cases(GUARDS))
def test_without_the_guard_the_simulation_fails(
    remove: Removal, scenario: str, attempts: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown_to_be_needed(remove, scenario, attempts, monkeypatch)
