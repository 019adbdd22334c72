"""Why a workload is as it is: a sentence, with its evidence and the next moment at which something happens."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from flotilla_common.api.meta import rfc3339
from flotilla_common.control.plan import Reason
from flotilla_common.control.plan import State as ReasonState
from flotilla_console import paths
from flotilla_console.blocks.types import (
    Age,
    AnyBlock,
    Badge,
    Facts,
    Group,
    Link,
    Notice,
    Paragraph,
    Row,
    Span,
    Spans,
    Tone,
    spans,
)
from flotilla_console.model.reading import Verdict
from flotilla_console.model.reasons import Reasons
from flotilla_console.model.sight import Sight
from flotilla_console.model.workload import Workload
from flotilla_console.pages.parts import TONES, commas, facts, state_badge, whole_table

MOST_NAMES = 10
"""Objects that are named for a reason."""

_REASON_TONES: Mapping[ReasonState, Tone] = {
    ReasonState.STUCK: "bad",
    ReasonState.HELD: "warn",
    ReasonState.WAITING: "busy",
    ReasonState.PROGRESSING: "busy",
    ReasonState.DONE: "ok",
    ReasonState.NOTE: "idle",
}


def why_blocks(sight: Sight, one: Workload, now: datetime) -> Iterator[AnyBlock]:
    """Yield why the workload is as it is, in one sentence, with its evidence."""
    verdict, why = one.verdict, sight.reason(one)
    sentence = verdict.text or ("nothing is left to do" if verdict.state == "fine" else "")
    code = spans(" ", Badge(verdict.code, TONES[verdict.state])) if verdict.code else ()
    yield Notice(TONES[verdict.state], (*spans(state_badge(one), " ", sentence), *code))
    if why is None:
        if one.kind.resource.custom:
            yield Paragraph(spans("The bus has no reasons of its service: this is derived from the object's status."))
        return
    if why.generation < one.metadata.generation:
        yield Paragraph(
            spans(f"The last reasons are about generation {why.generation}, not {one.metadata.generation}.")
        )
    yield Paragraph(_moments(why, now))
    if not _says_all(one.verdict, why):
        yield whole_table("reasons", "Reasons", _REASON_COLUMNS, _reason_rows(sight, one, why))
    if why.numbers:
        yield Group("numbers", spans("Numbers behind the decision"), (Facts(facts(*_number_facts(why))),), open=False)


def _says_all(verdict: Verdict, why: Reasons) -> bool:
    """Report whether the sentence has all that a table of the reasons would show."""
    if why.errors or len(why.reasons) > 1:
        return False
    said = verdict.code, verdict.text
    return all((reason.code, reason.message) == said and not reason.objects for reason in why.reasons)


_REASON_COLUMNS = ("state", "State"), ("code", "Code"), ("message", "Reason"), ("objects", "Objects")


def _moments(why: Reasons, now: datetime) -> Spans:
    """Return when the decision was made, and when the next one is due at the latest."""
    decided: Spans = spans("Decided ", Age(why.at.timestamp()), " ago") if why.at is not None else ()
    by = spans(f" by {why.service}") if decided and why.service else ()
    if why.wake_at is None:
        return (*decided, *by, *spans(". It is planned again when something changes."))
    due = f"planned again at {rfc3339(why.wake_at)}" if why.wake_at > now else "due to be planned again now"
    return (*decided, *by, *spans(f". It is {due}, or when something changes."))


def _reason_rows(sight: Sight, one: Workload, why: Reasons) -> tuple[Row, ...]:
    rows = [
        Row(
            key=f"{index}/{reason.code}",
            cells=(
                spans(Badge(reason.state.value, _REASON_TONES[reason.state])),
                spans(reason.code),
                spans(reason.message),
                _objects(sight, one, reason),
            ),
            tone=_REASON_TONES[reason.state],
        )
        for index, reason in enumerate(why.by_severity)
    ]
    failures = [
        Row(
            key=f"error/{index}",
            cells=(spans(Badge("error", "bad")), spans(failure.phase), spans(failure.message), ()),
            tone="bad",
        )
        for index, failure in enumerate(why.errors)
    ]
    return (*failures, *rows)


def _objects(sight: Sight, one: Workload, reason: Reason) -> Spans:
    """Return the objects of a reason; links to those that are pods."""
    pieces: list[Span | str] = [_object(sight, one, name) for name in reason.objects[:MOST_NAMES]]
    more = len(reason.objects) - MOST_NAMES
    return commas([*pieces, f"{more} more"] if more > 0 else pieces)


def _object(sight: Sight, one: Workload, name: str) -> Span | str:
    namespace, _, bare = name.rpartition("/")
    pod = sight.pod(namespace or one.namespace, bare)
    return name if pod is None else Link(name, paths.pod(*pod.metadata.key))


def _number_facts(why: Reasons) -> Iterator[tuple[str, str]]:
    for name, value in why.numbers.items():
        yield name, str(value)
