"""Answers requests for pages: as documents, or as JSON for the scripts of a page that is open already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import structlog
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from flotilla_common.clock import Clock
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_console.access.identity import Identity
from flotilla_console.blocks.types import Link, Notice, spans
from flotilla_console.model.sight import Sight
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.web.access import Sights, SignIn, SignInNeeded
from flotilla_console.web.document import document, message
from flotilla_console.web.shown import Entry, Shown
from flotilla_console.web.static_files import StaticFiles

MAX_QUERY = 8192
"""Limit of a query in bytes; longer ones are refused."""

_ALWAYS = ("sort", "offset")
_log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Address:
    """The page that a path and its query lead to."""

    spec: PageSpec
    path: str
    """The path with those parameters of the query that the page understands; equal for equal pages."""
    params: Mapping[str, str]
    query: Mapping[str, str]

    def request(self, sight: Sight, identity: Identity, now: float, read: object = None) -> PageRequest:
        """Return the request that the page is built from."""
        path = self.path.partition("?")[0]
        return PageRequest(
            path=path, params=self.params, query=self.query, sight=sight, identity=identity, now=now, read=read
        )


def query_of(spec: PageSpec, parameters: QueryParams) -> dict[str, str]:
    """Return the parameters that a page understands, sorted by name; all if it names none."""
    known = {*spec.parameters, *_ALWAYS}
    return {
        name: value for name, value in sorted(parameters.items()) if value and (not spec.parameters or name in known)
    }


class Pages:
    """Builds pages for requests, and answers with them."""

    def __init__(
        self, specs: Sequence[PageSpec], sign_in: SignIn, sights: Sights, clock: Clock, static: StaticFiles
    ) -> None:
        self._sign_in, self._sights, self._clock, self._static = sign_in, sights, clock, static
        self._navigation = tuple(Entry(spec.navigation, spec.path) for spec in specs if spec.navigation)

    async def answer(self, request: Request, address: Address) -> Response:
        """Answer a request for a page."""
        if len(request.url.query) > MAX_QUERY:
            return self.say(request, 414, "The address is too long", "Its query has more than 8 KiB.")
        try:
            identity = await self._sign_in.identify(request)
            if not isinstance(identity, Identity):
                return self.sign_in_needed(request, identity)
            sight = await self._sights.sight_of(identity)
            page = await self._built(address, sight, identity)
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot build a page", page=address.spec.name, error=str(failure))
            return self.say(request, 503, "The apiserver does not answer", "Try again in a moment.")
        except Exception:  # noqa: BLE001 - a defect that one object triggers; all other pages are served
            _log.exception("a page failed", page=address.spec.name, path=address.path)
            return self.say(request, 500, "This page failed", "The log of the console has the cause.")
        if page is None:
            return self.not_found(request, identity)
        return self.show(request, identity, page, sight=sight, address=address)

    async def _built(self, address: Address, sight: Sight, identity: Identity) -> Page | None:
        now = self._clock.now().timestamp()
        read: object = None
        if address.spec.prepare is not None:
            read = await address.spec.prepare(address.request(sight, identity, now))
        return address.spec.build(address.request(sight, identity, now, read))

    def show(
        self,
        request: Request,
        identity: Identity | None,
        page: Page,
        *,
        status: int = 200,
        sight: Sight | None = None,
        address: Address | None = None,
    ) -> Response:
        """Answer with a page. Without `address` it is not live, as the answer to a form is."""
        now = self._clock.now().timestamp()
        freshness = None if sight is None else sight.freshness
        shown = Shown(
            path=request.url.path if address is None else address.path,
            query={} if address is None else address.query,
            page=page,
            now=now,
            as_of=now if freshness is None else freshness.as_of,
            banners=() if freshness is None else freshness.banners,
            navigation=() if identity is None else self._navigation,
            user="" if identity is None else identity.user,
            session=identity is not None and self._sign_in.has_session(request),
            csrf=self._sign_in.csrf_token(request),
            live=address is not None and address.spec.live,
        )
        if wants_json(request):
            answer = Response(msgspec.json.encode(shown), status, media_type="application/json", headers=_VARY)
        else:
            answer = Response(document(shown, self._static), status, media_type="text/html", headers=_VARY)
        self._sign_in.keep_token(request, answer)
        return answer

    def say(self, request: Request, status: int, title: str, text: str, *links: Link) -> Response:
        """Answer with a page that only says something."""
        notice = Notice(
            "bad" if status >= 500 else "warn", spans(text, *(piece for link in links for piece in (" ", link)))
        )
        return self.show(request, None, message(title, notice), status=status)

    def sign_in_needed(self, request: Request, needed: SignInNeeded) -> Response:
        """Answer a request without an identity."""
        links = [Link("Sign in", needed.href)] if needed.href else []
        return self.say(request, 401, "Sign in", needed.reason, *links)

    def not_found(self, request: Request, identity: Identity | None = None) -> Response:
        """Answer a request for what does not exist, or what its sender may not see: the answer is the same."""
        notice = Notice("warn", spans("It does not exist, or you may not see it. ", Link("Fleet", "/")))
        return self.show(request, identity, message("Not found", notice), status=404)


_VARY = {"Vary": "Accept, Cookie"}


def wants_json(request: Request) -> bool:
    """Report whether a script asks, and not a navigation of the browser."""
    return request.headers.get("accept", "").partition(",")[0].strip() == "application/json"
