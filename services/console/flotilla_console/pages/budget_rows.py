"""The rows of budgets: what is left, the pods that it was taken for, and which workloads they protect."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.resources import POD
from flotilla_console import paths
from flotilla_console.blocks.types import Age, Badge, Bar, Column, Link, Part, Row, Span, Spans, Tone, spans
from flotilla_console.model.sight import LIST, Sight
from flotilla_console.pages.budgets import Around, Budget, Use
from flotilla_console.pages.parts import commas, link

MOST_USES = 5
"""Pods that are named in a row."""

MOST_WORKLOADS = 5
"""Workloads, and other budgets, that are named in a row."""

COLUMNS = (
    Column("name", "Budget", sortable=True),
    Column("allowed", "Allowed now", sortable=True),
    Column("namespace", "Namespace", sortable=True),
    Column("available", "Available"),
    Column("limit", "Limit"),
    Column("used", "Used by", sortable=True),
    Column("protects", "Protects"),
    Column("others", "Also protected by"),
)

ORDERS: Mapping[str, Callable[[Budget], tuple[str | float, ...]]] = {
    "allowed": lambda one: (one.allowed, *one.metadata.key, one.resource.kind),
    "name": lambda one: (one.metadata.name, one.metadata.namespace, one.resource.kind),
    "namespace": lambda one: (*one.metadata.key, one.resource.kind),
    "used": lambda one: (len(one.uses), *one.metadata.key, one.resource.kind),
}


def rows(sight: Sight, window: Sequence[Budget]) -> tuple[Row, ...]:
    """Return the rows of a window. Workloads are read for its namespaces only."""
    around = {name: Around(sight, name) for name in {one.metadata.namespace for one in window}}
    return tuple(_row(sight, one, around[one.metadata.namespace]) for one in window)


def _row(sight: Sight, one: Budget, around: Around) -> Row:
    namespace, name = one.metadata.key
    word, tone = _allowed(one)
    return Row(
        key=f"{one.resource.id}/{namespace}/{name}",
        cells=(
            spans(_named(one), f" {one.resource.kind}"),
            spans(Badge(word, tone)),
            spans(namespace),
            spans(_bar(one)),
            spans(one.limit),
            _used(sight, one),
            _protected(one, around),
            _listed(_named(other, with_kind=True) for other in around.others(one)),
        ),
        tone=tone,
    )


def _named(one: Budget, with_kind: bool = False) -> Span | str:
    """Return a link to the budget; a PodDisruptionBudget has no page."""
    text = f"{one.resource.kind} {one.metadata.name}" if with_kind else one.metadata.name
    if one.resource != POD_UNAVAILABLE_BUDGET:
        return text
    return Link(text, paths.workload(one.resource.group, one.resource.plural, *one.metadata.key))


def _allowed(one: Budget) -> tuple[str, Tone]:
    if one.allowed > 0:
        return f"{one.allowed} more", "ok"
    if one.total <= 0:
        return "none: it counts no pods", "idle"
    return ("none: too few available", "bad") if one.available < one.desired else ("none left", "warn")


def _bar(one: Budget) -> Bar:
    available = max(one.available, 0)
    parts = (Part("available", available, "ok"), Part("unavailable", max(one.total - available, 0), "busy"))
    of_total = f" of {one.total}" if one.total >= 0 else ""
    label = f"{one.available}{of_total} available, {one.desired} must be"
    return Bar(label, tuple(part for part in parts if part.count > 0), max(one.total, available))


def _used(sight: Sight, one: Budget) -> Spans:
    """Return the pods that budget was taken for; only their number if pods may not be seen."""
    pieces: list[Span | str] = []
    if sight.may(LIST, POD, one.metadata.namespace):
        for index, use in enumerate(one.uses[:MOST_USES]):
            pieces += [*([", "] if index else []), *_use(sight, one, use)]
        if (more := len(one.uses) - MOST_USES) > 0:
            pieces.append(f", {more} more")
    elif one.uses:
        pieces.append(f"{len(one.uses)} {'pod' if len(one.uses) == 1 else 'pods'}")
    if one.ahead:
        pieces.append(f"{'; ' if pieces else ''}{one.ahead} held for coming requests")
    return spans(*pieces)


def _use(sight: Sight, one: Budget, use: Use) -> Iterator[Span | str]:
    pod = sight.pod(one.metadata.namespace, use.pod)
    yield use.pod if pod is None else Link(use.pod, paths.pod(*pod.metadata.key))
    yield f" ({use.operation}"
    if use.since:
        yield " since "
        yield Age(use.since)
    yield ")"


def _protected(one: Budget, around: Around) -> Spans:
    found = [link(each.workload) for each in around.protected(one)]
    if found:
        return _listed(found)
    if one.target is not None:
        _, kind, name = one.target
        return spans(f"{kind} {name}, which does not exist or may not be seen by you")
    return spans("no workload that you may see")


def _listed(pieces: Iterable[Span | str]) -> Spans:
    found = list(pieces)
    more = len(found) - MOST_WORKLOADS
    return commas([*found[:MOST_WORKLOADS], *([f"{more} more"] if more > 0 else [])])
