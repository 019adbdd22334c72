"""Publishes decisions about budgets: events, a metric, the protection log, records on the bus.

See podunavailablebudget.md §10.
"""

from collections.abc import Callable

import msgspec

from flotilla_common.api.documents import text
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.api.resources import POD
from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Admission, Journal
from flotilla_common.control.objectref import ObjectRef
from flotilla_common.control.plan import Event
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.pod_checks import PodChange

COMPONENT = "pub-controller"
PREVENTED = Event("PubPreventPodDeletion", "openkruise pub prevents pod deletion", warning=True)


class BudgetRecords(msgspec.Struct, frozen=True):
    """The outputs for units that were taken, and for requests that found none. No method waits."""

    journal: Journal
    events: Recorder
    metrics: Metrics
    log: Callable[[bytes], None]
    """Appends a line to the protection log."""

    def taken(self, change: PodChange, pod: ObjectMeta, budget: str, seconds: float) -> None:
        """Record that a unit was taken; `seconds` is the duration of the answer."""
        self.metrics.budget_requests.labels(change.operation.lower(), "taken").inc()
        self._publish(change, pod, budget, "", seconds)

    def refused(self, change: PodChange, pod: ObjectMeta, budget: str, message: str, seconds: float) -> None:
        """Record a request that was refused because there was no unit; `seconds` is the duration of the answer."""
        user = change.request.user_info.username
        self._publish(change, pod, budget, message, seconds)
        self.events.record(ObjectRef.of(POD, pod), PREVENTED)
        self.metrics.budget_requests.labels(change.operation.lower(), "refused").inc()
        self.metrics.budgets.count(_series(pod), user)
        line = {
            "Event": "PodUnavailableBudget",
            "Kind": POD.kind,
            "Namespace": change.namespace,
            "Name": pod.name,
            "UserAgent": user,
        }
        self.log(msgspec.json.encode(line))

    def _publish(self, change: PodChange, pod: ObjectMeta, budget: str, refusal: str, seconds: float) -> None:
        options = change.request.options or {}
        self.journal.admitted(
            POD,
            Admission(
                action=change.operation.lower(),
                namespace=change.namespace,
                name=pod.name,
                uid=pod.uid,
                generation=0,
                user=change.request.user_info.username,
                manager=text(options.get("fieldManager")),
                changes=[],
                refusal=refusal,
                seconds=seconds,
                owner=ObjectRef(POD_UNAVAILABLE_BUDGET, change.namespace, budget),
            ),
        )


def _series(pod: ObjectMeta) -> str:
    """Return the value of the metric's label: the workload of the pod, or the pod itself if it has none."""
    owner, namespace = controller_of(pod), pod.namespace or "default"
    return f"unknown_{namespace}_{pod.name}" if owner is None else f"{owner.kind}_{namespace}_{owner.name}"
