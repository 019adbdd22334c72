"""Why a job stands where it stands, for people."""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.kinds.imagepulljob.types import ImagePullJobStatus
from flotilla_common.control.plan import Reason
from flotilla_common.control.wording import first_names, named, nodes_word
from flotilla_jobs.imagepull.secrets import Supply
from flotilla_jobs.imagepull.snapshot import PullJobSnapshot
from flotilla_jobs.imagepull.status import Progress
from flotilla_jobs.silence import no_agent

Silent = Mapping[str, datetime]
"""Nodes that nobody answers for, and since when."""


def running(
    snapshot: PullJobSnapshot, progress: Progress, silent: Silent, secrets: Supply, parallelism: int
) -> tuple[Reason, ...]:
    """All that is to be said about a job that is not over."""
    return tuple(
        reason
        for reason in (
            _no_nodes(snapshot),
            _secrets(secrets),
            _paused(progress, parallelism),
            no_agent(silent) if silent else None,
            _pulling(progress, silent, parallelism),
            failed(progress.failed),
        )
        if reason is not None
    )


def completed(status: ImagePullJobStatus) -> tuple[Reason, ...]:
    """What is left to say of a job that is over."""
    done = f"{status.succeeded} of {status.desired} nodes have the image"
    return (Reason(code="Completed", message=f"{status.message}: {done}", objects=first_names(status.failed_nodes)),)


def failed(nodes: dict[str, str]) -> Reason | None:
    """Which nodes could not pull, and what the first of them said."""
    if not nodes:
        return None
    names = sorted(nodes)
    message = (
        f"{nodes_word(len(nodes))} could not pull: {named(names)}; {names[0]} says: {nodes[names[0]] or 'nothing'}"
    )
    return Reason(code="FailedOnNodes", message=message, objects=first_names(names))


def _no_nodes(snapshot: PullJobSnapshot) -> Reason | None:
    if snapshot.nodes:
        return None
    return Reason(code="NoMatchingNodes", message="no node matches, or none of them has a NodeImage yet")


def _secrets(secrets: Supply) -> Reason | None:
    if secrets.unread:
        return Reason(code="WaitingForSecrets", message=f"waiting: reading pull secrets {', '.join(secrets.unread)}")
    if secrets.absent:
        message = f"pull secrets {', '.join(secrets.absent)} do not exist; pulling without them"
        return Reason(code="SecretsMissing", message=message)
    return None


def _paused(progress: Progress, parallelism: int) -> Reason | None:
    if parallelism or not progress.open:
        return None
    return Reason(code="Paused", message=f"paused: parallelism is 0, {nodes_word(len(progress.open))} to go")


def _pulling(progress: Progress, silent: Silent, parallelism: int) -> Reason | None:
    busy = sorted(name for name in progress.pulling if name not in silent)
    if not busy and not (silent and progress.open):
        return None
    message = f"waiting: {nodes_word(len(busy))} at work: {named(busy)}" if busy else "waiting: no node is at work"
    if progress.open:
        message += f"; {len(progress.open)} more wait, parallelism is {parallelism}"
    return Reason(code="WaitingForNodes", message=message, objects=first_names(busy))
