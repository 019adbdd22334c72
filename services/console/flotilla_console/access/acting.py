"""Requests to the apiserver as the user who clicks.

A pasted token is sent as it is. For all others the console impersonates, and its own rights limit whom and for what:
since Kubernetes 1.36 by constrained impersonation (`impersonate:user-info` on users and groups, and
`impersonate-on:user-info:<verb>` on each resource), before by the verb `impersonate`. The headers are the same.
"""

import ssl
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from multidict import CIMultiDict

from flotilla_common.api.errors import ApiError
from flotilla_common.api.resources import Resource
from flotilla_common.kube.config import ApiConfig
from flotilla_common.kube.interface import Api
from flotilla_console.access.identity import AUTHENTICATED, Identity

FIELD_MANAGER = "flotilla-console"
MOST_LOG_BYTES = 1 << 20


class Refused(Exception):
    """A request that was not carried out, in the apiserver's words."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class NoCredential:
    """The credential of connections on which each request brings its own."""

    async def authorization(self) -> str:
        return ""

    def reject(self) -> None:
        """Do nothing: the token is the user's, and cannot be renewed here."""


def without_credentials(config: ApiConfig) -> ApiConfig:
    """Return the configuration without the console's own credentials.

    The apiserver prefers the client certificate of a connection to a token, so tokens of users must not be sent on
    connections that have one: their requests would have the console's rights.
    """
    return ApiConfig(
        server=config.server,
        credential=NoCredential(),
        tls=_without_certificate(config.tls) if config.tls else None,
        tls_server_name=config.tls_server_name,
        proxy=config.proxy,
        namespace=config.namespace,
    )


def _without_certificate(given: ssl.SSLContext) -> ssl.SSLContext:
    """Return a context that trusts the same authorities; a context cannot lose a certificate that it has loaded."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = given.check_hostname, given.verify_mode
    authorities = b"".join(given.get_ca_certs(binary_form=True))
    if authorities:
        made.load_verify_locations(cadata=authorities)
    else:
        made.load_default_certs()
    return made


def headers_of(identity: Identity) -> Mapping[str, str]:
    """Return the headers that make a request one of the identity. Groups are repeated headers. Raises Refused."""
    if identity.own:
        return {}
    if identity.token:
        return {"Authorization": f"Bearer {identity.token}"}
    made: CIMultiDict[str] = CIMultiDict({"Impersonate-User": _header(identity.user)})
    if identity.uid:
        made.add("Impersonate-Uid", _header(identity.uid))
    for group in identity.groups:
        if group != AUTHENTICATED:  # the apiserver adds it
            made.add("Impersonate-Group", _header(group))
    for name, values in identity.extra.items():
        for value in values:
            made.add(f"Impersonate-Extra-{quote(name, safe='')}", _header(value))
    return made


def _header(value: str) -> str:
    if not value or not value.isprintable():
        raise Refused(f"{value!r} cannot be sent to the apiserver as the name of a user or group")
    return value


class Acting:
    """Makes clients that act as identities."""

    def __init__(self, api: Api, bearer: Api) -> None:
        """Take the console's own client, which impersonates, and one without credentials, for pasted tokens."""
        self._api = api
        self._bearer = bearer

    def client(self, identity: Identity) -> "UserApi":
        """Return the apiserver as this identity."""
        return UserApi(self._bearer if identity.token else self._api, identity)


class UserApi:
    """The few requests that the console makes as a user. All raise Refused, and Unreachable if the outcome is open."""

    def __init__(self, api: Api, identity: Identity) -> None:
        self._api = api
        self._identity = identity

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        return await self._send("GET", resource, namespace, name)

    async def list(
        self, resource: Resource, namespace: str, params: Mapping[str, str], accept: str = "application/json"
    ) -> bytes:
        return await self._send("GET", resource, namespace, params=params, accept=accept)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str = "application/merge-patch+json",
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> bytes:
        return await self._send(
            "PATCH", resource, namespace, name, subresource, _written(dry_run), body, content_type=content_type
        )

    async def post(
        self,
        resource: Resource,
        namespace: str,
        body: bytes,
        *,
        name: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> bytes:
        """Create an object, or post to the subresource of one (`eviction`)."""
        return await self._send("POST", resource, namespace, name, subresource, _written(dry_run), body)

    async def delete(
        self, resource: Resource, namespace: str, name: str, body: bytes = b"", *, dry_run: bool = False
    ) -> bytes:
        """Delete the object; the body is DeleteOptions."""
        params = {"dryRun": "All"} if dry_run else {}
        return await self._send("DELETE", resource, namespace, name, "", params, body)

    async def log(
        self,
        pod: Resource,
        namespace: str,
        name: str,
        container: str,
        *,
        lines: int = 500,
        most_bytes: int = MOST_LOG_BYTES,
        previous: bool = False,
    ) -> bytes:
        """Return the last lines of a container's log."""
        params = {"container": container, "tailLines": str(lines), "limitBytes": str(most_bytes)}
        return await self._send(
            "GET", pod, namespace, name, "log", params | ({"previous": "true"} if previous else {}), accept="*/*"
        )

    async def _send(
        self,
        method: str,
        resource: Resource,
        namespace: str,
        name: str = "",
        subresource: str = "",
        params: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        if self._identity.read_only and method != "GET":
            raise Refused(f"{self._identity.user} may only read: sign in as yourself to change something", 403)
        headers: CIMultiDict[str] = CIMultiDict({"Accept": accept})
        if body:
            headers["Content-Type"] = content_type
        headers.update(headers_of(self._identity))
        query = f"?{urlencode(params)}" if params else ""
        try:
            return await self._api.raw(method, resource.path(namespace, name, subresource) + query, body, headers)
        except ApiError as error:
            raise Refused(error.message, error.code) from error
        except ValueError as error:  # a name that would lead to another path
            raise Refused(str(error), 400) from error


def _written(dry_run: bool) -> dict[str, str]:
    return {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
