"""Blocks as HTML: nothing of a text becomes markup, and the scripts make the same markup."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from flotilla_console.blocks import html
from flotilla_console.blocks.markup import local
from flotilla_console.blocks.types import Age, Bar, Column, Form, Link, Paragraph, Part, Row, Table, spans
from tests.testkit.tables import cases
from tests.unit.console import scripts
from tests.unit.console.samples import NOW, every_block

FRAME = html.Frame(now=NOW, query={"namespace": "a b", "sort": "-b", "x~y": "*"}, csrf="token")
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea></pre></title></svg><b>",
    "&lt;b&gt; &amp;",
    "--><!--",
    "javascript:alert(1)",
    "{{constructor}} ${alert(1)}",
    "\u202e\u2066 ünïcödé 🚢",
    "a\nb\r\n\tc",
]


class Parsed(HTMLParser):
    """The elements of a text, and whether each is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag != "input":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


HARMLESS = Parsed(html.blocks(every_block("text"), FRAME))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_markup_in_any_position(text: str) -> None:
    parsed = Parsed(html.blocks(every_block(text), FRAME))
    assert parsed.tags == HARMLESS.tags
    assert parsed.attributes == HARMLESS.attributes
    assert parsed.open == []


def test_no_markup_needs_what_the_policy_forbids() -> None:
    assert not {name for name in HARMLESS.attributes if name == "style" or name.startswith("on")}
    assert not {"script", "style", "iframe", "object", "base"} & set(HARMLESS.tags)


@pytest.mark.parametrize("text", ["\0", "\ud800", "a\udfffb"])
def test_characters_that_html_cannot_have_are_replaced(text: str) -> None:
    shown = html.blocks(every_block(text), FRAME)
    assert shown.encode()
    assert "\0" not in shown


@pytest.mark.parametrize(
    ("href", "safe"),
    [
        ("/pods/a/b", True),
        ("?sort=a", True),
        ("#top", True),
        ("//host/", False),
        ("/\\host/", False),
        ("/\t/host/", False),
        ("\n//host", False),
        ("https://host/", False),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("", False),
    ],
)
def test_links_lead_only_to_this_server(href: str, safe: bool) -> None:
    assert (local(href) is not None) == safe
    assert ("<a" in html.block(Paragraph(spans(Link("text", href))), FRAME)) == safe
    assert ("<form" in html.block(Form("f", href, "post", (), "Go"), FRAME)) == safe


def test_only_forms_that_post_have_the_token() -> None:
    assert "token" in html.block(Form("f", "/a", "post", (), "Go"), FRAME)
    assert "token" not in html.block(Form("f", "/a", "get", (), "Go"), FRAME)


@pytest.mark.parametrize(
    ("sort", "descending", "order", "link"),
    [
        ("", False, "none", "?sort=age"),
        ("age", False, "ascending", "?sort=-age"),
        ("age", True, "descending", "?sort=age"),
    ],
)
def test_sorting_is_a_link_and_is_announced(sort: str, descending: bool, order: str, link: str) -> None:
    one = Table("t", "T", (Column("age", "Age", sortable=True),), (), 0, sort=sort, descending=descending)
    shown = html.block(one, html.Frame(now=NOW))
    assert f'aria-sort="{order}"' in shown
    assert f'href="{link}"' in shown


@pytest.mark.parametrize(
    ("offset", "rows", "total", "links", "count"),
    [
        (0, 2, 2, [], "2"),
        (0, 2, 5, [("?q=x&amp;offset=2", "next")], "1 to 2 of 5"),
        (2, 2, 5, [("?q=x", "prev"), ("?q=x&amp;offset=4", "next")], "3 to 4 of 5"),
        (4, 1, 5, [("?q=x&amp;offset=2", "prev")], "5 to 5 of 5"),
    ],
)
def test_paging(offset: int, rows: int, total: int, links: list[tuple[str, str]], count: str) -> None:
    shown_rows = tuple(Row(f"{number}", ((),)) for number in range(rows))
    one = Table("t", "T", (Column("a", "A"),), shown_rows, total, offset, limit=2)
    shown = html.block(one, html.Frame(now=NOW, query={"q": "x"}))
    assert re.findall(r'<a href="([^"]*)" rel="(\w+)"', shown) == links
    assert f'<span class="count">{count}</span>' in shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172800, "2d")],
)
def test_ages(seconds: float, text: str) -> None:
    assert f">{text}</time>" in html.block(Paragraph(spans(Age(NOW - seconds))), FRAME)


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_moment_that_is_none_is_unknown(at: float) -> None:
    assert ">unknown</time>" in html.block(Paragraph(spans(Age(at))), FRAME)


def test_a_bar_never_exceeds_its_width() -> None:
    one = Bar("pods", (Part("ready", 7, "ok"), Part("missing", -2, "bad"), Part("extra", 9, "warn")), 5)
    shown = html.block(Paragraph(spans(one)), FRAME)
    assert [int(width) for width in re.findall(r'width="(\d+)"', shown)] == [1000, 0, 0]


TEXTS = {
    "the label says how many are fine": (("4 of 4 ready", (Part("ready", 4, "ok"),), 4), "4 of 4 ready"),
    "each other colour is named": (
        ("2 of 6 ready", (Part("ready", 2, "ok"), Part("failed", 3, "bad"), Part("missing", 1, "idle")), 6),
        "2 of 6 ready, 3 failed, 1 missing",
    ),
    "without a label all are": (
        ("", (Part("ready", 2, "ok"), Part("updated", 1, "busy")), 3),
        "2 ready, 1 updated of 3",
    ),
}


@pytest.mark.parametrize(("bar", "text"), cases(TEXTS))
def test_a_bar_says_what_its_colours_mean(bar: tuple[str, tuple[Part, ...], int], text: str) -> None:
    assert f"<span>{text}</span>" in html.block(Paragraph(spans(Bar(*bar))), FRAME)


def test_scripts_make_the_same_markup() -> None:
    texts = ["text", "", *HOSTILE]
    frame = {"now": FRAME.now, "query": FRAME.query, "csrf": FRAME.csrf}
    given = [{"blocks": json.loads(msgspec.json.encode(every_block(text))), "frame": frame} for text in texts]
    made = scripts.run(Path(__file__).parent / "render.mjs", given)
    assert isinstance(made, list)
    for text, markup in zip(texts, made, strict=True):
        assert markup == _sorted(html.blocks(every_block(text), FRAME))


def _sorted(markup: str) -> str:
    """Return the markup with the attributes of each element in the order of their text."""

    def element(found: re.Match[str]) -> str:
        attributes = sorted(re.findall(r' [\w:-]+(?:="[^"]*")?', found[2]))
        return f"<{found[1]}{''.join(attributes)}>"

    return re.sub(r'<([a-z]\w*)((?: [\w:-]+(?:="[^"]*")?)*)>', element, markup)
