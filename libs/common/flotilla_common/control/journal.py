"""Publishes writes and the reasons for them: `act.v1` for writes of services and of users, `why.v1` for plans.

Both are for people and tools (`flotilla tail`, `explain`). No decision depends on them, so they are published without
waiting, and only the record is incomplete while the bus is down. Both name their span in the trace of the change that
caused them, and where a collector is configured the spans go there, too.
"""

from collections import Counter
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock
from flotilla_common.control.metrics import WriteMetrics
from flotilla_common.control.plan import Action, Create, Delete, Json, ObjectRef, Outcome, Patch, Plan
from flotilla_common.tracing.context import Span, SpanContext, Tracer, change


def pass_context(subject: ObjectRef, trace: str) -> SpanContext:
    """Return the context of the pass `trace` over an object: a child of the change to its generation."""
    return change(subject.uid, subject.generation).child(trace)


def write_context(subject: ObjectRef, trace: str, action: Action) -> SpanContext:
    """Return the context of one write, unique because no pass does the same to the same object twice."""
    names = (action.verb, action.resource.plural, _part(action), action.namespace, action.name)
    return pass_context(subject, trace).child(*names)


def pass_span(subject: ObjectRef, trace: str, plan: Plan, start: datetime, end: datetime) -> Span:
    """Return the span of a finished pass, with its reasons."""
    return Span(
        name=f"plan {subject.resource.kind}",
        context=pass_context(subject, trace),
        parent=change(subject.uid, subject.generation),
        start=start,
        end=end,
        attributes={
            **about(subject),
            "flotilla.pass": trace,
            "flotilla.reasons": [reason.sentence for reason in plan.reasons],
            "flotilla.reason.codes": [reason.code for reason in plan.reasons],
            "flotilla.writes": len(plan.actions),
        },
        error="; ".join(text for _, text in plan.errors),
    )


def write_span(
    subject: ObjectRef, trace: str, action: Action, outcome: Outcome, start: datetime, end: datetime
) -> Span:
    """Return the span of a write that got a response, or timed out."""
    part = _part(action)
    return Span(
        name=f"{action.verb} {action.resource.kind}{f'/{part}' if part else ''}",
        context=write_context(subject, trace, action),
        parent=pass_context(subject, trace),
        start=start,
        end=end,
        attributes={
            "k8s.namespace.name": action.namespace,
            "k8s.object.kind": action.resource.kind,
            "k8s.object.name": action.name,
            "k8s.object.resource_version": outcome.version,
            "flotilla.intent": action.intent.value,
            "flotilla.cause": action.cause,
            "flotilla.revision": action.revision,
            "flotilla.outcome": outcome.kind.value,
        },
        error="" if outcome.ok else outcome.message or outcome.kind.value,
    )


def about(subject: ObjectRef) -> dict[str, str | int | float | list[str]]:
    """Return the attributes that identify an object."""
    return {
        "k8s.namespace.name": subject.namespace,
        "k8s.object.kind": subject.resource.kind,
        "k8s.object.name": subject.name,
        "k8s.object.uid": subject.uid,
        "k8s.object.generation": subject.generation,
        "k8s.object.resource_version": subject.resource_version,
    }


def _part(action: Action) -> str:
    return action.subresource if isinstance(action, Patch) else ""


MOST_PODS = 10
"""Most pods that a record names, for a write on another object that concerns pods."""


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """A user's write, as the webhook saw it before it was stored."""

    action: str  # create, update or delete
    namespace: str
    name: str
    uid: str
    generation: int  # the object's generation after the write; 0 if there is none
    user: str
    manager: str  # the field manager
    changes: list[Json]  # `redacted_changes`
    refusal: str = ""  # the text, if it was refused
    seconds: float = 0.0  # time until the response
    owner: ObjectRef | None = None  # the object whose rules were checked, if that is another


def admission_context(admission: Admission) -> SpanContext:
    """Return the span context of an admission, a child of the change that it becomes."""
    return change(admission.uid, admission.generation).child("admit", admission.user)


def admission_span(resource: Resource, admission: Admission, start: datetime, end: datetime) -> Span:
    """Return the span of an admission response, with the user; a write without a new generation has no parent."""
    becomes = admission.generation and not admission.refusal
    return Span(
        name=f"admit {resource.kind}",
        context=admission_context(admission),
        parent=change(admission.uid, admission.generation) if becomes else None,
        start=start,
        end=end,
        attributes={
            "k8s.namespace.name": admission.namespace,
            "k8s.object.kind": resource.kind,
            "k8s.object.name": admission.name,
            "k8s.object.uid": admission.uid,
            "k8s.object.generation": admission.generation,
            "flotilla.action": admission.action,
            "user.name": admission.user,
            "flotilla.field.manager": admission.manager,
            "flotilla.changed": [str(one["path"]) for one in admission.changes],
        },
        error=admission.refusal,
    )


def rfc3339(clock: Clock) -> str:
    """Return the wall time with milliseconds."""
    return clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Journal:
    """A publisher of the writes and reasons of one service replica."""

    def __init__(self, bus: Bus, clock: Clock, service: str, replica: str, tracer: Tracer | None = None) -> None:
        """Publish to the bus, and to `tracer` if spans are collected."""
        self._bus = bus
        self._clock = clock
        self._service = service
        self._replica = replica
        self._tracer = tracer
        self._writes = WriteMetrics(service)
        self._sent = 0

    def act(self, subject: ObjectRef, action: Action, outcome: Outcome, *, latency: float, trace: str) -> None:
        """Publish a write and its outcome. `latency` is in seconds."""
        self._writes.count(action.resource.kind, action.verb, outcome.kind.value)
        message: Json = {
            "at": rfc3339(self._clock),
            "service": self._service,
            "replica": self._replica,
            "sequence": self._next(),
            "trace": trace,
            "traceparent": write_context(subject, trace, action).traceparent,
            "action": action.verb,
            "subresource": action.subresource if isinstance(action, Patch) else "",
            "kind": action.resource.kind,
            "namespace": action.namespace,
            "name": action.name,
            "owner": {"kind": subject.resource.kind, "namespace": subject.namespace, "name": subject.name},
            "intent": action.intent,
            "cause": action.cause,
            "revision": action.revision,
            "pods": action.pods[:MOST_PODS],
            "outcome": outcome.kind.value,
            "message": outcome.message,
            "latencyMs": round(latency * 1000, 1),
            "resourceVersion": outcome.version,
        }
        subject_name = subjects.act(self._service, action.resource, action.namespace, action.name)
        self._bus.publish_soon(subject_name, msgspec.json.encode(message))
        if self._tracer is not None:
            end = self._clock.now()
            start = end - timedelta(seconds=latency)
            self._tracer.record(write_span(subject, trace, action, outcome, start, end))

    def admitted(self, resource: Resource, admission: Admission) -> None:
        """Publish a user's write, admitted or refused."""
        owner = admission.owner or ObjectRef(resource, admission.namespace, admission.name)
        message: Json = {
            "at": rfc3339(self._clock),
            "service": self._service,
            "replica": self._replica,
            "sequence": self._next(),
            "traceparent": admission_context(admission).traceparent,
            "action": admission.action,
            "subresource": "",
            "kind": resource.kind,
            "namespace": admission.namespace,
            "name": admission.name,
            "uid": admission.uid,
            "owner": {"kind": owner.resource.kind, "namespace": owner.namespace, "name": owner.name},
            "generation": admission.generation,
            "user": admission.user,
            "manager": admission.manager,
            "changes": admission.changes,
            "outcome": "Denied" if admission.refusal else "Ok",
            "message": admission.refusal,
        }
        subject_name = subjects.act(self._service, resource, admission.namespace, admission.name)
        self._bus.publish_soon(subject_name, msgspec.json.encode(message))
        if self._tracer is not None:
            end = self._clock.now()
            self._tracer.record(admission_span(resource, admission, end - timedelta(seconds=admission.seconds), end))

    def why(self, subject: ObjectRef, plan: Plan, *, trace: str) -> None:
        """Publish the reasons, numbers and size of the last plan."""
        message: Json = {
            "kind": subject.resource.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
            "resourceVersion": subject.resource_version,
            "generation": subject.generation,
            "at": rfc3339(self._clock),
            "service": self._service,
            "replica": self._replica,
            "sequence": self._next(),
            "trace": trace,
            "traceparent": pass_context(subject, trace).traceparent,
            "reasons": plan.reasons,
            "numbers": plan.numbers,
            "actions": _count(plan),
            "wakeAt": plan.wake_at,
            "errors": [{"phase": phase, "message": text} for phase, text in plan.errors],
        }
        self._bus.publish_soon(
            subjects.why(subject.resource, subject.namespace, subject.name), msgspec.json.encode(message)
        )

    def passed(self, subject: ObjectRef, plan: Plan, *, trace: str, began: datetime) -> None:
        """Record the span of a pass that decided or wrote something; for traces only."""
        if self._tracer is not None:
            self._tracer.record(pass_span(subject, trace, plan, began, self._clock.now()))

    def _next(self) -> int:
        """Return the number of the next message: readers of several subjects may receive them in another order."""
        self._sent += 1
        return self._sent


def _count(plan: Plan) -> dict[str, int]:
    planned = Counter(action.verb for action in plan.actions)
    return {kind.verb: planned[kind.verb] for kind in (Create, Patch, Delete)}
