"""Which lines a pattern means: an object by name, by kind, by namespace, or with everything done on its behalf."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from flotilla_cli.traffic.lines import Line


def matches(line: Line, pattern: str) -> bool:
    """Whether a glob names the line's object, or its owner, in one of the usual ways: `web-*`, `pod`, `pod/web-1`,
    `team-a/web-1`, `pod/team-a/web-1`, `team-a/*`. Case does not count. An empty pattern matches everything."""
    wanted = pattern.lower()
    return not wanted or any(fnmatchcase(name.lower(), wanted) for name in _names(line))


def _names(line: Line) -> Iterable[str]:
    yield from (line.name, line.kind, f"{line.kind}s", f"{line.kind}/{line.name}")
    if line.namespace:
        yield from (line.namespace, f"{line.namespace}/{line.name}", f"{line.kind}/{line.namespace}/{line.name}")
    if line.owner:
        kind, _, name = line.owner.partition("/")
        yield from (name, line.owner, f"{line.namespace}/{name}", f"{kind}/{line.namespace}/{name}")
