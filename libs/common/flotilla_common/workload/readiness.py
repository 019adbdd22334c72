"""The readiness conditions that controllers own: KruisePodReady with its list of holders, and Ready (common.md §6).

KruisePodReady is False while any holder is in its message. Because several writers share that list, every change
is conditional on the version of the pod that was read.
"""

from datetime import datetime

import msgspec

from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import POD_READY
from flotilla_common.api.meta import Condition
from flotilla_common.workload.podedit import PodEdit


class Blocker(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """A program that keeps a pod NotReady, and its reason. Members that are not text read as empty."""

    user_agent: str = ""
    key: str = ""


def add_blocker(edit: PodEdit, holder: Blocker, now: datetime) -> None:
    """Keep the pod NotReady on behalf of `holder`; no effect without the gate."""
    condition = edit.condition(POD_READY)
    holders = _holders(condition)
    if POD_READY not in edit.pod.gates or (condition and condition.status != "True" and holder in holders):
        return
    _write(edit, {*holders, holder}, now)
    recompute_ready(edit, now)


def remove_blocker(edit: PodEdit, holder: Blocker, now: datetime) -> None:
    """Remove `holder`; without any holders the pod may be Ready again (the kubelet then sets Ready)."""
    holders = _holders(edit.condition(POD_READY))
    if POD_READY in edit.pod.gates and holder in holders:
        _write(edit, holders - {holder}, now)


def ensure_pod_ready(edit: PodEdit, now: datetime) -> None:
    """Give a pod that declares the gate its first, true condition (§6.2)."""
    if POD_READY in edit.pod.gates and edit.condition(POD_READY) is None:
        edit.set_condition(Condition(type=POD_READY, status="True", last_transition_time=now))


def recompute_ready(edit: PodEdit, now: datetime) -> None:
    """Set Ready to False at once when a gate fails, instead of waiting for the kubelet (§6.3)."""
    ready, containers = edit.condition("Ready"), edit.condition("ContainersReady")
    if ready is None or ready.status == "False" or containers is None or containers.status != "True":
        return
    failures = [failure for gate in edit.pod.spec.readiness_gates if (failure := _failure(edit, gate.condition_type))]
    if failures:
        edit.set_condition(
            Condition(
                type="Ready",
                status="False",
                reason="ReadinessGatesNotReady",
                message=", ".join(failures),
                last_transition_time=now,
            )
        )


def distrust_ready(edit: PodEdit, now: datetime) -> None:
    """Set a Ready to False that contradicts a gate which is about to open.

    The kubelet has not evaluated the gates since this one closed, and may be about to write False: until it writes True
    again, the pod must not count as available.
    """
    edit.set_condition(
        Condition(
            type="Ready",
            status="False",
            reason="ReadinessGatesNotReady",
            message="waiting for the kubelet to look at the readiness gates again",
            last_transition_time=now,
        )
    )


def _failure(edit: PodEdit, gate: str) -> str:
    condition = edit.condition(gate)
    if condition is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    if condition.status != "True":
        return f'the status of pod readiness gate "{gate}" is not "True", but {condition.status}'
    return ""


def _holders(condition: Condition | None) -> set[Blocker]:
    """Return the holders of the pod. An invalid message counts as empty: no holder could ever be removed from it."""
    if condition is None or not condition.message:
        return set()
    try:
        return set(read_json(condition.message, list[Blocker]))
    except ValueError:
        return set()


def _write(edit: PodEdit, holders: set[Blocker], now: datetime) -> None:
    edit.on_this_version()
    edit.set_condition(
        Condition(
            type=POD_READY,
            status="False" if holders else "True",
            message=msgspec.json.encode(sorted(holders)).decode(),
            last_transition_time=now,
        )
    )
