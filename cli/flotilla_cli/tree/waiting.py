"""What an object waits for as far as the cluster itself tells, when the service's own reasons cannot be had."""

from collections.abc import Sequence

from flotilla_cli.tree.facts import PodFacts
from flotilla_cli.tree.workload import Workload
from flotilla_common.api.keys import IN_PLACE_READY, SPECIFIED_DELETE_LABEL
from flotilla_common.workload.predicates import is_serving

NAMED = 3
"""Pods that a sentence names before it says how many more there are."""


def waits_for(workload: Workload, pods: Sequence[PodFacts]) -> tuple[str, ...]:
    """One sentence per thing that is still to come; empty when nothing is."""
    wanted, seen = workload.metadata.generation, workload.observed_generation
    if seen < wanted:
        return (f"the service has not looked at generation {wanted} yet, only at {seen}",)
    return (*_counts(workload), *_pods(pods), *_limits(workload))


def pod_waits_for(facts: PodFacts) -> str:
    """What one pod waits for; empty when it serves."""
    pod = facts.pod
    if pod.metadata.deletion_timestamp is not None:
        held = ", ".join(pod.metadata.finalizers)
        return f"its end, held by finalizer {held}" if held else "its end"
    if pod.state == "PreparingDelete":
        return "its preDelete hook"
    if pod.state == "PreparingUpdate":
        return "its inPlaceUpdate hook"
    if SPECIFIED_DELETE_LABEL in pod.metadata.labels:
        return "its deletion, which was asked for"
    if not pod.spec.node_name:
        return "a node"
    in_place = pod.conditions.get(IN_PLACE_READY)
    if in_place is not None and in_place.status != "True":
        return "its in-place update"
    if not pod.ready:
        return f"readiness ({facts.reason})" if facts.reason else "readiness"
    return "its preNormal hook" if pod.state == "PreparingNormal" else ""


def _counts(workload: Workload) -> list[str]:
    want, have = workload.numbers.desired, workload.numbers.total
    if have < want:
        return [f"{want - have} more {_pods_word(want - have)}: {have} of {want} exist"]
    if have > want:
        return [f"{have - want} {_pods_word(have - want)} fewer: {have} exist, {want} are wanted"]
    return []


def _pods(pods: Sequence[PodFacts]) -> list[str]:
    names = [facts.pod.metadata.name for facts in pods if facts.pod.active and not is_serving(facts.pod)]
    if not names:
        return []
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return [f"{len(names)} {_pods_word(len(names))} to be ready: {', '.join(sorted(names)[:NAMED])}{more}"]


def _limits(workload: Workload) -> list[str]:
    numbers = workload.numbers
    old, todo = numbers.total - numbers.updated, numbers.expected_updated - numbers.updated
    if workload.update_revision == workload.current_revision:
        return []
    if workload.paused:
        return ["somebody to unpause the update"]
    if workload.on_delete:
        return [f"somebody to delete {old} old {_pods_word(old)} (OnDelete)"] if old > 0 else []
    if todo > 0:
        return [f"{todo} more {_pods_word(todo)} to be updated to {workload.update_revision}"]
    if workload.partition and old > 0:
        return [f"a smaller partition: {workload.partition} keeps the other pods at {workload.current_revision}"]
    return []


def _pods_word(count: int) -> str:
    return "pod" if count == 1 else "pods"
