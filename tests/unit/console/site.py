"""A small site: pages over a sight that tests change, a way to sign in that tests decide, and the live hub."""

from dataclasses import dataclass, field

import httpx2
from starlette.requests import Request
from starlette.responses import Response

from flotilla_common.clock import SystemEntropy
from flotilla_console.access.identity import Identity
from flotilla_console.blocks.types import Column, Form, Notice, Paragraph, Row, Table, spans
from flotilla_console.model.sight import Freshness, Sight
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.web.site import Site
from tests.support.fake_clock import FakeClock

ALICE, BOB = Identity(user="alice"), Identity(user="bob")


class Words(Sight):
    """A sight of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.banners: tuple[Notice, ...] = ()
        self._said = 0

    def say(self, *words: str) -> None:
        self.words = words
        self._said += 1

    @property
    def version(self) -> int:
        return self._said

    @property
    def freshness(self) -> Freshness:
        return Freshness(as_of=1.0, banners=self.banners)


@dataclass
class SignedOut:
    reason: str = "Who are you?"
    href: str = "/sign-in"


@dataclass
class Gate:
    """Identities by the value of the header `user`; tests take them away."""

    users: dict[str, Identity] = field(default_factory=lambda: {"alice": ALICE, "bob": BOB})
    failure: Exception | None = None

    async def identify(self, request: Request) -> Identity | SignedOut:
        if self.failure is not None:
            raise self.failure
        return self.users.get(request.headers.get("user", ""), SignedOut())

    def has_session(self, request: Request) -> bool:
        return request.headers.get("user") == "alice"

    def csrf_token(self, request: Request) -> str:
        return f"token of {request.headers.get('user')}"

    def keep_token(self, request: Request, answer: Response) -> None:
        answer.headers["x-kept"] = "yes"


@dataclass
class Rights:
    """Sights by user; both see the same unless a test decides otherwise."""

    common: Words
    own: dict[str, Words] = field(default_factory=dict[str, Words])

    async def sight_of(self, identity: Identity) -> Sight:
        return self.own.get(identity.user, self.common)


def words(request: PageRequest) -> Page:
    assert isinstance(request.sight, Words)
    sort = request.query.get("sort", "")
    shown = sorted(request.sight.words, reverse=sort.startswith("-"))
    rows = tuple(Row(word, (spans(word),)) for word in shown)
    return Page("Words", (Table("words", "Words", (Column("word", "Word", sortable=True),), rows, len(rows)),))


def word(request: PageRequest) -> Page | None:
    assert isinstance(request.sight, Words)
    name = request.params["name"]
    if name == "broken":
        raise ValueError("broken")
    if name not in request.sight.words:
        return None
    text = "" if request.read is None else f" {request.read}"
    return Page(name, (Paragraph(spans(name, text)), Form("f", "/do", "post", (), "Do")))


async def read(request: PageRequest) -> object:
    return f"read by {request.identity.user}"


SPECS = (
    PageSpec(name="words", path="/", build=words, navigation="Words", parameters=("q",)),
    PageSpec(name="word", path="/words/{name}", build=word),
    PageSpec(name="read", path="/read/{name}", build=word, prepare=read, navigation="Read"),
    PageSpec(name="still", path="/still/{name}", build=word, live=False),
)


class SmallSite:
    """The site, and its parts."""

    def __init__(self, *given: str) -> None:
        self.clock, self.gate, self.sight = FakeClock(), Gate(), Words(*given)
        self.rights = Rights(self.sight)
        self.site = Site(SPECS, self.gate, self.rights, self.clock, SystemEntropy())
        self.hub = self.site.hub
        transport = httpx2.ASGITransport(self.site.application(), raise_app_exceptions=False)
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://console", headers={"user": "alice"})
