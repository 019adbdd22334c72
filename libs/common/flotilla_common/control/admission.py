"""A user's write as the webhook sees it, for the record and for traces."""

from datetime import datetime

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json
from flotilla_common.tracing.context import SpanContext, change
from flotilla_common.tracing.span import Span


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """A user's write, as the webhook saw it before it was stored."""

    action: str  # create, update or delete
    namespace: str
    name: str
    uid: str
    generation: int  # that the object has after the write; 0 where there is none
    user: str
    manager: str  # the field manager
    changes: list[Json]  # `discreet.told_changes`
    refusal: str = ""  # the text, if it was refused
    seconds: float = 0.0  # that the answer took


def admission_context(admission: Admission) -> SpanContext:
    """Its place below the change that it becomes."""
    return change(admission.uid, admission.generation).child("admit", admission.user)


def admission_span(resource: Resource, admission: Admission, start: datetime, end: datetime) -> Span:
    """The answer to the apiserver, with who asked. What becomes no generation stands alone."""
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
