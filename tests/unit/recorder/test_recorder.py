"""The recorder restarts its watches when they end, and reports errors that it cannot repair."""

import threading
from collections.abc import Iterator

import pytest

from flotilla_common.api.resources import POD
from tests.support.recorder import Recorder
from tests.support.rest import Refused
from tests.testkit.documents import Json


def pod(name: str, version: int) -> Json:
    return {"metadata": {"name": name, "namespace": "web", "resourceVersion": str(version)}}


def listing(version: int, *pods: Json) -> Json:
    return {"lines": [{"kind": "PodList", "metadata": {"resourceVersion": str(version)}, "items": list(pods)}]}


def event(change: str, document: Json) -> Json:
    return {"type": change, "object": {"kind": "Pod", **document}}


EXPIRED: Json = {"type": "ERROR", "object": {"kind": "Status", "metadata": {}, "code": 410}}
STAYS: Json = {"lines": [], "stays": True}
UNREACHABLE: Json = {"lines": [], "breaks": True}


class Watched:
    """A watch with prepared events."""

    def __init__(self, answer: Json) -> None:
        self._answer = answer
        self._ended = threading.Event()

    def __iter__(self) -> Iterator[Json]:
        yield from self._answer["lines"]
        if self._answer.get("stays"):
            assert self._ended.wait(60)
        if self._answer.get("breaks"):
            raise ConnectionError("reset")

    def stop(self) -> None:
        self._ended.set()


class Scripted:
    """An apiserver with one prepared answer per request, and the paths requested from it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._answers: list[Json] = []

    def answers(self, *script: Json) -> Recorder:
        self._answers = list(script)
        return Recorder(self, POD)

    def send(self, method: str, path: str) -> Json:
        answer = self._next(path)
        if answer.get("breaks"):
            raise ConnectionError("refused")
        if "refused" in answer:
            raise Refused(answer["refused"], "not now")
        return answer["lines"][0]

    def follow(self, path: str) -> Watched:
        return Watched(self._next(path))

    def _next(self, path: str) -> Json:
        self.asked.append(path)
        return self._answers.pop(0)


@pytest.fixture
def server() -> Scripted:
    return Scripted()


def told(recorder: Recorder) -> list[tuple[str, str, str]]:
    return [
        (event.type, event.object["metadata"]["name"], event.object["metadata"]["resourceVersion"])
        for event in recorder.events
    ]


def test_a_watch_that_ends_is_resumed_where_it_ended(server: Scripted) -> None:
    first = {"lines": [event("MODIFIED", pod("a", 7)), event("BOOKMARK", pod("", 9))]}
    second = {"lines": [event("DELETED", pod("a", 11))], "stays": True}
    with server.answers(listing(5, pod("a", 3)), first, second) as recorder:
        assert recorder.until(lambda: len(recorder.events) == 3, 20)
    assert told(recorder) == [("ADDED", "a", "3"), ("MODIFIED", "a", "7"), ("DELETED", "a", "11")]
    assert recorder.objects == {}
    assert [url.rpartition("=")[2] for url in server.asked[1:]] == ["5", "9"]


def test_a_watch_that_is_too_old_begins_with_a_list_of_what_changed(server: Scripted) -> None:
    before, after = listing(5, pod("a", 3), pod("b", 4)), listing(20, pod("b", 4), pod("c", 12))
    with server.answers(before, {"lines": [EXPIRED]}, after, STAYS) as recorder:
        assert recorder.until(lambda: len(recorder.events) == 4, 20)
    assert told(recorder) == [("ADDED", "a", "3"), ("ADDED", "b", "4"), ("DELETED", "a", "3"), ("ADDED", "c", "12")]
    assert sorted(name for _, _, name in recorder.objects) == ["b", "c"]


def test_a_list_is_repeated_while_the_storage_of_a_kind_is_set_up(server: Scripted) -> None:
    with server.answers({"refused": 429}, {"refused": 429}, listing(5, pod("a", 3)), STAYS) as recorder:
        assert recorder.until(lambda: len(recorder.events) == 1, 20)


def test_any_other_refusal_is_final(server: Scripted) -> None:
    recorder = server.answers({"refused": 403}).__enter__()
    with pytest.raises(AssertionError, match="403 not now"):
        recorder.until(lambda: False, 20)
    with pytest.raises(AssertionError, match="403 not now"):
        recorder.__exit__(None, None, None)


def test_who_waits_hears_that_nothing_more_comes_and_so_does_who_asks_no_more(server: Scripted) -> None:
    recorder = server.answers(listing(5, pod("a", 3)), UNREACHABLE, UNREACHABLE).__enter__()
    with pytest.raises(AssertionError, match="pods: ConnectionError"):
        recorder.until(lambda: False, 20)
    with pytest.raises(AssertionError, match="pods: ConnectionError"):
        recorder.__exit__(None, None, None)
