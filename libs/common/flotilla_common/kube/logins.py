"""Logs in users of kubeconfigs by credential plugins and identity providers, through kubernetes_asyncio.

Only this module imports the library, which takes 37 MiB; docs/adr/0009 lists what it does and what we do.

`python -m flotilla_common.kube.logins FILES CONTEXT [login]` prints an `Access` as JSON, or exits with an error.
"""

import asyncio
import base64
import json
import os
import ssl
import sys
from datetime import UTC, datetime

import aiohttp
import msgspec
from kubernetes_asyncio.config.config_exception import ConfigException
from kubernetes_asyncio.config.exec_provider import ExecProvider
from kubernetes_asyncio.config.kube_config import ConfigNode
from kubernetes_asyncio.config.openid import OpenIDRequestor

from flotilla_common.clock import SystemClock
from flotilla_common.kube import kubeconfig
from flotilla_common.kube.credentials import RENEWAL_MARGIN, Access, ConfigError
from flotilla_common.kube.kubeconfig import Context, Entry, Members


async def access_of(context: Context, *, log_in: bool) -> Access:
    """Return the access of a context; without `log_in` no plugin runs and no identity provider is asked."""
    if context.user.part("exec").members:
        proof = await _run_plugin(context.user, context.cluster, log_in)
    else:
        proof = await _identify(context, log_in)
    return msgspec.structs.replace(context.access, token_file="", **proof)


class Told(dict[str, str]):
    """The environment of a plugin that asks for the cluster, which the library leaves out."""

    def __init__(self, env: dict[str, str], cluster: Entry) -> None:
        super().__init__(env)
        self._cluster = cluster.members

    def __setitem__(self, name: str, value: str) -> None:
        info = json.loads(value)
        info["spec"]["cluster"] = self._cluster
        super().__setitem__(name, json.dumps(info))


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


async def _run_plugin(user: Entry, cluster: Entry, log_in: bool) -> Members:
    """Return members of an `Access` from the plugin's output (the library's loader drops a certificate's expiry)."""
    entry = user.part("exec")
    command = entry.text("command")
    section = entry.members | ({"command": entry.path("command")} if os.sep in command else {})
    if entry.text("interactiveMode") == "Always" and not sys.stdin.isatty():
        raise entry.error("interactiveMode", "is Always, but there is no terminal")
    try:
        plugin = ExecProvider(ConfigNode("exec", section))
        if section.get("provideClusterInfo"):
            plugin.env = Told(plugin.env, cluster)
        if not log_in:
            return {"deferred": True}
        status = msgspec.convert(await plugin.run(), _Status)
    except OSError as error:
        problem = f"cannot be started: {error.strerror}. {entry.text('installHint')}".rstrip()
        raise user.error("exec", f"{command} {problem}") from error
    except (ConfigException, TypeError, msgspec.ValidationError) as error:
        raise user.error("exec", f"{command}: {str(error).removeprefix('exec: ')}") from error
    if not (status.token or status.client_certificate_data):
        raise user.error("exec", f"{command} returned neither a token nor a certificate")
    proof: Members = {"authorization": f"Bearer {status.token}" if status.token else ""}
    if status.client_certificate_data:
        proof |= {"certificate": status.client_certificate_data, "key": status.client_key_data}
    return proof | {"expires": status.expiration_timestamp}


class IdentityProvider(OpenIDRequestor):
    """The library's requestor, with verification of the server that gets the refresh token."""

    def _get_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(ssl=self._ssl_ca_cert or True)


async def _identify(context: Context, log_in: bool) -> Members:
    """Return members of an `Access` from the user's ID token, which is replaced in the kubeconfig before it expires."""
    user = context.user
    name, config = user.part("auth-provider").text("name"), user.part("auth-provider").part("config")
    if name != "oidc":
        raise user.error("auth-provider", f"was removed from Kubernetes ({name}): use an exec plugin")
    expires = _end(config)
    if expires is None or SystemClock().now() >= expires - RENEWAL_MARGIN:
        if not log_in:
            return {"deferred": True}
        config.members.update(await _new_tokens(config))
        context.files.save(user.file)
        expires = _end(config)
    return {"authorization": f"Bearer {config.text('id-token')}", "expires": expires}


def _end(config: Entry) -> datetime | None:
    """Return when the ID token expires; the library decodes it with the wrong alphabet."""
    if not (token := config.text("id-token")):
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise config.error("id-token", "is not a JWT with an expiry") from error


async def _new_tokens(config: Entry) -> dict[str, str]:
    """Refresh the tokens. The provider may omit a new refresh token, although the library expects one."""
    if not (old := config.text("refresh-token")):
        raise config.error("refresh-token", "is not set, and the ID token is no longer valid")
    who = (config.text(name) for name in ("client-id", "client-secret", "idp-issuer-url"))
    try:
        tls = ssl.create_default_context(cadata=config.pem("idp-certificate-authority") or None)
        answer = await IdentityProvider(*who, ssl_ca_cert=tls).refresh_token(old)
        return {"id-token": answer["id_token"], "refresh-token": answer.get("refresh_token", old)}
    except (ConfigException, aiohttp.ClientError, OSError, KeyError, ValueError) as error:
        why = error.__cause__ or error
        raise config.error("idp-issuer-url", f"returned no ID token: {type(why).__name__}: {why}") from error


def main() -> None:
    """Read the files and print the result."""
    files, context, login = sys.argv[1:]
    try:
        access = asyncio.run(access_of(kubeconfig.read(files, context), log_in=login == "login"))
    except ConfigError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(msgspec.json.encode(access))


if __name__ == "__main__":
    main()
