"""Computes the status of a NodePodProbe from the reports of the node's agent (nodeagent.md §6.4).

Results of probes that are not in the spec are dropped.
"""

from datetime import datetime, timedelta

from flotilla_common.api.kinds.nodepodprobe.types import (
    FAILED,
    MESSAGE_BYTES,
    MESSAGES_BYTES,
    SUCCEEDED,
    UNKNOWN,
    NodePodProbe,
    NodePodProbeStatus,
    PodProbeStatus,
    ProbeState,
)
from flotilla_common.api.moments import later

STATES = frozenset({SUCCEEDED, FAILED, UNKNOWN})

AHEAD = timedelta(minutes=1)
"""The tolerated clock skew of a node. A time further in the future is not accepted."""


def report_problem(report: NodePodProbeStatus) -> str:
    """Return why the report cannot be a status; empty if it can."""
    for pod in report.pod_probe_statuses:
        for one in pod.probe_states:
            if one.state not in STATES:
                return f"{pod.namespace}/{pod.name} {one.name}: unknown state {one.state!r}"
    return ""


def reported(found: NodePodProbe, report: NodePodProbeStatus | None, now: datetime) -> NodePodProbeStatus:
    """Return the status without probes that are not in the spec, merged with the report, if there is one.

    Entries keep their order; new ones follow in the order of the spec. Applying the same report to the result changes
    nothing more.
    """
    held = _states(found.status)
    said = _states(report) if report is not None else {}
    wanted = {pod.uid: pod for pod in found.spec.pod_probes}
    limit = min(MESSAGE_BYTES, MESSAGES_BYTES // max(sum(len(pod.probes) for pod in wanted.values()), 1))
    entries: list[PodProbeStatus] = []
    for uid in dict.fromkeys([*held, *wanted]):
        if (pod := wanted.get(uid)) is None:
            continue
        before, after = held.get(uid, {}), said.get(uid, {})
        probes = {probe.name for probe in pod.probes}
        names = dict.fromkeys([*before, *(probe.name for probe in pod.probes if probe.name in after)])
        states = [_state(before.get(name), after.get(name), limit, now) for name in names if name in probes]
        if states:
            entries.append(PodProbeStatus(name=pod.name, namespace=pod.namespace, uid=uid, probe_states=states))
    return NodePodProbeStatus(pod_probe_statuses=entries)


def _states(status: NodePodProbeStatus) -> dict[str, dict[str, ProbeState]]:
    """Return the states by pod uid and probe name; the last one of several with the same name."""
    found: dict[str, dict[str, ProbeState]] = {}
    for pod in status.pod_probe_statuses:
        found.setdefault(pod.uid, {}).update({state.name: state for state in pod.probe_states})
    return found


def _state(held: ProbeState | None, said: ProbeState | None, limit: int, now: datetime) -> ProbeState:
    if said is None:
        return held or ProbeState()
    moment, message = now.replace(microsecond=0), cut(said.message, limit)
    if held is None or held.state != said.state:
        since, known = moment, None
    else:
        since, known = held.last_transition_time, held if held.message == message else None
    return ProbeState(
        name=said.name,
        state=said.state,
        last_probe_time=_probed(known, said, moment),
        last_transition_time=since,
        message=message,
    )


def _probed(held: ProbeState | None, said: ProbeState, now: datetime) -> datetime | None:
    """Return when the probe was made, in whole seconds. `held`: the stored state, if it shows the same result."""
    if said.last_probe_time is None or said.last_probe_time > later(now, AHEAD):
        return now if held is None else held.last_probe_time
    return said.last_probe_time.replace(microsecond=0)


def cut(message: str, limit: int) -> str:
    """Return the message, or as many whole characters of it as fit into `limit` bytes."""
    encoded = message.encode(errors="replace")
    return message if len(encoded) <= limit else encoded[:limit].decode(errors="ignore")
