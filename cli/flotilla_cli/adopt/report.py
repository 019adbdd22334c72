"""Surveys the objects that a migration finds, and operations under way that Flotilla will continue.

A dry run prints it. Objects are read in their stored version, which needs no conversion.
"""

from collections.abc import Iterator, Sequence

import msgspec

from flotilla_cli.adopt.discover import Found
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.resources import Resource
from flotilla_common.kube.interface import Api, ApiError, pages
from flotilla_insight.installation.crds import is_served, resource_of
from flotilla_insight.views import view_of


class KindSurvey(msgspec.Struct, frozen=True):
    """One kind: the number of its objects, None if unreadable now, and a text for each that is under way."""

    kind: str
    served: bool
    count: int | None
    under_way: Sequence[str] = ()


async def survey(api: Api, found: Found) -> list[KindSurvey]:
    """Read all objects of all kinds; served kinds come first. Raises Unreachable."""
    lines: list[KindSurvey] = []
    for place, definition in found.definitions.items():
        resource = resource_of(definition)
        if is_served(definition):
            lines.append(await _read(api, resource))
        else:
            lines.append(KindSurvey(resource.kind, served=False, count=found.counts.get(place.name, 0)))
    return sorted(lines, key=lambda line: (not line.served, line.kind))


def report(lines: Sequence[KindSurvey]) -> Iterator[str]:
    """Yield the survey as lines for people."""
    yield from _table("continued by Flotilla", [line for line in lines if line.served])
    left = [line for line in lines if not line.served and line.count]
    if left:
        yield from _table("left as it is, without a controller", left)
    if going := [text for line in lines for text in line.under_way]:
        yield "in progress, and continued by Flotilla:"
        yield from (f"  {text}" for text in going)


def _table(title: str, lines: Sequence[KindSurvey]) -> Iterator[str]:
    yield f"{title}:"
    for line in lines:
        yield f"  {line.kind:<26}{'cannot be read now' if line.count is None else line.count:>6}"


async def _read(api: Api, resource: Resource) -> KindSurvey:
    count, going = 0, list[str]()
    try:
        async for page in pages(api, resource):
            count += len(page.items)
            going += filter(None, (under_way(resource, msgspec.json.decode(raw)) for raw in page.items))
    except ApiError:  # stored in an older version, and the conversion webhook is not up yet
        return KindSurvey(resource.kind, served=True, count=None)
    return KindSurvey(resource.kind, served=True, count=count, under_way=going)


def under_way(resource: Resource, live: Json) -> str:
    """Return a text about an object that has not reached its spec; empty if it has."""
    say = view_of(resource).progress
    saying = say(member(live, "spec"), member(live, "status")) if say else ""
    meta = member(live, "metadata")
    name = "/".join(filter(None, (text(meta.get("namespace")), text(meta.get("name")))))
    return f"{resource.kind} {name}: {saying}" if saying else ""
