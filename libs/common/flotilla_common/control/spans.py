"""Passes and writes as spans in the trace of the change that they follow from."""

from datetime import datetime

from flotilla_common.control.plan import Action, Outcome, Patch, Plan
from flotilla_common.control.subject import Subject
from flotilla_common.tracing.context import Span, SpanContext, change


def pass_context(subject: Subject, trace: str) -> SpanContext:
    """Of the pass `trace` over an object: below the change that made the generation which is planned."""
    return change(subject.uid, subject.generation).child(trace)


def write_context(subject: Subject, trace: str, action: Action) -> SpanContext:
    """Of one write of the pass. No pass does the same to the same object twice."""
    names = (action.verb, action.resource.plural, _part(action), action.namespace, action.name)
    return pass_context(subject, trace).child(*names)


def pass_span(subject: Subject, trace: str, plan: Plan, start: datetime, end: datetime) -> Span:
    """A pass that is over, with the reasons that it gave."""
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


def write_span(subject: Subject, trace: str, action: Action, outcome: Outcome, start: datetime, end: datetime) -> Span:
    """A write that was answered, or given up."""
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


def about(subject: Subject) -> dict[str, str | int | float | list[str]]:
    """The attributes that name an object."""
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
