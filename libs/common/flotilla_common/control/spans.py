"""Spans of passes and writes in the trace of the change that caused them."""

from datetime import datetime

from flotilla_common.control.objectref import ObjectRef
from flotilla_common.control.plan import Action, Outcome, Patch, Plan
from flotilla_common.tracing.context import Span, SpanContext, change


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
