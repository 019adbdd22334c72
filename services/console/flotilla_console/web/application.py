"""The application: its pages, the live stream, the scripts, and the routes that other packages add."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from fastapi import FastAPI
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, compile_path

from flotilla_console.page import PageSpec
from flotilla_console.web.pages import Address, Pages, query_of
from flotilla_console.web.security import HEADERS, SecurityHeaders
from flotilla_console.web.static_files import StaticFiles

Endpoint = Callable[[Request], Awaitable[Response]]

_TITLES = {
    403: ("Not allowed", "You may not do this."),
    405: ("Not allowed", "This address does not take this method."),
}


class Addresses:
    """Finds the page of a path, for requests and for views of the live stream."""

    def __init__(self, specs: Sequence[PageSpec]) -> None:
        self._patterns = [(compile_path(spec.path)[0], spec) for spec in specs]

    def find(self, target: str) -> Address | None:
        """Return the page of a path with its query, None for an unknown path."""
        path, _, query = target.partition("?")
        return self.of(path, QueryParams(parse_qsl(query, keep_blank_values=True, max_num_fields=100)))

    def of(self, path: str, parameters: QueryParams) -> Address | None:
        """Return the page of a path that is not quoted any more."""
        for pattern, spec in self._patterns:
            if (found := pattern.match(path)) is not None:
                query = query_of(spec, parameters)
                return Address(spec=spec, path=_joined(path, query), params=found.groupdict(), query=query)
        return None


def _joined(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of the application."""

    specs: Sequence[PageSpec]
    pages: Pages
    static: StaticFiles
    routes: Sequence[BaseRoute] = ()
    """Routes of other packages: the live stream, sign-in, forms. They come before the pages."""


def build(parts: Parts) -> FastAPI:
    """Return the application."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_middleware(SecurityHeaders)
    app.router.routes.extend(parts.routes)
    app.add_route("/static/{version}/{name:path}", parts.static.answer, methods=["GET"])
    app.add_route("/robots.txt", _robots, methods=["GET"])
    for spec in parts.specs:
        app.add_route(spec.path, _endpoint(spec, parts.pages), methods=["GET"], name=spec.name)

    async def refused(request: Request, failure: Exception) -> Response:
        status = failure.status_code if isinstance(failure, HTTPException) else 500
        if status == 404:
            return parts.pages.not_found(request)
        return parts.pages.say(request, status, *_TITLES.get(status, ("This request failed", str(failure))))

    async def failed(request: Request, _: Exception) -> Response:
        # This answer does not pass the middleware.
        answer = parts.pages.say(request, 500, "This request failed", "The log of the console has the cause.")
        answer.headers.update({**HEADERS, "Cache-Control": "no-store"})
        return answer

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, failed)
    return app


def _endpoint(spec: PageSpec, pages: Pages) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        query = query_of(spec, request.query_params)
        path = _joined(request.url.path, query)
        return await pages.answer(request, Address(spec=spec, path=path, params=request.path_params, query=query))

    return endpoint


async def _robots(_: Request) -> Response:
    return PlainTextResponse("User-agent: *\nDisallow: /\n")
