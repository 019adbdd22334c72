"""A report in words: steps, their conditions, and the totals."""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.resources import CLAIM, POD
from flotilla_insight.durations import span
from flotilla_insight.preview.report import Report, Wave
from flotilla_insight.preview.steps import Step, ValueChange

NAMED = 5
"""Number of names in a line; the rest is counted."""

VERBS = {
    "updateInPlace": "update in place",
    "resizeInPlace": "resize in place",
    "restart": "restart containers of",
    "mark": "mark for deletion",
    "hold": "wait for the hook of",
    "grace": "begin the grace period of",
    "inject": "inject into",
    "patch": "write",
}


def details_of(step: Step) -> str:
    """Return the changes and their reasons.

    The planner's own text is added where the step does not say everything: that of claims names each pod.
    """
    is_complete = step.kind == CLAIM.kind or (step.kind == POD.kind and step.do != "delete")
    details = [changes_text(step.changes), step.why, "" if is_complete else step.cause]
    return "; ".join(filter(None, [*details, f"REFUSED: {step.refused}" if step.refused else ""]))


def condition_of(wave: Wave, *, everything: bool) -> str:
    """Return the condition of a wave."""
    parts: list[str] = []
    if wave.ready:
        parts.append(f"{listed(wave.ready, everything)} {'serve' if len(wave.ready) > 1 else 'serves'}")
    if wave.gone:
        parts.append(f"{listed(wave.gone, everything)} {'are' if len(wave.gone) > 1 else 'is'} gone")
    if wave.answered:
        parts.append(f"{listed(wave.answered, everything)} {'have' if len(wave.answered) > 1 else 'has'} pulled")
    if wave.ended:
        parts.append(f"{listed(wave.ended, everything)} {'have' if len(wave.ended) > 1 else 'has'} ended")
    when = f"when {' and '.join(parts)}" if parts else ""
    later = f"{span(wave.seconds)} later" if wave.seconds else ""
    return ", ".join(filter(None, (when, later))) or "at once"


def label_of(step: Step) -> str:
    """Return the name of a step's object."""
    if step.kind == POD.kind:
        name = step.name or step.alias
        return f"{name} ({step.node})" if step.node else name
    return step.alias or (f"{step.namespace}/{step.name}" if step.elsewhere else step.name)


def listed(names: Sequence[str], everything: bool) -> str:
    """Return names, or a few of them and the number of the others."""
    if everything or len(names) <= NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def changes_text(changes: Sequence[ValueChange]) -> str:
    """Return changes of values."""
    texts = (
        f"{one.what} {value_text(one.before, one.after)}" if one.before or one.after else one.what for one in changes
    )
    return ", ".join(texts)


def value_text(before: object, after: object) -> str:
    """Return a value before and after a change."""
    return f"{_plain(before)} → {_plain(after)}"


def _plain(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def totals_text(report: Report) -> str:
    """Return the totals of a report."""
    totals = report.totals
    counts = {
        "updated in place": totals.updated_in_place,
        "recreated": totals.recreated,
        "created": totals.created,
        "deleted": totals.deleted,
        "created by Kubernetes": totals.created_by_kubernetes,
        "deleted by Kubernetes": totals.deleted_by_kubernetes,
    }
    words = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    line = f"pods: {words}; {totals.writes} writes" if words else f"{totals.writes} writes"
    if (serving := report.serving) is None:
        return line
    limit = "" if serving.max_unavailable is None else f" (maxUnavailable {serving.max_unavailable})"
    return f"{line}; serving: {serving.now} now, {serving.lowest} at the lowest{limit}, {serving.end} in the end"
