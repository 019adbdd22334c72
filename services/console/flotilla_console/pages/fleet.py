"""The fleet: all workloads, those that need attention first, with a search."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from flotilla_console import paths
from flotilla_console.blocks.types import (
    Badge,
    Choice,
    Column,
    Field,
    Form,
    Link,
    Notice,
    Paragraph,
    Row,
    Spans,
    Table,
    spans,
)
from flotilla_console.model.reading import STATES, State
from flotilla_console.model.workload import Workload
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.parts import (
    LIMIT,
    TONES,
    age,
    kind_word,
    link,
    offset_of,
    pods_bar,
    progress,
    sorting,
    state_badge,
)

MOST_REASONS = 20
"""Reasons in the summary of blocked workloads."""

Order = Callable[[Workload], tuple[str | float, ...]]

_RANKS = {state: rank for rank, state in enumerate(STATES)}

_COLUMNS = (
    Column("name", "Name", sortable=True),
    Column("state", "State", sortable=True),
    Column("kind", "Kind", sortable=True),
    Column("namespace", "Namespace", sortable=True),
    Column("pods", "Pods", sortable=True),
    Column("revision", "Updated", sortable=True),
    Column("why", "Why"),
    Column("age", "Age", sortable=True),
)


def _by_state(one: Workload) -> tuple[str | float, ...]:
    return _RANKS[one.verdict.state], one.verdict.code, one.namespace, one.name, one.kind.resource.kind


_ORDERS: Mapping[str, Order] = {
    "state": _by_state,
    "name": lambda one: (one.name, one.namespace),
    "kind": lambda one: (one.kind.resource.kind, one.namespace, one.name),
    "namespace": lambda one: (one.namespace, one.name),
    "pods": lambda one: (one.reading.numbers.total, one.namespace, one.name),
    "revision": lambda one: (_updated_share(one), one.namespace, one.name),
    "age": lambda one: (-one.created, one.namespace, one.name),
}


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of the search form."""

    words: tuple[str, ...] = ()  # parts of the name, of an image, or `label=value`
    namespace: str = ""
    kind: str = ""
    state: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Search":
        """Read the query of a request."""
        return cls(
            words=tuple(query.get("q", "").split()),
            namespace=query.get("namespace", ""),
            kind=query.get("kind", ""),
            state=query.get("state", ""),
        )

    def finds(self, one: Workload) -> bool:
        """Report whether the workload passes all filters but that of the state."""
        if self.namespace and one.namespace != self.namespace:
            return False
        if self.kind and one.kind.resource.id != self.kind:
            return False
        return all(_matches(one, word) for word in self.words)


def _matches(one: Workload, word: str) -> bool:
    """Report whether a word is a label of the workload, or a part of its name, its namespace or an image."""
    key, given, value = word.partition("=")
    if given and one.metadata.labels.get(key) == value:
        return True
    return word in one.name or word in one.namespace or any(word in image for image in one.reading.images)


def build(request: PageRequest) -> Page:
    """Return the page."""
    search, everything = Search.of(request.query), request.sight.workloads()
    listed = [one for one in everything if one.kind.listed or search.kind == one.kind.resource.id]
    found = [one for one in listed if search.finds(one)]
    counts = Counter[State](one.verdict.state for one in found)
    shown = [one for one in found if search.state in ("", one.verdict.state)]
    unreadable = request.sight.unreadable()
    return Page(
        title="Fleet",
        blocks=(
            _form(search, everything),
            *((_unreadable(unreadable),) if unreadable else ()),
            Paragraph(_totals(request, counts)),
            *_reasons(request, found, search),
            _table(request, shown),
        ),
    )


def _form(search: Search, everything: Iterable[Workload]) -> Form:
    namespaces = sorted({one.namespace for one in everything if one.namespace})
    kinds = sorted({(kind_word(one), one.kind.resource.id) for one in everything})
    return Form(
        id="search",
        action=paths.FLEET,
        method="get",
        fields=(
            Field("q", "Search", "search", " ".join(search.words), help="A part of a name or image, or label=value"),
            Field(
                "namespace",
                "Namespace",
                "select",
                search.namespace,
                _choices("All", ((name, name) for name in namespaces)),
            ),
            Field(
                "kind", "Kind", "select", search.kind, _choices("All", ((identity, word) for word, identity in kinds))
            ),
            Field("state", "State", "select", search.state, _choices("All", ((state, state) for state in STATES))),
        ),
        submit="Search",
    )


def _choices(first: str, rest: Iterable[tuple[str, str]]) -> tuple[Choice, ...]:
    return Choice("", first), *(Choice(value, label) for value, label in rest)


def _unreadable(names: Sequence[str]) -> Notice:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    verb = "cannot be read and is" if len(names) == 1 else "cannot be read and are"
    return Notice("warn", spans(f"{', '.join(names[:3])}{more} {verb} not shown."))


def _totals(request: PageRequest, counts: Counter[State]) -> Spans:
    total = sum(counts.values())
    pieces: list[str | Link | Badge] = [f"{total} {'workload' if total == 1 else 'workloads'}"]
    for state in STATES:
        if counts[state]:
            href = _here(request, {"state": state, "offset": ""})
            pieces += [", ", Badge(state, TONES[state]), " ", Link(str(counts[state]), href)]
    return spans(*pieces)


def _here(request: PageRequest, changes: Mapping[str, str]) -> str:
    """Return the link to this page with other parameters; an empty one is left out."""
    query = {name: value for name, value in {**request.query, **changes}.items() if value and name in PARAMETERS}
    return paths.path(query=query) if query else paths.FLEET


def _reasons(request: PageRequest, found: Iterable[Workload], search: Search) -> Iterable[Table]:
    """Yield a table of the reasons of blocked workloads, the most frequent first."""
    groups: dict[str, list[Workload]] = {}
    for one in found:
        if one.verdict.state == "blocked" and search.state in ("", "blocked"):
            groups.setdefault(one.verdict.code, []).append(one)
    if not groups:
        return
    ordered = sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    yield Table(
        id="reasons",
        caption="Reasons of blocked workloads",
        columns=(
            Column("reason", "Reason"),
            Column("count", "Workloads", numeric=True),
            Column("first", "For example"),
        ),
        rows=tuple(
            Row(key=code, cells=(spans(Badge(code, "bad")), spans(str(len(members))), _example(members)), tone="bad")
            for code, members in ordered[:MOST_REASONS]
        ),
        total=len(ordered),
        limit=MOST_REASONS,
    )


def _example(members: Sequence[Workload]) -> Spans:
    first = min(members, key=lambda one: (one.namespace, one.name))
    return spans(link(first), ": ", first.verdict.text)


def _table(request: PageRequest, shown: Sequence[Workload]) -> Table:
    sort, descending = sorting(request.query, _ORDERS, "state")
    ordered = sorted(shown, key=_ORDERS[sort], reverse=descending)
    offset = offset_of(request.query, len(ordered))
    return Table(
        id="workloads",
        caption="Workloads",
        columns=_COLUMNS,
        rows=tuple(map(_row, ordered[offset : offset + LIMIT])),
        total=len(ordered),
        offset=offset,
        limit=LIMIT,
        sort=sort,
        descending=descending,
    )


def _row(one: Workload) -> Row:
    verdict = one.verdict
    return Row(
        key=f"{one.kind.resource.id}/{one.namespace}/{one.name}",
        cells=(
            spans(link(one)),
            spans(state_badge(one)),
            spans(kind_word(one)),
            spans(one.namespace or "-"),
            spans(pods_bar(one)),
            progress(one),
            spans(*([Badge(verdict.code, TONES[verdict.state]), " "] if verdict.code else []), verdict.text),
            age(one.created),
        ),
        tone=TONES[verdict.state],
    )


def _updated_share(one: Workload) -> float:
    numbers = one.reading.numbers
    return 1.0 if numbers.updated is None or numbers.expected <= 0 else numbers.updated / numbers.expected


PARAMETERS = ("q", "namespace", "kind", "state", "sort", "offset")

FLEET = PageSpec(name="fleet", path=paths.FLEET, build=build, navigation="Fleet", parameters=PARAMETERS)
