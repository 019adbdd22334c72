"""A story for people: what changes, then the waves in their order, then what it comes to."""

from collections.abc import Iterable, Sequence

import msgspec
from rich.text import Text

from flotilla_cli.ages import span
from flotilla_cli.foresee.steps import Change, Step
from flotilla_cli.foresee.story import CREATED, REFUSED, SKIPPED, UNCHANGED, Story, Wave

NAMED = 5
"""Names that a line gives before it only counts."""

_WORDS = {
    "updateInPlace": "update in place",
    "resizeInPlace": "resize in place",
    "restart": "restart containers of",
    "mark": "mark for deletion",
    "hold": "ask the hook before changing",
    "grace": "begin the grace period of",
    "patch": "write",
}
_STYLES = {"delete": "red", "recreate": "yellow", "create": "green"}


def render(story: Story, *, everything: bool) -> Text:
    """The story; with `everything` each pod and each wave."""
    text = Text(f"{story.place}", style="bold").append(f"  {story.verdict}\n", "default")
    if story.verdict in (REFUSED, SKIPPED):
        return text.append(f"  {story.words}\n", style="red" if story.verdict == REFUSED else "dim")
    for change in story.changes:
        text.append(f"  {change.path}: ").append(_values(change.before, change.after, hidden=change.hidden) + "\n")
    if story.verdict == UNCHANGED:
        text.append("  nothing changes\n" if not story.waves else "  the apply changes nothing; what goes on anyway:\n")
    if story.revision is not None and (story.waves or story.verdict == CREATED):
        text.append(f"  revision {story.revision.name}{' (new)' if story.revision.new else ''}\n")
    _append_waves(text, story.waves, everything=everything)
    _append_end(text, story)
    return text


def _values(before: object, after: object, *, hidden: bool = False) -> str:
    if hidden:
        return "changed"
    return f"{_plain(before)} → {_plain(after)}"


def _plain(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _append_waves(text: Text, waves: Sequence[Wave], *, everything: bool) -> None:
    for first, last, group in _runs(waves, everything=everything):
        number = f"{first}." if first == last else f"{first}.-{last}."
        text.append(f"{number:>4} ", style="bold")
        lines = list(_lines(group, everything=everything))
        for position, (line, style) in enumerate(lines):
            text.append("     " if position else "").append(f"{line}\n", style=style)


def _runs(waves: Sequence[Wave], *, everything: bool) -> Iterable[tuple[int, int, list[Wave]]]:
    """Waves that follow each other and do the same to as many pods are told as one."""
    start = 0
    while start < len(waves):
        end = start + 1
        while not everything and end < len(waves) and _alike(waves[end]) == _alike(waves[start]):
            end += 1
        yield start + 1, end, list(waves[start:end])
        start = end


def _alike(wave: Wave) -> object:
    shapes = sorted((step.do, step.kind, step.why, _changes(step.changes)) for step in wave.steps)
    return bool(wave.ready), bool(wave.gone), wave.seconds, shapes


def _lines(group: Sequence[Wave], *, everything: bool) -> Iterable[tuple[str, str]]:
    """When, and then each kind of step once."""
    yield (
        _when(group[0], everything=everything)
        + (f", {len(group)} times one after the other:" if len(group) > 1 else ":"),
        "dim",
    )
    kinds: dict[tuple[str, ...], list[Step]] = {}
    for step in (step for wave in group for step in wave.steps):
        key = (
            step.do,
            step.kind,
            step.why,
            step.refused,
            _changes(step.changes),
            step.cause if step.kind != "Pod" else "",
        )
        kinds.setdefault(key, []).append(step)
    for steps in kinds.values():
        yield f"  {_step_line(steps, everything=everything)}", _STYLES.get(steps[0].do, "default")


def _when(wave: Wave, *, everything: bool) -> str:
    waited = (
        [f"when {_names(wave.ready, everything)} {'serve' if len(wave.ready) > 1 else 'serves'}"] if wave.ready else []
    )
    waited += (
        [f"{'and ' if waited else 'when '}{_names(wave.gone, everything)} {'are' if len(wave.gone) > 1 else 'is'} gone"]
        if wave.gone
        else []
    )
    if wave.seconds:
        waited.append(f"{span(wave.seconds)} later")
    return " ".join(waited) or "at once"


def _step_line(steps: Sequence[Step], *, everything: bool) -> str:
    step = steps[0]
    verb = _WORDS.get(step.do, step.do)
    names = [_name(one) for one in steps]
    if step.kind == "Pod":
        count = f"{len(steps)} pods: " if len(steps) > 1 else "pod "
    else:
        count = f"{len(steps)} {step.kind}s: " if len(steps) > 1 else f"{step.kind} "
    line = f"{verb} {count}{_names(names, everything)}"
    details = [
        part
        for part in (_changes(step.changes), step.why, step.cause if step.kind != "Pod" or step.do == "delete" else "")
        if part
    ]
    line += f": {'; '.join(details)}" if details else ""
    return f"{line}: REFUSED: {step.refused}" if step.refused else line


def _name(step: Step) -> str:
    name = step.name or step.alias
    return f"{name} ({step.node})" if step.node and step.kind == "Pod" else name


def _names(names: Sequence[str], everything: bool) -> str:
    if everything or len(names) <= NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def _changes(changes: Sequence[Change]) -> str:
    told = (f"{one.what} {_values(one.before, one.after)}" if one.before or one.after else one.what for one in changes)
    return ", ".join(told)


def _append_end(text: Text, story: Story) -> None:
    for reason in story.reasons:
        text.append("   → ", style="green" if reason.code == "Complete" else "yellow")
        text.append(reason.message).append(f"  [{reason.code}]\n", style="dim")
    if story.waves:
        text.append(f"  {_totals(story)}\n")
    for note in story.notes:
        text.append(f"  note: {note}\n", style="dim")


def _totals(story: Story) -> str:
    totals = story.totals
    counts = {
        "updated in place": totals.updated_in_place,
        "recreated": totals.recreated,
        "created": totals.created,
        "deleted": totals.deleted,
    }
    words = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none changed"
    line = f"pods: {words}; {totals.writes} writes"
    if (serving := story.serving) is None:
        return line
    limit = "" if serving.max_unavailable is None else f" (maxUnavailable {serving.max_unavailable})"
    return f"{line}; serving: {serving.now} now, {serving.lowest} at the lowest{limit}, {serving.end} in the end"
