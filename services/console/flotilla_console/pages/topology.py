"""Topology and budgets: where pods are placed, how many may be disrupted, and what is added to workloads of others.

Each of the three tables is a view of the page, so that search, sorting and windows work as on the fleet page.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import Resource
from flotilla_console import paths
from flotilla_console.blocks.types import (
    Badge,
    Choice,
    Column,
    Field,
    Form,
    Link,
    Paragraph,
    Row,
    Span,
    Table,
    Text,
    spans,
)
from flotilla_console.model.objects import Stored
from flotilla_console.model.reading import STATES
from flotilla_console.model.sight import Sight
from flotilla_console.model.workload import Workload
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages import budget_rows, subset_rows
from flotilla_console.pages.budgets import BUDGETS, budget_of
from flotilla_console.pages.parts import LIMIT, TONES, age, link, offset_of, pods_bar, progress, sorting, state_badge
from flotilla_console.pages.subset_rows import SPREADING, entries

PATH = paths.path("topology")
PARAMETERS = ("show", "q", "namespace", "kind", "sort", "offset")

Order = Callable[[Workload], tuple[str | float, ...]]

_SUBSETS = "subsets"
_ADDING = (SIDECAR_SET, RESOURCE_DISTRIBUTION)


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of the search form."""

    words: tuple[str, ...] = ()
    namespace: str = ""
    kind: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Search":
        """Read the query of a request."""
        return cls(
            words=tuple(query.get("q", "").split()), namespace=query.get("namespace", ""), kind=query.get("kind", "")
        )

    def finds(self, resource: Resource, namespace: str, name: str) -> bool:
        """Report whether an object passes all filters."""
        if self.kind not in ("", resource.kind) or self.namespace not in ("", namespace):
            return False
        return all(word in name or word in namespace for word in self.words)


def build(request: PageRequest) -> Page:
    """Return the page."""
    search, sight = Search.of(request.query), request.sight
    asked = request.query.get("show", "")
    view = asked if asked in _VIEWS else _SUBSETS
    found = {name: _found(sight, search, one.kinds) for name, one in _VIEWS.items()}
    return Page(
        title="Topology and budgets",
        blocks=(
            _form(sight, search, view),
            Paragraph(_views(request, view, {name: len(members) for name, members in found.items()})),
            _window(request, _VIEWS[view], [item for one in found[view] for item in _VIEWS[view].items(sight, *one)]),
        ),
    )


def _found(sight: Sight, search: Search, kinds: Iterable[Resource]) -> list[tuple[Resource, Stored]]:
    """Return the objects of these kinds that the search finds. Only their metadata is read."""
    return [
        (kind, stored) for kind in kinds for stored in sight.stored(kind) if search.finds(kind, *stored.metadata.key)
    ]


def _form(sight: Sight, search: Search, view: str) -> Form:
    namespaces = sorted({one.namespace for one in sight.workloads() if one.namespace})
    return Form(
        id="search",
        action=PATH,
        method="get",
        fields=(
            Field("show", "Show", "hidden", view),
            Field("q", "Search", "search", " ".join(search.words), help="A part of a name"),
            Field("namespace", "Namespace", "select", search.namespace, _choices(namespaces)),
            Field("kind", "Kind", "select", search.kind, _choices(one.kind for one in _VIEWS[view].kinds)),
        ),
        submit="Search",
    )


def _choices(values: Iterable[str]) -> tuple[Choice, ...]:
    return Choice("", "All"), *(Choice(value, value) for value in values)


def _views(request: PageRequest, view: str, counts: Mapping[str, int]) -> tuple[Span, ...]:
    """Return links to the other views, which keep the search but for what another table does not have."""
    kept = {name: request.query[name] for name in ("q", "namespace") if request.query.get(name)}
    pieces: list[Span] = []
    for name, one in _VIEWS.items():
        text = f"{one.label} ({counts[name]})"
        pieces += [Text(" · ")] if pieces else []
        pieces.append(
            Badge(text, "idle") if name == view else Link(text, paths.path("topology", query={"show": name, **kept}))
        )
    return tuple(pieces)


_COLUMNS = (
    Column("name", "Name", sortable=True),
    Column("state", "State", sortable=True),
    Column("kind", "Kind", sortable=True),
    Column("reach", "Pods or namespaces", sortable=True),
    Column("updated", "Updated"),
    Column("why", "Why"),
    Column("age", "Age", sortable=True),
)
_ORDERS: Mapping[str, Order] = {
    "state": lambda one: (STATES.index(one.verdict.state), one.name),
    "name": lambda one: (one.name,),
    "kind": lambda one: (one.kind.resource.kind, one.name),
    "reach": lambda one: (one.reading.numbers.desired, one.name),
    "age": lambda one: (-one.created, one.name),
}


def _addition(sight: Sight, resource: Resource, stored: Stored) -> Sequence[Workload]:
    found = sight.workload(resource.group, resource.plural, *stored.metadata.key)
    return [found] if found is not None else []


def _rows(_: Sight, found: Sequence[Workload]) -> tuple[Row, ...]:
    return tuple(map(_row, found))


def _row(one: Workload) -> Row:
    verdict, numbers = one.verdict, one.reading.numbers
    is_known = numbers.desired > 0 or numbers.total > 0
    return Row(
        key=f"{one.kind.resource.id}/{one.name}",
        cells=(
            spans(link(one)),
            spans(state_badge(one)),
            spans(one.kind.resource.kind),
            spans(pods_bar(one)) if is_known else spans("none"),
            progress(one),
            spans(*([Badge(verdict.code, TONES[verdict.state]), " "] if verdict.code else []), verdict.text),
            age(one.created),
        ),
        tone=TONES[verdict.state],
    )


class _View(msgspec.Struct, frozen=True):
    """A table of the page."""

    id: str
    label: str
    kinds: Sequence[Resource]
    items: Callable[[Sight, Resource, Stored], Sequence[object]]  # of an object, each with a row
    columns: tuple[Column, ...]
    orders: Mapping[str, Callable[..., tuple[str | float, ...]]]  # the first one is the default
    rows: Callable[..., tuple[Row, ...]]  # of a window


_VIEWS: Mapping[str, _View] = {
    one.id: one
    for one in (
        _View(
            _SUBSETS,
            "UnitedDeployments and WorkloadSpreads",
            SPREADING,
            lambda _, resource, stored: entries(resource, stored),
            subset_rows.COLUMNS,
            subset_rows.ORDERS,
            subset_rows.rows,
        ),
        _View(
            "budgets",
            "Budgets",
            BUDGETS,
            lambda _, resource, stored: [budget_of(resource, stored)],
            budget_rows.COLUMNS,
            budget_rows.ORDERS,
            budget_rows.rows,
        ),
        _View("additions", "SidecarSets and ResourceDistributions", _ADDING, _addition, _COLUMNS, _ORDERS, _rows),
    )
}


def _window(request: PageRequest, view: _View, found: Sequence[object]) -> Table:
    """Return the window of a table that the query asks for. Only its rows are made."""
    sort, descending = sorting(request.query, view.orders, next(iter(view.orders)))
    ordered = sorted(found, key=view.orders[sort], reverse=descending)
    offset = offset_of(request.query, len(ordered))
    return Table(
        id=view.id,
        caption="Subsets" if view.id == _SUBSETS else view.label,
        columns=view.columns,
        rows=view.rows(request.sight, ordered[offset : offset + LIMIT]),
        total=len(ordered),
        offset=offset,
        limit=LIMIT,
        sort=sort,
        descending=descending,
    )


TOPOLOGY = PageSpec(name="topology", path=PATH, build=build, navigation="Topology", parameters=PARAMETERS)
