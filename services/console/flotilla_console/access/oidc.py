"""Signing in with an OpenID Connect provider: authorization code with PKCE, state and nonce.

What the callback needs is in an encrypted cookie for ten minutes, so that any replica can complete the sign-in. A flow
is accepted once by a replica; the provider accepts its code once in any case.
"""

import secrets
import ssl
from collections.abc import Mapping
from typing import Protocol, TypedDict, cast

import httpx2
import msgspec
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, KeySetSerialization
from joserfc.jws import JWSRegistry

from flotilla_common.clock import Clock
from flotilla_console.access.expiring import Expiring
from flotilla_console.access.files import FileError, lines_of
from flotilla_console.access.identity import Identity, authenticated
from flotilla_console.access.settings import OidcSettings

FLOW_COOKIE = "__Host-flotilla-oidc"
FLOW_SECONDS = 600.0
"""The time that a user has to sign in at the provider."""

DISCOVERY_SECONDS = 3600.0
"""The time for which the discovery document and the keys are used."""

KEYS_REST_SECONDS = 30.0
"""The least time between two reads of the keys, which a token with an unknown key causes."""

TIMEOUT_SECONDS = 10.0
LEEWAY_SECONDS = 60
"""The difference of clocks that is accepted."""

MOST_RESPONSE_BYTES = 1 << 20

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"})
"""Asymmetric algorithms only, as the apiserver: with others the client secret or nothing would sign."""


class OidcError(Exception):
    """A sign-in that failed, in words for the user."""


class Flow(msgspec.Struct, frozen=True, tag="oidc"):
    """A sign-in under way."""

    state: str
    nonce: str
    verifier: str
    next: str


class Discovery(msgspec.Struct, frozen=True):
    """The provider's discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Client(Protocol):
    """The part of authlib's client that is used here."""

    def create_authorization_url(self, url: str, *, state: str, code_verifier: str, nonce: str) -> tuple[str, str]: ...

    async def fetch_token(
        self, url: str, *, grant_type: str, code: str, code_verifier: str
    ) -> Mapping[str, object]: ...

    async def __aenter__(self) -> "_Client": ...

    async def __aexit__(self, *error: object) -> None: ...


class _Claims(Protocol):
    """The part of the claims of authlib that is used here."""

    def validate(self, now: int, leeway: int) -> None: ...


class Oidc:
    """The provider, as the console uses it."""

    def __init__(
        self, settings: OidcSettings, clock: Clock, *, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._transport = transport
        self._secret = _secret(settings.client_secret_file)
        self._tls = _tls(settings.ca_file)
        self._documents: Expiring[str, bytes] = Expiring(8)
        self._used: Expiring[str, bool] = Expiring(10_000)

    async def begin(self, next_path: str) -> tuple[str, Flow]:
        """Return the provider's page to sign in at, and what the callback needs. Raises OidcError."""
        discovery = await self._discovery()
        flow = Flow(secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(48), next_path)
        async with self._client(discovery) as client:
            url, _state = client.create_authorization_url(
                discovery.authorization_endpoint, state=flow.state, code_verifier=flow.verifier, nonce=flow.nonce
            )
        return url, flow

    async def complete(self, query: Mapping[str, str], flow: Flow) -> Identity:
        """Return who signed in, by the query of the callback. Raises OidcError."""
        state = query.get("state", "").encode(errors="replace")
        if not secrets.compare_digest(state, flow.state.encode()):
            raise OidcError("The answer of the provider belongs to another sign-in (state). Sign in again.")
        if self._used.get(flow.state, self._clock.monotonic(), FLOW_SECONDS):
            raise OidcError("This sign-in was completed before. Sign in again.")
        self._used.put(flow.state, True, self._clock.monotonic())
        if "error" in query:
            raise OidcError(f"The provider refused: {query['error'][:200]} {query.get('error_description', '')[:500]}")
        if query.get("iss", self._settings.issuer) != self._settings.issuer:
            raise OidcError("The answer comes from another provider (iss).")
        if not query.get("code"):
            raise OidcError("The answer of the provider has no code.")
        discovery = await self._discovery()
        token = await self._exchange(discovery, query["code"], flow.verifier)
        return self._identity(await self._claims(discovery, token, flow.nonce))

    async def _exchange(self, discovery: Discovery, code: str, verifier: str) -> Mapping[str, object]:
        try:
            async with self._client(discovery) as client:
                return await client.fetch_token(
                    discovery.token_endpoint, grant_type="authorization_code", code=code, code_verifier=verifier
                )
        except OAuthError as error:
            raise OidcError(f"The provider did not accept the code: {error}") from error
        except (httpx2.HTTPError, ValueError) as error:
            raise OidcError(f"{discovery.token_endpoint}: {_text(error)}") from error

    def _client(self, discovery: Discovery) -> "_Client":
        offered = discovery.token_endpoint_auth_methods_supported
        method = "client_secret_basic" if "client_secret_basic" in offered else "client_secret_post"
        client = AsyncOAuth2Client(
            self._settings.client_id,
            self._secret or None,
            token_endpoint_auth_method=method if self._secret else "none",
            scope=" ".join(self._settings.scopes),
            redirect_uri=self._settings.redirect_url,
            code_challenge_method="S256",
            timeout=TIMEOUT_SECONDS,
            **self._connection(),
        )
        return cast("_Client", client)

    async def _claims(self, discovery: Discovery, token: Mapping[str, object], nonce: str) -> Mapping[str, object]:
        """Return the claims of the ID token, whose signature, times, audience and nonce are verified."""
        raw = token.get("id_token")
        if not isinstance(raw, str):
            raise OidcError("The provider sent no ID token; the scopes must include openid.")
        allowed = ALGORITHMS.intersection(discovery.id_token_signing_alg_values_supported)
        registry = JWSRegistry(algorithms=sorted(allowed), strict_check_header=False)
        try:
            decoded = await self._verified(raw, discovery, registry)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": self._settings.issuer},
                    "aud": {"essential": True, "value": self._settings.client_id},
                    "nonce": {"essential": True, "value": nonce},
                },
                {"nonce": nonce, "client_id": self._settings.client_id, "access_token": token.get("access_token")},
            )
            cast("_Claims", claims).validate(now=int(self._clock.now().timestamp()), leeway=LEEWAY_SECONDS)
        except (JoseError, ValueError, TypeError, KeyError) as error:  # a token of any form may come
            raise OidcError(f"The ID token is not valid: {_text(error)}") from error
        return decoded.claims

    async def _verified(self, raw: str, discovery: Discovery, registry: JWSRegistry) -> jwt.Token:
        """Return the token with a verified signature. The keys are read again once, if they may have been rotated."""
        try:
            return jwt.decode(raw, await self._keys(discovery, DISCOVERY_SECONDS), registry=registry)
        except (JoseError, ValueError):
            return jwt.decode(raw, await self._keys(discovery, KEYS_REST_SECONDS), registry=registry)

    def _identity(self, claims: Mapping[str, object]) -> Identity:
        settings = self._settings
        name = claims.get(settings.username_claim)
        if not isinstance(name, str) or not name:
            raise OidcError(f"The ID token has no claim {settings.username_claim} with the user's name.")
        if settings.username_claim == "email" and claims.get("email_verified", True) is not True:
            raise OidcError("The provider has not verified the email address.")
        user = _username_prefix(settings) + name
        groups = tuple(settings.groups_prefix + group for group in _groups(claims.get(settings.groups_claim)))
        reserved = [one for one in (user, *groups) if one.startswith("system:")]
        if reserved:
            raise OidcError(f"{reserved[0]!r} is a name that Kubernetes reserves; configure a prefix.")
        return authenticated(user, groups)

    async def _discovery(self) -> Discovery:
        url = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            found = msgspec.json.decode(await self._read(url, DISCOVERY_SECONDS), type=Discovery)
        except msgspec.MsgspecError as error:
            raise OidcError(f"{url} is not a discovery document: {error}") from error
        if found.issuer != self._settings.issuer:
            raise OidcError(f"{url} is of the issuer {found.issuer}, not of {self._settings.issuer}.")
        return found

    async def _keys(self, discovery: Discovery, seconds: float) -> KeySet:
        document = await self._read(discovery.jwks_uri, seconds)
        try:
            return KeySet.import_key_set(cast("KeySetSerialization", msgspec.json.decode(document)))
        except (msgspec.MsgspecError, JoseError, ValueError, TypeError, KeyError) as error:
            raise OidcError(f"{discovery.jwks_uri} is not a set of keys: {_text(error)}") from error

    async def _read(self, url: str, seconds: float) -> bytes:
        """Return the document, which may have been read that long ago."""
        known = self._documents.get(url, self._clock.monotonic(), seconds)
        if known is not None:
            return known
        try:
            async with (
                httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, **self._connection()) as client,
                client.stream("GET", url) as response,
            ):
                response.raise_for_status()
                document = bytearray()
                async for chunk in response.aiter_bytes():
                    document += chunk
                    if len(document) > MOST_RESPONSE_BYTES:
                        raise OidcError(f"{url} has more than {MOST_RESPONSE_BYTES} bytes.")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise OidcError(f"{url}: {_text(error)}") from error
        self._documents.put(url, bytes(document), self._clock.monotonic())
        return bytes(document)

    def _connection(self) -> "_Connection":
        return {"verify": self._tls, "transport": self._transport}


class _Connection(TypedDict):
    verify: ssl.SSLContext
    transport: httpx2.AsyncBaseTransport | None


def _username_prefix(settings: OidcSettings) -> str:
    """Return the prefix as the apiserver applies it: names of different issuers must not meet."""
    if settings.username_prefix == "-":
        return ""
    if settings.username_prefix or settings.username_claim == "email":
        return settings.username_prefix
    return f"{settings.issuer}#"


def _groups(claim: object) -> tuple[str, ...]:
    if claim is None:
        return ()
    try:
        return msgspec.convert([claim] if isinstance(claim, str) else claim, tuple[str, ...])
    except msgspec.ValidationError as error:
        raise OidcError("The claim with the groups is not a list of texts.") from error


def _secret(file: str) -> str:
    return lines_of(file, "file of the OIDC client secret")[0].decode(errors="replace") if file else ""


def _tls(file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file or None)
    except OSError as error:  # ssl.SSLError included
        raise FileError(f"CA file of the OIDC provider {file}: {_text(error)}") from error


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
