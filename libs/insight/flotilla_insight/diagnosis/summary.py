"""Makes one sentence of all findings: the most urgent one (pure)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.plan import Reason, State
from flotilla_insight.planning import Planning
from flotilla_insight.pods.findings import Findings
from flotilla_insight.published import Why


class VerdictKind(StrEnum):
    """The kind of state that the sentence describes."""

    STUCK = "stuck"  # a person has to act
    UNSTABLE = "unstable"  # complete, but likely to fail
    ON_HOLD = "on hold"  # as the spec demands
    WAITING = "waiting"  # for something that comes by itself
    PROGRESSING = "progressing"  # its service is at work on it
    DONE = "done"


STYLES = {VerdictKind.STUCK: "bold red", VerdictKind.UNSTABLE: "bold red", VerdictKind.DONE: "bold green"}
"""Styles of the kinds that are not yellow."""

_UNDER_WAY = {State.WAITING: VerdictKind.WAITING, State.PROGRESSING: VerdictKind.PROGRESSING}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The sentence, and the causes that were found."""

    kind: VerdictKind
    sentence: str
    causes: tuple[Reason, ...] = ()  # of pods and nodes, not from the service

    @property
    def line(self) -> str:
        """Return the first line of `explain`."""
        return f"{self.kind}: {self.sentence}"


def verdict(
    meta: ObjectMeta,
    why: Why | None,
    findings: Findings,
    planning: Planning,
    computed: Sequence[Reason] = (),
    parts: Sequence[Why] = (),
) -> Verdict:
    """Return the gravest finding.

    `computed`: reasons from its status, for lack of a record; `parts`: records of the objects that it waits for.
    """
    kind, sentence = next(_sentences(meta, why, findings, planning, computed, parts))
    causes = tuple(group.reason for group in (*findings.groups, *findings.unstable))
    return Verdict(kind=kind, sentence=sentence, causes=causes)


def _sentences(
    meta: ObjectMeta,
    why: Why | None,
    findings: Findings,
    planning: Planning,
    computed: Sequence[Reason],
    parts: Sequence[Why],
) -> Iterator[tuple[VerdictKind, str]]:
    """Yield the sentences, the gravest first."""
    given = why.reasons if why is not None and why.uid == meta.uid else computed
    reasons = [one for one in given if one.code not in findings.codes]  # pods have more detail
    stuck = [one for one in reasons if one.state is State.STUCK]
    if meta.deletion_timestamp is not None and meta.finalizers:
        yield VerdictKind.STUCK, f"it is being deleted, held by finalizer {', '.join(meta.finalizers)}"
    if planning.behind and planning.nobody:
        yield VerdictKind.STUCK, f"{planning.nobody}; {planning.behind}"
    yield from ((VerdictKind.STUCK, one.message) for one in stuck if not one.symptom)
    yield from ((VerdictKind.STUCK, group.sentence) for group in findings.groups if group.cause.stuck)
    if planning.nobody:
        yield VerdictKind.STUCK, planning.nobody
    for part in parts:
        grave = (one for one in part.reasons if one.state is State.STUCK)
        yield from ((VerdictKind.STUCK, f"{part.kind} {part.name}: {one.message}") for one in grave)
    yield from ((VerdictKind.STUCK, one.message) for one in stuck)
    yield from ((VerdictKind.UNSTABLE, group.sentence) for group in findings.unstable)
    if planning.behind:
        yield VerdictKind.WAITING, planning.behind
    yield from ((VerdictKind.ON_HOLD, one.message) for one in reasons if one.state is State.HELD)
    yield from ((VerdictKind.WAITING, group.sentence) for group in findings.groups)
    yield from ((_UNDER_WAY[one.state], one.message) for one in reasons if one.state in _UNDER_WAY)
    done = "; ".join(one.message for one in reasons if one.state is State.DONE)
    yield VerdictKind.DONE, done or "nothing to wait for"
