"""Pages over HTTP: documents and JSON, who may see them, and what happens when something fails."""

import json
import re

import httpx2
import pytest

from flotilla_common.kube.interface import Unreachable
from flotilla_console.blocks.types import Notice, spans
from flotilla_console.web.pages import MAX_QUERY
from flotilla_console.web.security import HEADERS
from tests.unit.console.site import SmallSite, Words

JSON = {"accept": "application/json"}
HOSTILE = "</script><script>alert(1)</script><!--\u2028&amp;"


def data_in(answer: httpx2.Response) -> dict:
    found = re.search(r'<script type="application/json" id="shown">(.*?)</script>', answer.text, re.DOTALL)
    assert found
    return json.loads(found[1])


async def test_a_document_has_its_page_as_markup_and_as_data() -> None:
    site = SmallSite("a", "b")
    site.sight.banners = (Notice("bad", spans("the bus is gone")),)
    answer = await site.client.get("/?sort=-word&q=x&unknown=1")
    assert answer.status_code == 200
    assert answer.text.startswith("<!doctype html>")
    assert "<h1>Words</h1>" in answer.text
    assert "the bus is gone" in answer.text
    assert '<a href="/" aria-current="page">Words</a>' in answer.text
    assert '<a class="skip" href="#main">' in answer.text
    shown = data_in(answer)
    assert shown["path"] == "/?q=x&sort=-word"
    assert [row["key"] for row in shown["page"]["blocks"][0]["rows"]] == ["b", "a"]
    assert (shown["user"], shown["live"], shown["csrf"]) == ("alice", True, "token of alice")


async def test_json_has_the_same_as_the_document() -> None:
    site = SmallSite("a")
    answer = await site.client.get("/words/a", headers=JSON)
    assert answer.headers["content-type"] == "application/json"
    assert "Accept" in answer.headers["vary"]
    assert answer.json() == data_in(await site.client.get("/words/a"))


async def test_hostile_text_does_not_end_the_data_and_is_no_markup() -> None:
    site = SmallSite(HOSTILE)
    answer = await site.client.get("/")
    assert answer.text.count("</script>") == 2
    assert data_in(answer)["page"]["blocks"][0]["rows"][0]["key"] == HOSTILE
    assert "<script>alert" not in answer.text


async def test_a_session_can_be_ended() -> None:
    client = SmallSite("a").client
    assert 'href="/signout"' in (await client.get("/")).text
    assert 'href="/signout"' not in (await client.get("/", headers={"user": "bob"})).text


@pytest.mark.parametrize(
    "path", ["/", "/words/a", "/words/none", "/words/broken", "/nothing", "/static/x/y", "/live/x/views"]
)
@pytest.mark.parametrize("user", ["alice", "nobody"])
async def test_every_answer_has_the_headers(path: str, user: str) -> None:
    answer = await SmallSite("a").client.get(path, headers={"user": user})
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert answer.headers["cache-control"] == "no-store"


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }


async def test_without_identity_there_is_a_link_to_sign_in_and_nothing_else() -> None:
    answer = await SmallSite("secret").client.get("/", headers={"user": ""})
    assert answer.status_code == 401
    assert '<a href="/sign-in">Sign in</a>' in answer.text
    assert "secret" not in answer.text
    assert data_in(answer)["navigation"] == []


async def test_what_may_not_be_seen_is_answered_like_what_does_not_exist() -> None:
    site = SmallSite("secret")
    site.rights.own["bob"] = Words()
    hidden = await site.client.get("/words/secret", headers={"user": "bob"})
    missing = await site.client.get("/words/nothing", headers={"user": "bob"})
    assert (hidden.status_code, hidden.text.replace("secret", "nothing")) == (404, missing.text)


@pytest.mark.parametrize(
    ("path", "status", "title"),
    [
        ("/words/broken", 500, "This page failed"),
        ("/nothing/at/all", 404, "Not found"),
        (f"/?q={'x' * MAX_QUERY}", 414, "The address is too long"),
    ],
)
async def test_failures_are_pages(path: str, status: int, title: str) -> None:
    answer = await SmallSite("a").client.get(path)
    assert answer.status_code == status
    assert f"<h1>{title}</h1>" in answer.text


@pytest.mark.parametrize(("failure", "status"), [(Unreachable("the reason"), 503), (RuntimeError("the reason"), 500)])
async def test_a_failed_sign_in_is_a_page_without_details(failure: Exception, status: int) -> None:
    site = SmallSite("a")
    site.gate.failure = failure
    answer = await site.client.get("/")
    assert answer.status_code == status
    assert "the reason" not in answer.text


async def test_other_methods_are_refused() -> None:
    answer = await SmallSite("a").client.post("/")
    assert answer.status_code == 405
    assert "<h1>Not allowed</h1>" in answer.text


async def test_pages_read_before_they_are_built() -> None:
    assert "a read by alice" in (await SmallSite("a").client.get("/read/a")).text


async def test_forms_get_the_token_of_their_session() -> None:
    answer = await SmallSite("a").client.get("/words/a")
    assert '<input type="hidden" name="csrf" value="token of alice">' in answer.text


async def test_robots_are_sent_away() -> None:
    answer = await SmallSite().client.get("/robots.txt")
    assert answer.text == "User-agent: *\nDisallow: /\n"
