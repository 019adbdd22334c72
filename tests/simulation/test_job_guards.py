"""Each rule by which jobs are planned is needed: without it, the oracles find breaches.

The rules are those of BroadcastJobs, AdvancedCronJobs and EphemeralJobs.
"""

# pyright: reportPrivateUsage=false
# Taking a guard out means reaching into what it guards.

import itertools
from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec
import pytest

from flotilla_common.api.core import EphemeralContainer, Node, Pod
from flotilla_common.api.kinds.advancedcronjob.types import ALLOW
from flotilla_common.api.kinds.broadcastjob.types import UNLIMITED, BroadcastJob
from flotilla_common.api.kinds.ephemeraljob.types import RUNNING
from flotilla_common.api.resources import Resource
from flotilla_common.kube import interface
from flotilla_common.workload.pernode import PodFactory
from flotilla_common.workload.strict_placement import StrictPlacement
from flotilla_jobs.advancedcronjob import context as cron_context
from flotilla_jobs.advancedcronjob import plan as cron_plan
from flotilla_jobs.advancedcronjob import run as cron_run
from flotilla_jobs.advancedcronjob.snapshot import AdvancedCronJobSnapshot
from flotilla_jobs.broadcastjob import context
from flotilla_jobs.broadcastjob.context import NodeView
from flotilla_jobs.ephemeraljob import targets
from flotilla_jobs.ephemeraljob.targets import Target
from tests.simulation.perturbation.removal import Removal, each, shown_to_be_needed
from tests.testkit.tables import cases


def no_look_at_nodes(patch: pytest.MonkeyPatch) -> None:
    """Give every node a pod."""

    def why_not(placement: StrictPlacement, node: Node) -> str:
        del placement, node
        return ""

    patch.setattr(StrictPlacement, "why_not", why_not)


def no_parallelism(patch: pytest.MonkeyPatch) -> None:
    """Create all pods at once."""

    def parallelism(job: BroadcastJob, desired: int) -> int:
        del job, desired
        return UNLIMITED

    patch.setattr(context, "_parallelism", parallelism)


def no_wait_for_the_end(patch: pytest.MonkeyPatch) -> None:
    """Create a node's next pod while the last one is still terminating."""
    by_node = context._by_node

    def staying(pods: Collection[Pod], found: NodeView) -> dict[str, Pod]:
        return by_node([pod for pod in pods if pod.metadata.deletion_timestamp is None], found)

    patch.setattr(context, "_by_node", staying)


def no_derived_names(patch: pytest.MonkeyPatch) -> None:
    """Give new pods new names in each plan."""
    counter = itertools.count()

    def name(factory: PodFactory, node: str) -> str:
        del factory
        return f"web-{node}-{next(counter)}"

    patch.setattr(PodFactory, "_name", name)


def no_wait_for_pods(patch: pytest.MonkeyPatch) -> None:
    """Complete a job as soon as all its pods exist."""

    def is_complete(found: context.PlanContext) -> bool:
        return not found.node_view.waiting

    patch.setattr(context.PlanContext, "is_complete", property(is_complete))


def no_memory_of_runs(patch: pytest.MonkeyPatch) -> None:
    """Compute the last run from the remaining children only."""
    look = cron_context.context_of

    def look_at_children(snapshot: AdvancedCronJobSnapshot, now: datetime) -> cron_context.PlanContext:
        found = look(snapshot, now)
        return msgspec.structs.replace(found, last_run=cron_context.latest_run(found.snapshot.children))

    patch.setattr(cron_plan, "context_of", look_at_children)


def no_limit_of_the_missed(patch: pytest.MonkeyPatch) -> None:
    """Start the latest run, in spite of any number of missed ones."""
    patch.setattr(cron_run, "MOST_MISSED", UNLIMITED)


def no_policy(patch: pytest.MonkeyPatch) -> None:
    """Start runs beside others, in spite of the concurrency policy."""

    def policy_of(found: cron_context.PlanContext) -> str:
        del found
        return ALLOW

    patch.setattr(cron_run, "policy_of", policy_of)


def no_word_about_pods(patch: pytest.MonkeyPatch) -> None:
    """Delete Jobs without a propagation policy."""
    patch.setattr(interface, "ORPHANING", frozenset[Resource]())


def no_count_before_they_run(patch: pytest.MonkeyPatch) -> None:
    """Count only running containers against parallelism."""

    def at_work(found: targets.TargetPods) -> Sequence[Target]:
        return found.of_state(RUNNING)

    patch.setattr(targets.TargetPods, "at_work", property(at_work))


def no_look_at_owners(patch: pytest.MonkeyPatch) -> None:
    """Count a container of that name as the job's."""

    def is_own(container: EphemeralContainer, uid: str) -> bool:
        del container, uid
        return True

    patch.setattr(targets, "is_own", is_own)


GUARDS: dict[str, tuple[Removal, str, list[list[str]]]] = {
    "nodes are asked": (no_look_at_nodes, "broadcast-to-all-nodes", [[]]),
    "parallelism is kept": (no_parallelism, "broadcast-a-few-at-a-time", [[]]),
    "a pod that goes blocks its node": (no_wait_for_the_end, "broadcast-again-where-users-delete-pods", [[]]),
    "names are derived": (no_derived_names, "broadcast-to-all-nodes", each("straggler@jobs-0:{}", points=6)),
    "jobs wait for their pods": (no_wait_for_pods, "broadcast-to-all-nodes", [[]]),
    "runs are remembered": (no_memory_of_runs, "scheduled-without-a-past", [[]]),
    "too many runs are given up": (no_limit_of_the_missed, "scheduled-too-often-to-catch-up", [[]]),
    "runs wait for one another": (no_policy, "scheduled-one-after-the-other", [[]]),
    "pods go with their Job": (no_word_about_pods, "scheduled-in-vain", [[]]),
    "containers count from the first moment on": (no_count_before_they_run, "injected-one-after-the-other", [[]]),
    "names that are taken are spared": (no_look_at_owners, "injected-beside-another-job", [[]]),
}


@pytest.mark.parametrize(("remove", "scenario", "attempts"), cases(GUARDS))
def test_without_the_guard_the_simulation_fails(
    remove: Removal, scenario: str, attempts: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown_to_be_needed(remove, scenario, attempts, monkeypatch)
