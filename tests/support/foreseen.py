"""Compares the forecast of `flotilla plan` with what then happened to pods, as a watch saw it."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.support.recorder import Event
from tests.support.workspace import revision_of, terminating
from tests.testkit.documents import Json

Happening = tuple[str, str]
"""An action and its pod; the name is empty for a pod whose name cannot be predicted."""

_DONE = {"updateInPlace": "update", "recreate": "delete", "delete": "delete", "create": "create"}


def foretold(story: Json) -> list[list[Happening]]:
    """Return the waves of a story."""
    waves = [
        [(_DONE[step["do"]], step.get("name", "")) for step in wave["steps"] if step["kind"] == "Pod"]
        for wave in story.get("waves", ())
    ]
    return [wave for wave in waves if wave]


def happened(events: Iterable[Event], before: dict[str, Json]) -> list[Happening]:
    """Return the actions on pods, each once, in the order in which the watch saw them. `before`: the pods by name."""
    known = {pod["metadata"]["uid"]: pod for pod in before.values()}
    found: dict[tuple[str, str], Happening] = {}
    for event in events:
        pod = event.object
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        held = known.get(uid)
        if held is None:
            found.setdefault(("create", uid), ("create", name))
        elif terminating(pod) or event.type == "DELETED":
            found.setdefault(("delete", uid), ("delete", name))
        elif _content(pod) != _content(held):
            found.setdefault(("update", uid), ("update", name))
    return list(found.values())


def differences(waves: Sequence[Sequence[Happening]], real: Sequence[Happening]) -> list[str]:
    """Return the differences between the forecast and the events.

    Within a wave there is no order, and pods created without a predictable name are counted; creations, deletions and
    updates each come in the order of the waves.
    """
    wrong: list[str] = []
    for done in ("update", "delete", "create"):
        rest = [name for what, name in real if what == done]
        for number, wave in enumerate(waves, 1):
            names = [name for what, name in wave if what == done]
            here, rest = rest[: len(names)], rest[len(names) :]
            known = sorted(name for name in names if name)
            if sorted(here) != known if known else len(here) != len(names):
                wrong.append(f"wave {number} was to {done} {names}, and it was {here}")
        if rest:
            wrong.append(f"not in the forecast: {done} {rest}")
    return wrong


def _content(pod: Json) -> tuple[Any, ...]:
    """Return what an in-place update changes: the revision, images, and users' metadata."""
    images = tuple(container["image"] for container in pod["spec"]["containers"])
    return revision_of(pod), images
