"""What `flotilla plan` foretold, held against what then happened to pods, as a watch saw it."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.support.recorder import Event
from tests.support.workspace import revision_of, terminating
from tests.testkit.documents import Json

Happening = tuple[str, str]
"""What was done, and to which pod; the name is empty for one that nobody could know before."""

_DONE = {"updateInPlace": "update", "recreate": "delete", "delete": "delete", "create": "create"}


def foretold(story: Json) -> list[list[Happening]]:
    """The waves of a story."""
    waves = [
        [(_DONE[step["do"]], step.get("name", "")) for step in wave["steps"] if step["kind"] == "Pod"]
        for wave in story.get("waves", ())
    ]
    return [wave for wave in waves if wave]


def happened(events: Iterable[Event], before: dict[str, Json]) -> list[Happening]:
    """What was done to pods, each thing once, in the order in which the watch saw it. `before`: the pods by name."""
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
    """Where the two are not the same. What a wave does side by side has no order, and pods that are created without a
    known name are counted; creations, deletions and updates each come in the order of the waves."""
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
            wrong.append(f"nobody foretold to {done} {rest}")
    return wrong


def _content(pod: Json) -> tuple[Any, ...]:
    """What an update in place changes: the revision, images, and what users wrote into the metadata."""
    images = tuple(container["image"] for container in pod["spec"]["containers"])
    return revision_of(pod), images
