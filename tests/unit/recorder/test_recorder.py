"""The recorder restarts its watches when they end, and reports errors that it cannot repair."""

import json
import stat
import sys
from pathlib import Path

import pytest

from flotilla_common.api.resources import POD
from tests.support.recorder import Recorder
from tests.testkit.documents import Json

KUBECTL = """#!{python}
import json, pathlib, sys, time
answers = pathlib.Path({answers!r})
script = json.loads(answers.read_text())
mode, *rest = script
answers.write_text(json.dumps(rest))
with open({asked!r}, "a") as asked:
    print(sys.argv[-1], file=asked)
for line in mode["lines"]:
    print(json.dumps(line), flush=True)
if mode.get("stays"):
    time.sleep(60)
sys.exit(mode.get("code", 0))
"""


def pod(name: str, version: int) -> Json:
    return {"metadata": {"name": name, "namespace": "web", "resourceVersion": str(version)}}


def listing(version: int, *pods: Json) -> Json:
    return {"lines": [{"kind": "PodList", "metadata": {"resourceVersion": str(version)}, "items": list(pods)}]}


def event(change: str, document: Json) -> Json:
    return {"type": change, "object": {"kind": "Pod", **document}}


EXPIRED: Json = {"type": "ERROR", "object": {"kind": "Status", "metadata": {}, "code": 410}}
STAYS: Json = {"lines": [], "stays": True}
UNREACHABLE: Json = {"lines": [], "code": 1}


class Scripted:
    """A kubectl with one prepared answer per call, and the URLs requested from it."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "kubectl"
        self._answers = folder / "answers"
        self._asked = folder / "asked"
        self.program.write_text(
            KUBECTL.format(python=sys.executable, answers=str(self._answers), asked=str(self._asked)), encoding="utf-8"
        )
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def answers(self, *script: Json) -> Recorder:
        self._answers.write_text(json.dumps(script), encoding="utf-8")
        return Recorder(self.program, Path("none"), POD)

    @property
    def asked(self) -> list[str]:
        return self._asked.read_text(encoding="utf-8").split() if self._asked.exists() else []


@pytest.fixture
def kubectl(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path)


def told(recorder: Recorder) -> list[tuple[str, str, str]]:
    return [
        (event.type, event.object["metadata"]["name"], event.object["metadata"]["resourceVersion"])
        for event in recorder.events
    ]


def test_a_watch_that_ends_is_resumed_where_it_ended(kubectl: Scripted) -> None:
    first = {"lines": [event("MODIFIED", pod("a", 7)), event("BOOKMARK", pod("", 9))]}
    second = {"lines": [event("DELETED", pod("a", 11))], "stays": True}
    with kubectl.answers(listing(5, pod("a", 3)), first, second) as recorder:
        assert recorder.until(lambda: len(recorder.events) == 3, 20)
    assert told(recorder) == [("ADDED", "a", "3"), ("MODIFIED", "a", "7"), ("DELETED", "a", "11")]
    assert recorder.objects == {}
    assert [url.rpartition("=")[2] for url in kubectl.asked[1:]] == ["5", "9"]


def test_a_watch_that_is_too_old_begins_with_a_list_of_what_changed(kubectl: Scripted) -> None:
    before, after = listing(5, pod("a", 3), pod("b", 4)), listing(20, pod("b", 4), pod("c", 12))
    with kubectl.answers(before, {"lines": [EXPIRED]}, after, STAYS) as recorder:
        assert recorder.until(lambda: len(recorder.events) == 4, 20)
    assert told(recorder) == [("ADDED", "a", "3"), ("ADDED", "b", "4"), ("DELETED", "a", "3"), ("ADDED", "c", "12")]
    assert sorted(name for _, _, name in recorder.objects) == ["b", "c"]


def test_who_waits_hears_that_nothing_more_comes_and_so_does_who_asks_no_more(kubectl: Scripted) -> None:
    recorder = kubectl.answers(listing(5, pod("a", 3)), UNREACHABLE, UNREACHABLE).__enter__()
    with pytest.raises(AssertionError, match="pods: ConnectionError"):
        recorder.until(lambda: False, 20)
    with pytest.raises(AssertionError, match="pods: ConnectionError"):
        recorder.__exit__(None, None, None)
