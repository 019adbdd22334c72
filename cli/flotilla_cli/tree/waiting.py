"""What an object waits for as far as the cluster itself tells, when the service's own reasons cannot be had."""

from collections.abc import Iterator

from flotilla_cli.tree.facts import PodFacts
from flotilla_cli.tree.workload import Workload
from flotilla_common.api.keys import SPECIFIED_DELETE_LABEL
from flotilla_common.control.plan import Reason


def waits_for(workload: Workload) -> tuple[Reason, ...]:
    """One reason per thing that is still to come, besides what its pods wait for; empty when nothing is."""
    wanted, seen = workload.metadata.generation, workload.observed_generation
    if seen < wanted:
        text = f"waiting: the service has not looked at generation {wanted} yet, only at {seen}"
        return (Reason(code="NotPlanned", message=text),)
    return (*_counts(workload), *_limits(workload))


def pod_waits_for(facts: PodFacts) -> str:
    """What keeps one pod; empty when it serves and is to stay, or merely has to do so for a while."""
    if (cause := facts.cause) is not None:
        return "" if cause.code == "MinReadySeconds" else cause.text
    if SPECIFIED_DELETE_LABEL in facts.pod.metadata.labels:
        return "waits for its deletion, which was asked for"
    return ""


def _counts(workload: Workload) -> Iterator[Reason]:
    want, have = workload.numbers.desired, workload.numbers.total
    if have < want:
        text = f"waiting for {want - have} more {_noun(want - have)}: {have} of {want} exist"
        yield Reason(code="ScalingUp", message=text)
    elif have > want:
        text = f"waiting for {have - want} {_noun(have - want)} fewer: {have} exist, {want} are wanted"
        yield Reason(code="ScalingDown", message=text)
    elif (missing := want - workload.numbers.ready) > 0:
        yield Reason(code="WaitingForAvailability", message=f"waiting for {missing} {_noun(missing)} to be ready")


def _limits(workload: Workload) -> Iterator[Reason]:
    numbers = workload.numbers
    old, todo = numbers.total - numbers.updated, numbers.expected_updated - numbers.updated
    if workload.update_revision == workload.current_revision:
        return
    if workload.paused:
        yield Reason(code="PausedByUser", message="waiting for somebody to unpause the update")
    elif workload.on_delete and old > 0:
        text = f"waiting for somebody to delete {old} old {_noun(old)} (OnDelete)"
        yield Reason(code="OnDelete", message=text)
    elif not workload.on_delete and todo > 0:
        text = f"waiting for {todo} more {_noun(todo)} to be updated to {workload.update_revision}"
        yield Reason(code="Updating", message=text)
    elif not workload.on_delete and workload.partition and old > 0:
        kept = f"{workload.partition} keeps the other pods at {workload.current_revision or 'older revisions'}"
        yield Reason(code="PartitionReached", message=f"waiting for a smaller partition: {kept}")


def _noun(count: int) -> str:
    return "pod" if count == 1 else "pods"
