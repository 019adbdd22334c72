"""The services: alive, ready, and each of them there."""

from collections.abc import Iterator, Mapping

from flotilla_cli.doctor.expected import services
from flotilla_cli.doctor.facts import Facts, Heard
from flotilla_cli.doctor.finding import Finding
from flotilla_cli.doctor.gather.heartbeats import PATIENCE_SECONDS
from flotilla_common.bus.heartbeat import NODE_AGENT

_START = "start it (`flotilla up`, `flotilla run`, its Deployment), and see its log: it may be on another bus"


def seen(facts: Facts) -> str:
    """What was looked at."""
    replicas = [one for one in facts.heard.get() if one.beat.service != NODE_AGENT]
    return f"{len({one.beat.service for one in replicas})} services with {len(replicas)} replicas"


def check(facts: Facts) -> Iterator[Finding]:
    """Each process of a local set, each service that has to be there, and each replica that speaks."""
    yield from _processes(facts)
    heard = [one for one in facts.heard.get() if one.beat.service != NODE_AGENT]
    logs = {line.name: line.log for line in facts.processes if not line.running}
    speaking = {one.beat.service for one in heard}
    for one in heard:
        yield from _waiting(one)
    for service, because in services(facts).items():
        if service not in speaking:
            yield _silent(service, because, logs)


def _silent(service: str, because: str, logs: Mapping[str, str]) -> Finding:
    said = f"no replica of it has said for {PATIENCE_SECONDS:.0f} s that it lives, and {because}"
    advice = _START
    if service in logs:
        advice = f"it does not run: `flotilla up` starts it again; its log is {logs[service]}"
    elif "lease" in because:
        advice += "; if it is not to run any more, delete its leases"
    return Finding(code="ServiceSilent", about=service, text=said, advice=advice)


def _waiting(one: Heard) -> Iterator[Finding]:
    if one.beat.waiting:
        said = "; ".join(f"{part}: {why}" for part, why in sorted(one.beat.waiting.items()))
        advice = "its log says more; docs/operations.md#troubleshooting has what is waited for most"
        about = f"{one.beat.service} {one.beat.replica}"
        yield Finding(code="ServiceWaits", about=about, text=f"it is not ready: {said}", advice=advice)


def _processes(facts: Facts) -> Iterator[Finding]:
    """Of the local set. The bus is spoken of elsewhere, and so are services, as long as there is a bus to hear them."""
    heard = facts.heard.found is not None
    for line in facts.processes:
        service = line.name in facts.local
        wrong = not heard and not line.running if service else line.name != "nats-server" and not line.healthy
        if wrong:
            advice = "`flotilla up` starts what does not run" + (f"; its log is {line.log}" if line.log else "")
            yield Finding(code="ProcessDown", about=f"process {line.name}", text=line.detail, advice=advice)
