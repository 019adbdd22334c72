"""The spans of a change: the change itself, its publication, the passes, their writes."""

from datetime import timedelta

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.control import journal
from flotilla_common.control.journal import Admission, Journal
from flotilla_common.control.plan import (
    Create,
    Delete,
    Intent,
    ObjectRef,
    Outcome,
    OutcomeKind,
    Patch,
    Plan,
    Reason,
    State,
)
from flotilla_common.kube.reflector import HeadMeta
from flotilla_common.tracing.context import SpanContext, change
from flotilla_watcher.publisher import ChangeSpans
from tests.support.fake_clock import FakeClock
from tests.unit.control.fakes import SilentBus
from tests.unit.tracing.collecting import Collected

SUBJECT = ObjectRef(CLONE_SET, "default", "web", "u1", "812", 7)
ROOT = change("u1", 7)
PATCH = Patch(
    resource=POD,
    namespace="default",
    name="web-1",
    intent=Intent.IN_PLACE_UPDATE,
    cause="new image",
    revision="web-2",
    body={},
)


def published(resource: Resource, before: HeadMeta | None, op: str, head: HeadMeta) -> list[str]:
    clock, tracer = FakeClock(), Collected()
    ChangeSpans(resource, clock, tracer).published(before, op, head, clock.now())
    return [span.name for span in tracer.spans]


HEAD = HeadMeta(name="web", namespace="default", uid="u1", resource_version="812", generation=7)


@pytest.mark.parametrize(
    ("resource", "before", "op", "names"),
    [
        (CLONE_SET, None, subjects.ADDED, ["change CloneSet", "publish CloneSet"]),
        (CLONE_SET, HeadMeta(uid="u1", generation=6), subjects.MODIFIED, ["change CloneSet", "publish CloneSet"]),
        (CLONE_SET, HeadMeta(uid="u1", generation=7), subjects.MODIFIED, ["publish CloneSet"]),  # its status
        (CLONE_SET, HeadMeta(uid="u0", generation=7), subjects.ADDED, ["change CloneSet", "publish CloneSet"]),
        (CLONE_SET, HEAD, subjects.DELETED, []),
        (POD, None, subjects.ADDED, []),
    ],
)
def test_the_watcher_begins_a_trace_when_a_spec_changed(
    resource: Resource, before: HeadMeta | None, op: str, names: list[str]
) -> None:
    assert published(resource, before, op, HEAD) == names


def test_what_was_published_is_the_span_that_the_message_names() -> None:
    clock, tracer = FakeClock(), Collected()
    ChangeSpans(CLONE_SET, clock, tracer).published(None, subjects.ADDED, HEAD, clock.now())
    root, published_span = tracer.spans
    assert (root.context, root.parent) == (ROOT, None)
    assert (published_span.context, published_span.parent) == (ROOT.version("812"), ROOT)


def test_without_a_collector_nothing_is_recorded() -> None:
    clock = FakeClock()
    ChangeSpans(CLONE_SET, clock, None).published(None, subjects.ADDED, HEAD, clock.now())


def test_a_write_stands_below_its_pass_and_the_pass_below_the_change() -> None:
    tracer, clock = Collected(), FakeClock()
    clock.time = 5
    journal = Journal(SilentBus(), clock, "cloneset", "r1", tracer)
    plan = Plan(reasons=(Reason(State.PROGRESSING, "Updating", "updating 1 pod"),))
    outcome = Outcome(kind=OutcomeKind.DENIED, message="exceeded quota", version="9")
    began = clock.now() - timedelta(seconds=2)
    journal.act(SUBJECT, PATCH, outcome, latency=0.5, trace="t1")
    journal.passed(SUBJECT, plan, trace="t1", began=began)
    write, whole = tracer.spans
    assert (whole.name, whole.parent, whole.start, whole.end) == ("plan CloneSet", ROOT, began, clock.now())
    assert whole.attributes["flotilla.reasons"] == ["updating 1 pod"]
    assert (write.name, write.parent, write.error) == ("patch Pod", whole.context, "exceeded quota")
    assert write.end - write.start == timedelta(seconds=0.5)
    assert write.attributes["flotilla.intent"] == "in-place update"
    assert (write.attributes["flotilla.cause"], write.attributes["flotilla.revision"]) == ("new image", "web-2")


@pytest.mark.parametrize(
    ("generation", "refusal", "parent"), [(7, "", ROOT), (7, "spec.replicas: Required value", None), (0, "", None)]
)
def test_an_admission_stands_below_the_change_that_it_becomes(
    generation: int, refusal: str, parent: SpanContext | None
) -> None:
    tracer, clock = Collected(), FakeClock()
    Journal(SilentBus(), clock, "webhook", "r1", tracer).admitted(
        CLONE_SET,
        Admission(
            action="update",
            namespace="default",
            name="web",
            uid="u1",
            generation=generation,
            user="jane",
            manager="kubectl",
            changes=[{"path": "spec.replicas"}],
            refusal=refusal,
            seconds=0.25,
        ),
    )
    (span,) = tracer.spans
    assert (span.name, span.parent, span.error) == ("admit CloneSet", parent, refusal)
    assert span.end - span.start == timedelta(seconds=0.25)
    assert span.attributes["user.name"] == "jane"


def test_no_two_writes_of_a_pass_share_a_span() -> None:
    status = Patch(
        resource=POD, namespace="default", name="web-1", intent=Intent.UPDATE, cause="", body={}, subresource="status"
    )
    delete = Delete(resource=POD, namespace="default", name="web-1", intent=Intent.DELETE, cause="", uid="u")
    create = Create(resource=POD, namespace="default", name="web-1", intent=Intent.CREATE, cause="", body={})
    other = Patch(resource=POD, namespace="default", name="web-2", intent=Intent.UPDATE, cause="", body={})
    actions = (PATCH, status, delete, create, other)
    assert len({journal.write_context(SUBJECT, "t1", action).span_id for action in actions}) == len(actions)
    assert journal.write_context(SUBJECT, "t1", PATCH) != journal.write_context(SUBJECT, "t2", PATCH)
