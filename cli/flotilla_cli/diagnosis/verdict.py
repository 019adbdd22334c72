"""One sentence that says what has to be done, out of all that is known (pure)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from flotilla_cli.diagnosis.findings import Findings
from flotilla_cli.diagnosis.planning import Planning
from flotilla_cli.published import Why
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.plan import Reason, State


class Word(StrEnum):
    """What kind of state the sentence tells of."""

    STUCK = "stuck"  # somebody has to do something
    UNSTABLE = "unstable"  # all is there, but not for long
    ON_HOLD = "on hold"  # the spec wants it so
    WAITING = "waiting"  # for something that comes by itself
    PROGRESSING = "progressing"  # its service is at work on it
    DONE = "done"


STYLES = {Word.STUCK: "bold red", Word.UNSTABLE: "bold red", Word.DONE: "bold green"}
"""Style of the words that are not yellow."""

_UNDER_WAY = {State.WAITING: Word.WAITING, State.PROGRESSING: Word.PROGRESSING}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The sentence, and what else was found."""

    word: Word
    sentence: str
    causes: tuple[Reason, ...] = ()  # of pods and nodes, as found from outside

    @property
    def line(self) -> str:
        """What `explain` begins with."""
        return f"{self.word}: {self.sentence}"


def verdict(
    meta: ObjectMeta,
    why: Why | None,
    findings: Findings,
    planning: Planning,
    told: Sequence[Reason] = (),
    parts: Sequence[Why] = (),
) -> Verdict:
    """Return what is gravest. `told`: what the object itself says, for when there is no record of it; `parts`: the
    records of the objects that it waits for."""
    word, sentence = next(_sentences(meta, why, findings, planning, told, parts))
    causes = tuple(group.reason for group in (*findings.groups, *findings.unstable))
    return Verdict(word=word, sentence=sentence, causes=causes)


def _sentences(
    meta: ObjectMeta,
    why: Why | None,
    findings: Findings,
    planning: Planning,
    told: Sequence[Reason],
    parts: Sequence[Why],
) -> Iterator[tuple[Word, str]]:
    """The gravest first."""
    given = why.reasons if why is not None and why.uid == meta.uid else told
    reasons = [one for one in given if one.code not in findings.codes]  # pods say more of themselves
    stuck = [one for one in reasons if one.state is State.STUCK]
    if meta.deletion_timestamp is not None and meta.finalizers:
        yield Word.STUCK, f"it is being deleted, held by finalizer {', '.join(meta.finalizers)}"
    if planning.behind and planning.nobody:
        yield Word.STUCK, f"{planning.nobody}; {planning.behind}"
    yield from ((Word.STUCK, one.message) for one in stuck if not one.symptom)
    yield from ((Word.STUCK, group.sentence) for group in findings.groups if group.cause.stuck)
    if planning.nobody:
        yield Word.STUCK, planning.nobody
    for part in parts:
        grave = (one for one in part.reasons if one.state is State.STUCK)
        yield from ((Word.STUCK, f"{part.kind} {part.name}: {one.message}") for one in grave)
    yield from ((Word.STUCK, one.message) for one in stuck)
    yield from ((Word.UNSTABLE, group.sentence) for group in findings.unstable)
    if planning.behind:
        yield Word.WAITING, planning.behind
    yield from ((Word.ON_HOLD, one.message) for one in reasons if one.state is State.HELD)
    yield from ((Word.WAITING, group.sentence) for group in findings.groups)
    yield from ((_UNDER_WAY[one.state], one.message) for one in reasons if one.state in _UNDER_WAY)
    done = "; ".join(one.message for one in reasons if one.state is State.DONE)
    yield Word.DONE, done or "nothing to wait for"
