"""Causes in failing probes. Their results are in events only; without them the probe itself is shown."""

from datetime import datetime, timedelta

from flotilla_common.api.core import Container, ContainerStatus, Probe, TerminatedState
from flotilla_common.workload.causes.cause import Cause, PodContext, about
from flotilla_common.workload.causes.text import bare, restarts_word

_FAILED = (" probe failed: ", " probe errored and resulted in unknown state: ", " probe errored: ", " probe warning: ")

WITHIN = timedelta(seconds=35)
"""Time from a kubelet's event about ending a container to its end: the usual grace period and clock differences."""

LONG_WITHIN = timedelta(hours=1)
"""Like WITHIN, for loops: kubelets drop events that repeat too fast, so the only event of a loop may be old."""

_CODES = {"Liveness": "LivenessProbeFailed", "Readiness": "ReadinessProbeFailed", "Startup": "StartupProbeFailed"}

HARMLESS = (0, 137, 143)
"""Exit codes of containers that were asked to end, and of killed ones, which show no other cause."""


def probe_result(kind: str, container: str, around: PodContext, since: datetime | None = None) -> str:
    """Return the output of the container's last failed probe of the `kind`; empty if none failed.

    Kinds are Readiness, Liveness and Startup.
    """
    for event in about(around.events, "Unhealthy", "ProbeWarning", container=container, since=since):
        for words in _FAILED:
            if event.message.startswith(kind + words):
                return bare(event.message.removeprefix(kind + words)) or "it gave no reason"
    return ""


def restart_cause(name: str, status: ContainerStatus, end: TerminatedState, around: PodContext) -> Cause | None:
    """Return why the kubelet ended the container: a probe or its postStart hook failed. Only events show that."""
    within = LONG_WITHIN if end.exit_code in HARMLESS and end.reason != "OOMKilled" else WITHIN
    since = end.finished_at - within if end.finished_at is not None else None
    for event in about(around.events, "Killing", "FailedPostStartHook", container=status.name, since=since):
        if "PostStartHook" in event.message:
            text = f"{name} is stopped each time, its postStart hook fails{_more(event.message)}"
            return Cause(code="PostStartHookError", message=text, detail=restarts_word(status.restart_count))
        for kind in ("Liveness", "Startup"):
            if f"failed {kind.lower()} probe" in event.message:
                told = probe_result(kind, status.name, around)
                text = f"{name} is restarted, its {kind.lower()} probe fails{f': {told}' if told else ''}"
                return Cause(code=_CODES[kind], message=text, detail=restarts_word(status.restart_count))
    return None


def _more(message: str) -> str:
    """Return the part of an event's message beyond the failure of the hook."""
    return "" if message in ("PostStartHook failed", "FailedPostStartHook") else f": {bare(message)}"


def unready_cause(name: str, spec: Container | None, status: ContainerStatus, around: PodContext) -> Cause | None:
    """Return why a container that runs is not ready."""
    running = status.state.running
    since = running.started_at if running is not None else None
    if status.started is False and spec is not None and spec.startup_probe is not None:
        return _failing("Startup", name, spec.startup_probe, status, around, since)
    if spec is not None and spec.readiness_probe is not None:
        return _failing("Readiness", name, spec.readiness_probe, status, around, since)
    text = f"{name} runs, and its kubelet has not reported it ready yet"
    return Cause(code="Starting", message=text, stuck=False, since=since)


def _failing(
    kind: str, name: str, probe: Probe, status: ContainerStatus, around: PodContext, since: datetime | None
) -> Cause:
    asked, told = _question(probe), probe_result(kind, status.name, around, since)
    liveness = probe_result("Liveness", status.name, around, since) if kind == "Readiness" else ""
    if told:
        more = f"; its liveness probe fails, too: {liveness}" if liveness else ""
        return Cause(
            code=_CODES[kind], message=f"{name} fails its {kind.lower()} probe {asked}: {told}{more}", since=since
        )
    text = f"{name} runs, and its {kind.lower()} probe {asked} has not succeeded yet"
    return Cause(code=_CODES[kind], message=text, stuck=False, since=since)


def _question(probe: Probe) -> str:
    """Return the request of the probe, such as "(GET /healthz on port 80)"."""
    if probe.http_get is not None:
        return f"(GET {probe.http_get.path or '/'} on port {probe.http_get.port})"
    if probe.exec is not None:
        return f"({bare(' '.join(probe.exec.command))})"
    if probe.tcp_socket is not None:
        return f"(TCP port {probe.tcp_socket.port})"
    return f"(gRPC port {probe.grpc.port})" if probe.grpc is not None else ""
