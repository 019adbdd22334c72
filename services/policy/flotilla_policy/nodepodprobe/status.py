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
from flotilla_common.api.meta import later

STATES = frozenset({SUCCEEDED, FAILED, UNKNOWN})

AHEAD = timedelta(minutes=1)
"""The tolerated clock skew of a node. A time further in the future is not accepted."""


def report_problem(report: NodePodProbeStatus) -> str:
    """Return why the report cannot be a status; empty if it can."""
    for pod in report.pod_probe_statuses:
        for state in pod.probe_states:
            if state.state not in STATES:
                return f"{pod.namespace}/{pod.name} {state.name}: unknown state {state.state!r}"
    return ""


def reported(node_probe: NodePodProbe, report: NodePodProbeStatus | None, now: datetime) -> NodePodProbeStatus:
    """Return the status without probes that are not in the spec, merged with the report, if there is one.

    Entries keep their order; new ones follow in the order of the spec. Applying the same report to the result changes
    nothing more.
    """
    stored = _states(node_probe.status)
    new = _states(report) if report is not None else {}
    wanted = {pod.uid: pod for pod in node_probe.spec.pod_probes}
    limit = min(MESSAGE_BYTES, MESSAGES_BYTES // max(sum(len(pod.probes) for pod in wanted.values()), 1))
    entries: list[PodProbeStatus] = []
    for uid in dict.fromkeys([*stored, *wanted]):
        if (pod := wanted.get(uid)) is None:
            continue
        before, after = stored.get(uid, {}), new.get(uid, {})
        probes = {probe.name for probe in pod.probes}
        names = dict.fromkeys([*before, *(probe.name for probe in pod.probes if probe.name in after)])
        states = [_state(before.get(name), after.get(name), limit, now) for name in names if name in probes]
        if states:
            entries.append(PodProbeStatus(name=pod.name, namespace=pod.namespace, uid=uid, probe_states=states))
    return NodePodProbeStatus(pod_probe_statuses=entries)


def _states(status: NodePodProbeStatus) -> dict[str, dict[str, ProbeState]]:
    """Return the states by pod uid and probe name; the last one of several with the same name."""
    states: dict[str, dict[str, ProbeState]] = {}
    for pod in status.pod_probe_statuses:
        states.setdefault(pod.uid, {}).update({state.name: state for state in pod.probe_states})
    return states


def _state(stored: ProbeState | None, new: ProbeState | None, limit: int, now: datetime) -> ProbeState:
    if new is None:
        return stored or ProbeState()
    moment, message = now.replace(microsecond=0), cut(new.message, limit)
    if stored is None or stored.state != new.state:
        since, known = moment, None
    else:
        since, known = stored.last_transition_time, stored if stored.message == message else None
    return ProbeState(
        name=new.name,
        state=new.state,
        last_probe_time=_probed(known, new, moment),
        last_transition_time=since,
        message=message,
    )


def _probed(stored: ProbeState | None, new: ProbeState, now: datetime) -> datetime | None:
    """Return when the probe was made, in whole seconds. `stored`: the state, if it shows the same result."""
    if new.last_probe_time is None or new.last_probe_time > later(now, AHEAD):
        return now if stored is None else stored.last_probe_time
    return new.last_probe_time.replace(microsecond=0)


def cut(message: str, limit: int) -> str:
    """Return the message, or as many whole characters of it as fit into `limit` bytes."""
    encoded = message.encode(errors="replace")
    return message if len(encoded) <= limit else encoded[:limit].decode(errors="ignore")
