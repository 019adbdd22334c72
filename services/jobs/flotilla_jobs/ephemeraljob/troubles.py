"""What is wrong with the containers of a job: the kubelet's reason and words, pod by pod, the same ones together."""

from collections.abc import Iterator, Sequence

import msgspec

from flotilla_common.api.core import ContainerStatus, Pod, WaitingState
from flotilla_common.api.kinds.ephemeraljob.types import FAILED
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import State
from flotilla_common.workload.causes import LOOKED_AT, Around, Cause, cause_of, grouped
from flotilla_common.workload.causes.containers import exit_cause, exit_word
from flotilla_common.workload.causes.finding import MOST_GROUPS
from flotilla_common.workload.causes.starting import IMAGE_REASONS, ON_ITS_WAY, image_cause
from flotilla_common.workload.causes.wording import bare
from flotilla_jobs.ephemeraljob.targets import Target, container_state

Found = Iterator[tuple[str, Cause]]


def explain_waiting(targets: Sequence[Target], draft: Draft) -> None:
    """Say why containers of these pods do not start."""
    found = [one for target in targets[:LOOKED_AT] for one in _waiting(target)]
    _tell("WaitingForContainers", found, draft)


def explain_failed(targets: Sequence[Target], draft: Draft) -> None:
    """Say how containers of these pods failed."""
    _tell("FailedPods", [one for target in targets[:LOOKED_AT] for one in _failed(target)], draft)


def _tell(code: str, found: Sequence[tuple[str, Cause]], draft: Draft) -> None:
    for group in grouped(found)[:MOST_GROUPS]:
        draft.reason(State.STUCK, code, group.sentence, group.pods, symptom=True)


def _waiting(target: Target) -> Found:
    pod = target.pod
    if pod.status.phase == "Pending" and (cause := cause_of(pod)) is not None and cause.stuck:
        yield pod.metadata.name, cause
        return
    for status in _statuses(target):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ON_ITS_WAY:
            yield pod.metadata.name, _held(pod, status.name, waiting)


def _held(pod: Pod, name: str, waiting: WaitingState) -> Cause:
    if waiting.reason in IMAGE_REASONS:
        image = next((one.image for one in pod.spec.ephemeral_containers if one.name == name), "")
        return image_cause(name, image, waiting, Around())
    told = bare(waiting.message)
    return Cause(code=waiting.reason, message=f"container {name} waits, {waiting.reason}{f': {told}' if told else ''}")


def _failed(target: Target) -> Found:
    for status in _statuses(target):
        if container_state(status) == FAILED:
            yield target.pod.metadata.name, _ended(status)


def _ended(status: ContainerStatus) -> Cause:
    name, end = f"container {status.name}", status.state.terminated
    if end is None:
        told = bare(status.state.waiting.message) if status.state.waiting is not None else ""
        return Cause(code="StartError", message=f"{name} cannot be started{f': {told}' if told else ''}")
    cause = exit_cause(name, None, status, end, Around())
    if cause.code != "CrashLoopBackOff":
        return cause
    return msgspec.structs.replace(cause, message=f"{name} ended with {exit_word(end)}")


def _statuses(target: Target) -> Sequence[ContainerStatus]:
    """Those of the job's containers."""
    return [one for one in target.pod.status.ephemeral_container_statuses if one.name in target.containers]
