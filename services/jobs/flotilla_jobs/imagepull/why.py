"""Explains to users the state of an ImagePullJob."""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.kinds.imagepulljob.types import ImagePullJobStatus
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named, nodes_word
from flotilla_jobs.imagepull.secret_copies import PullSecrets
from flotilla_jobs.imagepull.snapshot import PullJobSnapshot
from flotilla_jobs.imagepull.status import Progress
from flotilla_jobs.unreachable_agents import no_agent

Unreachable = Mapping[str, datetime]
"""Nodes whose agent does not answer, and since when."""


def explain(
    snapshot: PullJobSnapshot,
    progress: Progress,
    unreachable: Unreachable,
    secrets: PullSecrets,
    parallelism: int,
    builder: PlanBuilder,
) -> None:
    """Add the reasons of a job that is not completed."""
    if not snapshot.nodes:
        builder.reason(State.STUCK, "NoMatchingNodes", "no node matches, or none of them has a NodeImage yet")
    if secrets.unread:
        builder.reason(State.WAITING, "WaitingForSecrets", f"pull secrets {', '.join(secrets.unread)} are being read")
    elif secrets.absent:
        absent = ", ".join(secrets.absent)
        builder.reason(State.STUCK, "SecretsMissing", f"pull secrets {absent} do not exist; pulling without them")
    if progress.open and not parallelism:
        builder.reason(State.HELD, "Paused", f"paused: parallelism is 0, {nodes_word(len(progress.open))} to go")
    if unreachable:
        builder.reasons.append(no_agent(unreachable))
    _explain_pulls(progress, unreachable, parallelism, builder)
    if progress.failed:
        names = sorted(progress.failed)
        first = progress.failed[names[0]] or "nothing"
        text = f"{nodes_word(len(names))} could not pull: {named(names)}; {names[0]} says: {first}"
        builder.reason(State.STUCK, "FailedOnNodes", text, names, symptom=True)


def explain_completed(status: ImagePullJobStatus, builder: PlanBuilder) -> None:
    """Add the result of a completed job."""
    text = f"{status.message}: {status.succeeded} of {status.desired} nodes have the image"
    builder.reason(State.DONE, "Completed", text, status.failed_nodes)


def _explain_pulls(progress: Progress, unreachable: Unreachable, parallelism: int, builder: PlanBuilder) -> None:
    busy = sorted(name for name in progress.pulling if name not in unreachable)
    if not busy and not (unreachable and progress.open):
        return
    message = f"{nodes_word(len(busy))} at work: {named(busy)}" if busy else "no node is at work"
    if progress.open:
        message += f"; {len(progress.open)} more wait, parallelism is {parallelism}"
    builder.reason(State.WAITING, "WaitingForNodes", message, busy)
