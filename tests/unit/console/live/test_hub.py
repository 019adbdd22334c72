"""The hub: one rendering for all who see the same, limited memory, and nothing that may no longer be seen."""

import json

import pytest

from flotilla_console.live.events import encoded
from flotilla_console.live.hub import (
    MAX_STREAMS_PER_USER,
    MAX_VIEWS,
    PREPARED_SECONDS,
    RESUME_SECONDS,
    TICK_SECONDS,
    Reader,
    Stream,
    TooManyStreams,
)
from flotilla_console.live.outbox import MAX_BYTES, MAX_EVENTS
from tests.unit.console.site import ALICE, BOB, SmallSite, Words


class Browser:
    """A reader of a stream, and the pages that it has after all events that it read."""

    def __init__(self, site: SmallSite, stream: Stream, position: int = 0) -> None:
        self.reader = Reader(site.hub, stream, position, site.clock)
        self.stream = stream
        self.last = 0

    def read(self) -> list[tuple[str, dict]]:
        found = []
        for text in self.reader.take().decode().split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in text.split("\n"))
            assert fields["id"].startswith(self.stream.id)
            self.last = int(fields["id"].rpartition(".")[2])
            found.append((fields["event"], json.loads(fields["data"])))
        return found

    def names(self) -> list[str]:
        return [name for name, _ in self.read()]


def browser(site: SmallSite, *paths: str, identity=ALICE) -> Browser:
    stream = site.hub.open(identity, site.rights.own.get(identity.user, site.sight))
    site.hub.show(stream, paths)
    return Browser(site, stream)


async def tick(site: SmallSite) -> None:
    site.clock.time += TICK_SECONDS
    await site.hub.render_all()


async def test_a_stream_begins_with_whole_pages_and_goes_on_with_differences() -> None:
    site = SmallSite("a", "b")
    one = browser(site, "/")
    await tick(site)
    assert one.names() == ["hello", "beat", "page"]
    site.sight.say("a", "b", "c")
    await tick(site)
    ((name, data),) = one.read()
    assert (name, data["path"], data["version"]) == ("step", "/", 2)
    assert [row["key"] for row in data["difference"]["blocks"][0]["rows"]] == ["c"]


async def test_nothing_is_sent_when_nothing_changed_or_a_page_stays_the_same() -> None:
    site = SmallSite("a", "b")
    one = browser(site, "/words/a")
    await tick(site)
    one.read()
    await tick(site)
    site.sight.say("a")  # the page of "a" does not show the other words
    await tick(site)
    assert one.read() == []


async def test_all_who_see_the_same_share_one_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    encodings: list[str] = []
    monkeypatch.setattr(
        "flotilla_console.live.view.encoded", lambda name, data: encodings.append(name) or encoded(name, data)
    )
    site = SmallSite("a")
    all_of_them = [browser(site, "/", identity=identity) for identity in (ALICE, BOB) * 5]
    await tick(site)
    site.sight.say("b")
    await tick(site)
    assert sorted(encodings) == ["page", "step"]
    assert {tuple(one.names()) for one in all_of_them} == {("hello", "beat", "page", "step")}


async def test_who_sees_something_else_has_another_view() -> None:
    site = SmallSite("a", "secret")
    site.rights.own["bob"] = Words("a")
    alice, bob = browser(site, "/"), browser(site, "/", identity=BOB)
    await tick(site)
    assert "secret" in json.dumps(alice.read())
    assert "secret" not in json.dumps(bob.read())


async def test_a_view_is_rendered_at_most_four_times_a_second() -> None:
    site = SmallSite("a")
    one = browser(site, "/")
    await tick(site)
    one.read()
    for number in range(10):
        site.sight.say(f"{number}")
        await site.hub.render_all()
    assert one.read() == []
    await tick(site)
    assert one.names() == ["step"]


async def test_a_page_that_reads_something_is_rendered_for_its_reader_and_less_often() -> None:
    site = SmallSite("a")
    alice, bob = browser(site, "/read/a"), browser(site, "/read/a", identity=BOB)
    for _ in range(3):
        await tick(site)
    assert "read by alice" in json.dumps(alice.read())
    assert "read by bob" in json.dumps(bob.read())
    site.sight.say("b")
    await tick(site)
    assert alice.read() == []
    site.clock.time += PREPARED_SECONDS
    await tick(site)
    await tick(site)
    assert [(name, data["page"]) for name, data in alice.read()] == [("page", None)]


async def test_a_page_that_fails_is_reported_and_harms_no_other() -> None:
    site = SmallSite("a")
    one = browser(site, "/words/broken", "/")
    await tick(site)
    assert one.names() == ["hello", "beat", "failed", "page"]


async def test_a_reader_that_comes_back_gets_what_it_missed() -> None:
    site = SmallSite("a")
    one = browser(site, "/")
    await tick(site)
    one.read()
    one.reader.leave()
    site.sight.say("b")
    await tick(site)
    again = Browser(site, one.stream, one.last)
    assert again.names() == ["step"]
    assert not one.reader.is_current


@pytest.mark.parametrize("size", [1, MAX_BYTES // 3])
async def test_a_slow_reader_gets_whole_pages_and_memory_is_limited(size: int) -> None:
    site = SmallSite("a")
    one = browser(site, "/")
    await tick(site)
    one.read()
    for number in range(MAX_EVENTS + 10):
        site.sight.say("x" * size + f"{number}")
        await tick(site)
        assert sum(len(event) for event in one.stream.outbox._events) <= MAX_BYTES
    found = one.read()
    assert [name for name, _ in found] == ["hello", "beat", "page"]
    assert found[-1][1]["page"]["blocks"][0]["rows"][0]["key"] == "x" * size + f"{MAX_EVENTS + 9}"
    site.sight.say("next")
    await tick(site)
    assert one.names() == ["step"]


async def test_with_withdrawn_rights_nothing_of_before_is_sent() -> None:
    site = SmallSite("a", "secret")
    one = browser(site, "/")
    await tick(site)  # the page with the secret waits for the reader
    site.hub.use(one.stream, ALICE, Words("a"))
    await tick(site)
    found = one.read()
    assert "secret" not in json.dumps(found)
    assert [name for name, _ in found] == ["hello", "beat", "page"]


async def test_removed_pages_are_not_rendered_any_more() -> None:
    site = SmallSite("a")
    one = browser(site, "/", "/words/a")
    await tick(site)
    one.read()
    site.hub.show(one.stream, ["/words/a"])
    site.sight.say("b")
    await tick(site)
    assert [(name, data["path"]) for name, data in one.read()] == [("page", "/words/a")]
    site.hub.close(one.stream)
    assert site.hub._views == {}


async def test_pages_that_do_not_exist_or_are_not_live_are_ignored_and_their_number_is_limited() -> None:
    site = SmallSite("a")
    one = browser(site, "/nothing", "/still/a", "no path", *(f"/words/{number}" for number in range(50)))
    await tick(site)
    assert len(one.stream.known) == MAX_VIEWS - 3
    assert {data["page"] for name, data in one.read() if name == "page"} == {None}


def test_streams_are_limited_and_belong_to_their_user() -> None:
    site = SmallSite()
    streams = [site.hub.open(ALICE, site.sight) for _ in range(MAX_STREAMS_PER_USER)]
    for stream in streams:
        Browser(site, stream)
    with pytest.raises(TooManyStreams):
        site.hub.open(ALICE, site.sight)
    site.hub.open(BOB, site.sight)
    assert site.hub.find(streams[0].id, ALICE) is streams[0]
    assert site.hub.find(streams[0].id, BOB) is None


def test_a_page_that_is_loaded_again_and_again_keeps_its_stream() -> None:
    """Each document leaves a stream behind, which may be resumed: the oldest of them make room."""
    site = SmallSite()
    first, *others = [browser(site) for _ in range(MAX_STREAMS_PER_USER)]
    for one in others:
        one.reader.leave()
        site.clock.time += 1
    site.hub.open(ALICE, site.sight)
    assert site.hub.find(first.stream.id, ALICE) is first.stream
    assert [site.hub.find(one.stream.id, ALICE) is None for one in others[:2]] == [True, False]


async def test_a_stream_without_a_reader_ends() -> None:
    site = SmallSite("a")
    one = browser(site, "/")
    site.clock.time += RESUME_SECONDS + 1
    await tick(site)
    assert site.hub.find(one.stream.id, ALICE) is one.stream
    one.reader.leave()
    site.clock.time += RESUME_SECONDS + 1
    await tick(site)
    assert site.hub.find(one.stream.id, ALICE) is None
