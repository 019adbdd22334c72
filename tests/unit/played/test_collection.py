"""The objects of the stand-in: rendered ones, stored ones, pages, and the events of watches."""

import msgspec
import pytest

from flotilla_common.api.resources import POD
from tests.perf.played.collection import HISTORY, Collection, Event, Expired, Key, Versions

COUNT = 5


class Numbered:
    """Pods that have their number and their changes as spec."""

    def __len__(self) -> int:
        return COUNT

    def key(self, number: int) -> Key:
        return "default", f"pod-{number}"

    def render(self, number: int, version: int, changes: int) -> bytes:
        meta = {"name": f"pod-{number}", "resourceVersion": str(version)}
        return msgspec.json.encode({"metadata": meta, "spec": changes})


@pytest.fixture
def pods() -> Collection:
    return Collection(POD, Versions(), Numbered())


def names(bodies: list[bytes]) -> list[str]:
    return [msgspec.json.decode(body)["metadata"]["name"] for body in bodies]


def followed(pods: Collection) -> list[Event]:
    events: list[Event] = []
    pods.watchers.append(events.append)
    return events


def document(event: Event) -> tuple[str, dict[str, object]]:
    line = msgspec.json.decode(event.line)
    return line["type"], line["object"]


def test_pages_contain_every_object_once(pods: Collection) -> None:
    first = pods.page(0, 2, lambda _: True)
    second = pods.page(first.next, 2, lambda _: True)
    third = pods.page(second.next, 2, lambda _: True)
    assert names([*first.bodies, *second.bodies, *third.bodies]) == [f"pod-{number}" for number in range(COUNT)]
    assert third.next == 0


def test_a_full_last_page_is_the_last_one(pods: Collection) -> None:
    assert pods.page(0, COUNT, lambda _: True).next == 0


def test_pages_contain_wanted_objects_only(pods: Collection) -> None:
    found = pods.page(0, 1, lambda key: key[1] in ("pod-1", "pod-3"))
    assert names(found.bodies) == ["pod-1"]
    assert names(pods.page(found.next, 1, lambda key: key[1] in ("pod-1", "pod-3")).bodies) == ["pod-3"]


def test_a_change_is_a_new_version_and_an_event(pods: Collection) -> None:
    events = followed(pods)
    version = pods.change(3)
    kind, changed = document(events[0])
    assert kind == "MODIFIED"
    assert changed == {"metadata": {"name": "pod-3", "resourceVersion": str(version)}, "spec": 1}
    assert pods.get(("default", "pod-3")) == msgspec.json.encode(changed)


def test_a_written_object_is_stored_and_not_changed_by_the_player(pods: Collection) -> None:
    pods.put(("default", "pod-2"), {"metadata": {"name": "pod-2"}, "spec": "written"})
    assert pods.change(2) == 0
    assert msgspec.json.decode(pods.get(("default", "pod-2")) or b"")["spec"] == "written"


def test_new_objects_come_after_the_others(pods: Collection) -> None:
    events = followed(pods)
    pods.put(("default", "new"), {"metadata": {"name": "new"}})
    assert document(events[0])[0] == "ADDED"
    assert names(pods.page(0, 0, lambda _: True).bodies)[-1] == "new"


def test_removed_objects_are_gone(pods: Collection) -> None:
    events = followed(pods)
    pods.remove(("default", "pod-0"))
    kind, gone = document(events[0])
    assert (kind, gone["metadata"]) == ("DELETED", {"name": "pod-0", "resourceVersion": str(events[0].version)})
    assert pods.get(("default", "pod-0")) is None
    assert len(pods) == COUNT - 1
    assert pods.change(0) == 0


def test_a_removed_object_that_was_stored_has_a_new_version(pods: Collection) -> None:
    pods.put(("default", "new"), {"metadata": {"name": "new"}})
    removed = msgspec.json.decode(pods.remove(("default", "new")))
    assert removed["metadata"]["resourceVersion"] == str(COUNT + 3)


def test_the_history_has_the_events_after_a_version(pods: Collection) -> None:
    first, second = pods.change(0), pods.change(1)
    assert [event.version for event in pods.since(first)] == [second]


def test_forgotten_history_is_expired(pods: Collection) -> None:
    first = pods.change(0)
    for number in range(HISTORY + 1):
        pods.change(number % COUNT)
    with pytest.raises(Expired):
        pods.since(first)
