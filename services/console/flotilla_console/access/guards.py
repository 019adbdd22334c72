"""Guards of requests: where they come from, what they carry, and how often."""

import ipaddress
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from flotilla_common.clock import Clock
from flotilla_console.access.expiring import Expiring
from flotilla_console.access.sealing import Seal

CSRF_COOKIE = "__Host-flotilla-csrf"
CSRF_FIELD = "csrf"
FORM = "application/x-www-form-urlencoded"
MOST_BYTES = 64 * 1024
"""Largest body of a form."""
MOST_FIELDS = 200
MINUTE = 60.0
MOST_ADDRESSES = 10_000


def refuse_other_sites(request: Request, origin: str = "") -> None:
    """Refuse a request that another site has made. Raises HTTPException 403.

    Every browser of today sends Sec-Fetch-Site or Origin with a POST; a request with neither is refused.
    """
    site, given = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != "same-origin":
        raise HTTPException(403, "The request comes from another site.")
    if given is not None and given != (origin or _own_origin(request)):
        raise HTTPException(403, f"The request comes from another origin than {origin or _own_origin(request)}.")
    if site is None and given is None:
        raise HTTPException(403, "The request does not say which site it comes from (Origin, Sec-Fetch-Site).")


def _own_origin(request: Request) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', '')}"


async def body_of(request: Request, most: int = MOST_BYTES) -> bytes:
    """Return the body of at most this many bytes. Raises HTTPException 413."""
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > most:
            raise HTTPException(413, f"The request has more than {most} bytes.")
    return bytes(read)


async def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of a posted form. Raises HTTPException."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise HTTPException(415, f"The request must be {FORM}.")
    try:
        text = (await body_of(request)).decode()
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"))
    except ValueError as error:
        raise HTTPException(400, "The form cannot be read.") from error


class Csrf:
    """Tokens of forms: each is bound to a cookie of the browser and to who has signed in."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def token(self, request: Request, user: str) -> tuple[str, str]:
        """Return the token for forms in the response to this request, and the value of its cookie."""
        cookie = request.cookies.get(CSRF_COOKIE) or secrets.token_urlsafe(16)
        return self._seal.proof(_bound(cookie, user)), cookie

    def keep(self, response: Response, cookie: str) -> None:
        """Set the cookie that tokens are bound to.

        It is lax: links on other sites have to lead to pages with it, or they would replace that of other tabs.
        """
        response.set_cookie(CSRF_COOKIE, cookie, path="/", secure=True, httponly=True, samesite="lax")

    def check(self, request: Request, form: Mapping[str, str], user: str) -> None:
        """Refuse a form without a token of this browser and user. Raises HTTPException 403."""
        cookie = request.cookies.get(CSRF_COOKIE, "")
        if not cookie or not self._seal.proves(form.get(CSRF_FIELD, ""), _bound(cookie, user)):
            raise HTTPException(403, "The form has expired, or was made for another user. Load the page again.")


def _bound(cookie: str, user: str) -> str:
    return f"{cookie}\0{user}"


class Attempts:
    """Limits attempts per address and minute."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock = clock
        self._most = per_minute
        self._counts: Expiring[str, int] = Expiring(MOST_ADDRESSES)

    def count(self, request: Request) -> None:
        """Count an attempt. Raises HTTPException 429."""
        window, address = int(self._clock.monotonic() // MINUTE), _network(request)
        key = f"{window} {address}"
        count = (self._counts.get(key, window, 1) or 0) + 1
        if count > self._most:
            headers = {"Retry-After": str(int(MINUTE - self._clock.monotonic() % MINUTE) + 1)}
            raise HTTPException(429, "Too many attempts to sign in. Wait a minute.", headers)
        self._counts.put(key, count, window)


def _network(request: Request) -> str:
    """Return the address; of IPv6 the /64, which is what one host has."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a Unix socket, or no peer
        return host
    if address.version == 6:
        return str(ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))
    return str(address)


def local_path(text: str) -> str:
    """Return the text if it is a path of this console, else the first page: no sign-in leads to another site."""
    hostile = any(ord(letter) <= 0x20 or ord(letter) == 0x7F or letter == "\\" for letter in text)
    if hostile or not text.startswith("/") or text.startswith("//"):
        return "/"
    try:
        parts = urlsplit(text)
    except ValueError:
        return "/"
    inner = parts.path in {"/signout", "/signin"} or parts.path.startswith("/signin/")
    return "/" if parts.scheme or parts.netloc or inner else text
