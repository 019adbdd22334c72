"""Nothing is done, undone and done again while nothing else changes.

What a planner undoes in its next pass costs writes without end, and never converges. Statuses of our own kinds are left
out: they report refusals of the apiserver and results of node agents, which are no versions of objects.
"""

from collections.abc import Iterator, Mapping

import msgspec

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import EVENT
from flotilla_common.control.plan import Json
from tests.simulation.history import Version
from tests.simulation.oracles.view import Commit, View, ours

_BOOKKEEPING = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp")
_encode = msgspec.json.Encoder(order="sorted").encode


class Flapping:
    """The rule against flapping: our writes since the last write of another client."""

    def __init__(self) -> None:
        self._written: set[tuple[str, str, str, bytes]] = set()
        self._own = {kind.resource for kind in catalogue.KINDS}

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        del view
        version = commit.version
        if version.resource == EVENT:
            return
        if not ours(version.writer):
            self._written.clear()
            return
        change = _change(version, statuses=version.resource not in self._own)
        if not change:
            return
        write = (*version.key, _encode([version.verb, change]))
        if write in self._written:
            yield "is the same write once more, though nobody else has changed anything"
        self._written.add(write)


def _change(version: Version, *, statuses: bool) -> Mapping[str, object]:
    """Return the new values of the write, by member; of the status only with `statuses`."""
    before, after = _content(version.before), _content(version.after)
    if not statuses:
        before, after = ({**content, "status": None} for content in (before, after))
    return {
        member: after.get(member) for member in before.keys() | after.keys() if before.get(member) != after.get(member)
    }


def _content(document: Json | None) -> Mapping[str, object]:
    """Return the members of an object, those of its metadata separately."""
    if document is None:
        return {}
    metadata = {f"metadata.{key}": value for key, value in document["metadata"].items() if key not in _BOOKKEEPING}
    return {**document, **metadata, "metadata": None}
