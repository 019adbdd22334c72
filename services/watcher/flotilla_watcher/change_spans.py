"""Begins traces: the watcher is the first to see that the spec of an object has changed.

Only our kinds have traces: changes of their pods follow from them, and are recorded by the controllers.
"""

from datetime import datetime

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.clock import Clock
from flotilla_common.kube.reflector import HeadMeta
from flotilla_common.tracing.context import Span, Tracer, change


class ChangeSpans:
    """Records changes and publications of one resource's objects."""

    def __init__(self, resource: Resource, clock: Clock, tracer: Tracer | None) -> None:
        self._resource = resource
        self._clock = clock
        self._tracer = tracer if resource.custom else None

    def published(self, before: HeadMeta | None, op: str, head: HeadMeta, began: datetime) -> None:
        """Record that a version was published.

        `before` is the last known head of the object: another generation makes this version the root of a trace.
        """
        if self._tracer is None or op == subjects.DELETED:
            return
        root, end = change(head.uid, head.generation), self._clock.now()
        attributes: dict[str, str | int | float | list[str]] = {
            "k8s.namespace.name": head.namespace,
            "k8s.object.kind": self._resource.kind,
            "k8s.object.name": head.name,
            "k8s.object.uid": head.uid,
            "k8s.object.generation": head.generation,
            "k8s.object.resource_version": head.resource_version,
        }
        kind = self._resource.kind
        if before is None or (before.uid, before.generation) != (head.uid, head.generation):
            span = Span(name=f"change {kind}", context=root, parent=None, start=began, end=end, attributes=attributes)
            self._tracer.record(span)
        version = root.version(head.resource_version)
        span = Span(name=f"publish {kind}", context=version, parent=root, start=began, end=end, attributes=attributes)
        self._tracer.record(span)
