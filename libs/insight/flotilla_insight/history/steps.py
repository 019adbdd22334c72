"""The lines of a history: decisions, waves of writes, waits, rejections, the end.

A rollout of fifty pods is a hundred decisions and a hundred and fifty writes. So writes are combined into waves, a
reason that comes and goes into one wait with its total time, rejections of one kind into one line with their number.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.changes import change_text
from flotilla_common.control.plan import State
from flotilla_common.control.text import named
from flotilla_common.control.writes import WRITE_FAILED, code_of
from flotilla_insight.history.generations import WEBHOOK
from flotilla_insight.history.operations import Operation, OperationWave, Work
from flotilla_insight.published import Act, Why

WISHED = ("replicas", "partition", "maxUnavailable", "maxSurge")
"""Numbers of a decision that come from the spec."""

_NOISE = "last-applied-configuration"
_WORK = (State.PROGRESSING, State.DONE)
_OVER = (State.DONE, State.NOTE)

LASTING = (State.STUCK, State.HELD, State.WAITING)
"""States of reasons that held the object up."""

PAUSE = timedelta(seconds=5)
"""Time between uses of an object after which they are separate steps."""

Key = tuple[str, int]
"""Identity of a wait: the code, and the index among the reasons of this code in one decision."""


class TimelineStep(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a history. `tone`: decision, write, wait, bad, note or end."""

    at: datetime
    tone: str
    text: str


def who(write: Act) -> str:
    """Return the user, and the manager."""
    return f"{write.user} with {write.manager}" if write.manager else write.user


def changed(write: Act) -> list[str]:
    """Return the fields that a user changed."""
    return [change_text(change) for change in write.changes if _NOISE not in str(change.get("path"))]


def first_step(decisions: Sequence[Why]) -> Iterable[TimelineStep]:
    """Yield the first decision with its numbers and work. Waits are steps of their own."""
    first = next((one for one in decisions if one.at is not None), None)
    if first is not None and first.at is not None:
        numbers = ", ".join(f"{name} {first.numbers[name]}" for name in WISHED if name in first.numbers)
        work = [reason.message for reason in first.reasons if reason.state in _WORK]
        text = f"decided{f' ({numbers})' if numbers else ''}{': ' if work else ''}{'; '.join(work)}"
        yield TimelineStep(at=first.at, tone="decision", text=text)


def wave_steps(found: Sequence[OperationWave]) -> Iterable[TimelineStep]:
    """Yield a step for each wave, with the progress if there are several of a kind."""
    totals, sofar = Counter[Work](), Counter[Work]()
    for wave in found:
        totals[wave.work] += len(wave.operations)
    for wave in found:
        work, count = wave.work, len(wave.operations)
        sofar[work] += count
        noun = work[0].lower()
        several = totals[work] > count
        many = f"{count} {noun}{'s' if count > 1 else ''}" if count > 1 or several else ""
        many += f", {sofar[work]} of {totals[work]}" if several else ""
        yield TimelineStep(at=wave.began, tone="write", text=_wave(wave, f" ({many})" if many else ""))


def _wave(wave: OperationWave, many: str) -> str:
    (kind, *_), lasting = wave.work, [one for one in wave.operations if one.lasts]
    whole = f"; {_until_whole(lasting)}" if lasting else ""
    what = wave.cause if kind == "Pod" else f"{kind}: {wave.cause}"
    return f"{what}: {named([one.begin.name for one in wave.operations])}{many}{whole}"


def _until_whole(lasting: Sequence[Operation]) -> str:
    whole = "done" if lasting[0].updates_in_place else "ready"
    took = sorted(one.seconds for one in lasting if one.seconds is not None)
    if not took:
        return f"not {whole} yet"
    low, high = f"{took[0]:.1f}", f"{took[-1]:.1f}"
    missing = f", {len(lasting) - len(took)} not yet" if len(took) < len(lasting) else ""
    return f"{whole} after {low if low == high else f'{low}-{high}'} s{missing}"


class Wait(msgspec.Struct, kw_only=True):
    """A reason: its beginning, total time, number of occurrences, and last text."""

    code: str
    message: str
    began: datetime
    seconds: float = 0
    times: int = 0
    bad: bool = False  # a failure, not something to wait for


def waits(decisions: Sequence[Why], until: datetime) -> list[Wait]:
    """Return all reasons to wait in order of appearance.

    A decision holds until the next one, the last one `until` the end.
    """
    found: dict[Key, Wait] = {}
    held: set[Key] = set()  # reasons of the previous decision
    moments = [one.at for one in decisions if one.at is not None]
    for one, end in zip(decisions, [*moments[1:], until], strict=False):
        began = one.at or until
        now: set[Key] = set()
        for key, message, bad in _given(one):
            wait = found.setdefault(key, Wait(code=key[0], message=message, began=began, bad=bad))
            wait.message = message
            wait.seconds += max((end - began).total_seconds(), 0)
            wait.times += key not in held
            now.add(key)
        held = now
    return list(found.values())


def _given(one: Why) -> Iterator[tuple[Key, str, bool]]:
    """Yield the identity of each wait, its text, and whether it is a failure."""
    given = [(reason.code, reason.sentence, False) for reason in one.reasons if reason.state in LASTING]
    given += [(f"failed {error.phase}".rstrip(), error.message, True) for error in one.errors]
    seen = Counter[str]()
    for code, text, bad in given:
        yield (code, seen[code]), text, bad
        seen[code] += 1


def wait_step(wait: Wait) -> TimelineStep:
    """Return the step of a wait, with its total time and last text."""
    times = f" in {wait.times} parts" if wait.times > 1 else ""
    text = f"{wait.message}  [{wait.code}, {wait.seconds:.1f} s{times}]"
    return TimelineStep(at=wait.began, tone="bad" if wait.bad else "wait", text=text)


def refusal_steps(writes: Iterable[Act]) -> Iterable[TimelineStep]:
    """Yield the writes that failed, those of a kind together."""
    found: dict[tuple[str, str, str, str], list[Act]] = {}
    for write in writes:
        if not write.ok:
            code = code_of(write.message)
            why = write.message if code == WRITE_FAILED else code
            found.setdefault((write.outcome, write.action, write.kind, why), []).append(write)
    for (outcome, action, kind, _), those in found.items():
        names = named(list(dict.fromkeys(write.name for write in those)))
        times = f"{len(those)} times " if len(those) > 1 else ""
        said = f": {those[-1].message}" if those[-1].message else ""
        yield TimelineStep(at=those[0].at, tone="bad", text=f"{times}{outcome}: {action} {kind} {names}{said}")


def use_steps(uses: Iterable[Act]) -> Iterable[TimelineStep]:
    """Yield how others used the object, uses of a kind together unless there is a pause between them."""
    found: dict[tuple[bool, str], list[list[Act]]] = {}
    for use in uses:
        runs = found.setdefault((use.ok, _use(use)), [])
        if not runs or use.at - runs[-1][-1].at > PAUSE:
            runs.append([])
        runs[-1].append(use)
    for (is_ok, what), runs in found.items():
        for those in runs:
            yield _use_step(what, those, is_ok=is_ok)


def _use(use: Act) -> str:
    """Return the request and its user, or the owner and the cause of the write."""
    if use.service == WEBHOOK:
        return f"{use.action} by {who(use)}"
    return f"{use.owner.kind} {use.owner.name}: {use.cause}"


def _use_step(what: str, those: Sequence[Act], *, is_ok: bool) -> TimelineStep:
    first, last = those[0], those[-1]
    times = f"{len(those)} times " if len(those) > 1 else ""
    verdict = "" if first.service != WEBHOOK else "admitted: " if is_ok else "refused: "
    names = list(dict.fromkeys(name for use in those for name in (use.pods or (use.name,))))
    said = "" if is_ok else f": {last.outcome}: {last.message}" if not verdict else f": {last.message}"
    return TimelineStep(
        at=first.at, tone="write" if is_ok else "bad", text=f"{times}{verdict}{what}: {named(names)}{said}"
    )


def other_steps(user_writes: Iterable[Act]) -> Iterable[TimelineStep]:
    """Yield users' rejected requests, and their changes other than of the spec."""
    for write in user_writes:
        if not write.ok:
            yield TimelineStep(
                at=write.at,
                tone="bad",
                text=f"rejected {write.action} by {who(write)}: {write.message}",
            )
        elif fields := changed(write):
            yield TimelineStep(at=write.at, tone="note", text=f"changed by {who(write)}: {'; '.join(fields)}")


def done_at(decisions: Sequence[Why]) -> datetime | None:
    """Return since when nothing is left to do, or None."""
    done: datetime | None = None
    for one in decisions:
        over = not one.errors and all(reason.state in _OVER for reason in one.reasons)
        done = (done or one.at) if over else None
    return done


def end_step(decisions: Sequence[Why], done: datetime | None) -> Iterable[TimelineStep]:
    """Yield the end, or the present state."""
    last = decisions[-1] if decisions else None
    if last is None or last.at is None:
        return
    remaining = "; ".join(last.sentences)
    if done is not None:
        yield TimelineStep(at=done, tone="end", text=remaining or "nothing left to do")
    else:
        yield TimelineStep(at=last.at, tone="note", text=f"not done: {remaining}")
