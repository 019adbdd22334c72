"""Events on the pod about a stop, with the container's name in place of its ID (nodeagent.md §8)."""

import msgspec

from flotilla_common.node.reports import EventReport
from flotilla_nodeagent.channel.reporting import Reporter
from flotilla_nodeagent.cri.types import Container
from flotilla_nodeagent.stopping.stop import Tell


class Subject(msgspec.Struct, frozen=True):
    """The pod that the container belongs to."""

    namespace: str
    name: str
    uid: str


def teller(reporter: Reporter, component: str, pod: Subject, container: Container, killing: str) -> Tell:
    """Events of one stop. `killing` is the message of the first."""

    def send(kind: str, reason: str, message: str) -> None:
        text = message.replace(container.id, container.name)
        event = EventReport(
            kind="Pod",
            uid=pod.uid,
            field_path=f"spec.containers{{{container.name}}}",
            component=component,
            type=kind,
            reason=reason,
            message=text,
        )
        reporter.event(pod.namespace, pod.name, event)

    return Tell(
        killing=lambda: send("Normal", "Killing", killing),
        hook_failed=lambda text: send("Warning", "FailedPreStopHook", text),
    )
