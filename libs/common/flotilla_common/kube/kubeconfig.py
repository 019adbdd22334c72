"""Reads kubeconfig files and logs in, through kubernetes_asyncio, which only this module imports.

The library reads and merges the files, runs credential plugins and speaks to identity providers. This module does the
rest; docs/adr/0009 lists it. Above all, an error names the file and the field, because "invalid configuration" costs
people an afternoon, and contains no credentials.

`python -m flotilla_common.kube.kubeconfig FILES CONTEXT [login]` prints an `Access` as JSON, or exits with an error.
"""

import asyncio
import base64
import json
import os
import ssl
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import msgspec
import yaml
from kubernetes_asyncio.config.config_exception import ConfigException
from kubernetes_asyncio.config.exec_provider import ExecProvider
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigMerger
from kubernetes_asyncio.config.openid import OpenIDRequestor

from flotilla_common.clock import SystemClock
from flotilla_common.kube.credentials import RENEWAL_MARGIN, Access, ConfigError

Members = dict[str, Any]


class Entry(msgspec.Struct, frozen=True):
    """A part of a kubeconfig: its file, its path for messages, its members. A null or empty part counts as absent."""

    file: str
    where: str
    members: Members

    @classmethod
    def of(cls, file: str, where: str, found: object) -> "Entry":
        """Create an entry. Raises ConfigError unless `found` has members."""
        if not isinstance(found or {}, dict):
            raise ConfigError(f"kubeconfig {file}: {where}: is of type {type(found).__name__}")
        return cls(file, where, cast("Members", found or {}))

    def part(self, name: str) -> "Entry":
        """Return a member that has members of its own."""
        return Entry.of(self.file, f"{self.where}.{name}", self.members.get(name))

    def text(self, name: str) -> str:
        """Return a text member. As for kubectl, text that looks like a number has to be quoted."""
        found = self.members.get(name) or ""
        if not isinstance(found, str):
            raise self.error(name, f"is of type {type(found).__name__}, not text")
        return found

    def error(self, field: str, problem: str) -> ConfigError:
        """Return the error about one field."""
        return ConfigError(f"kubeconfig {self.file}: {self.where}.{field}: {problem}")

    def path(self, name: str) -> str:
        """Return a member that names a file: relative to the kubeconfig's own folder."""
        value = self.text(name)
        return str(Path(self.file).absolute().parent / Path(value).expanduser()) if value else ""

    def pem(self, name: str) -> str:
        """Return certificates or a key, inline or from a file; inline wins, as in kubectl."""
        try:
            if inline := self.text(f"{name}-data"):
                return base64.b64decode(inline, validate=True).decode("latin-1")
            return Path(path).read_text("latin-1") if (path := self.path(name)) else ""
        except ValueError as error:
            raise self.error(f"{name}-data", f"is not base64 ({error})") from error
        except OSError as error:
            raise self.error(name, f"cannot read {error.filename}: {error.strerror}") from error


class Files(KubeConfigMerger):
    """The merged files: for each name the first file wins."""

    def load_config(self, path: str) -> None:
        """Load a file; the library does not check its format."""
        try:
            super().load_config(path)  # pyright: ignore[reportUnknownMemberType]
        except OSError as error:
            raise ConfigError(f"kubeconfig {path}: cannot be read: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"kubeconfig {path}: is not YAML: {' '.join(str(error).split())}") from error
        except (AttributeError, KeyError, TypeError) as error:
            raise ConfigError(f"kubeconfig {path}: is empty or not a kubeconfig") from error

    def save_config(self, path: str) -> None:
        """Replace the file atomically: other services may be reading it."""
        target = Path(path).resolve()
        try:
            with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
                yaml.safe_dump(self.config_files[path], file)
            Path(file.name).replace(target)
        except OSError as error:
            raise ConfigError(f"kubeconfig {path}: a new ID token cannot be saved: {error.strerror}") from error

    def context(self, name: str) -> Entry:
        """Return a context by name, or the current one of the first file that has it (the library takes the last)."""
        files = ", ".join(self.config_files)
        wanted = name or next((one for file in self.config_files.values() if (one := file.get("current-context"))), "")
        missing = f"there is no {wanted!r}" if wanted else "no current-context is set, and no context was given"
        return self._named("context", wanted, ConfigError(f"kubeconfig {files}: contexts: {missing}"))

    def part_of(self, context: Entry, kind: str) -> Entry:
        """Return the cluster or user of a context."""
        name = context.text(kind)
        return self._named(kind, name, context.error(kind, f"there is no {name!r}" if name else "is not set"))

    def _named(self, kind: str, name: str, otherwise: ConfigError) -> Entry:
        for node in cast("ConfigNode", self.config).value[f"{kind}s"]:
            if node.value["name"] == name:
                return Entry.of(node.path, f"{kind}s[{name}]", node.value.get(kind))
        raise otherwise


async def read(files: str, context: str, log_in: bool) -> Access:
    """Read kubeconfig files; see `config.Reader`."""
    return await _log_in(*_read(files, context), log_in=log_in)


def _read(files: str, context: str) -> tuple[Files, Access, Entry, Entry]:
    """Read the files, without a login."""
    if not any(path and Path(path).expanduser().exists() for path in files.split(os.pathsep)):
        raise ConfigError(f"kubeconfig {files}: cannot be read: No such file or directory")
    found = Files(files)
    at = found.context(context)
    cluster = found.part_of(at, "cluster")
    user = found.part_of(at, "user") if at.text("user") else Entry(at.file, at.where, {})
    if not cluster.text("server"):
        raise cluster.error("server", "is not set")
    for name in ("server", "proxy-url"):
        url = cluster.text(name)
        if url and urlsplit(url).scheme not in ("http", "https"):
            raise cluster.error(name, f"{url!r} is not an http or https URL")
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    if certificate and not key:
        raise user.error("client-key", "is not set, but client-certificate is")
    basic = base64.b64encode(f"{user.text('username')}:{user.text('password')}".encode()).decode()
    bearer = user.text("token").strip()
    access = Access(
        server=cluster.text("server").rstrip("/"),
        namespace=at.text("namespace") or "default",
        proxy=cluster.text("proxy-url"),
        tls_server_name=cluster.text("tls-server-name"),
        insecure=cluster.members.get("insecure-skip-tls-verify") is True,
        authority=cluster.pem("certificate-authority"),
        certificate=certificate,
        key=key,
        headers=_impersonation(user),
        authorization=f"Bearer {bearer}" if bearer else f"Basic {basic}" if user.text("username") else "",
        token_file=user.path("tokenFile"),
    )
    return found, access, cluster, user


def _impersonation(user: Entry) -> dict[str, str]:
    groups: list[str] = user.members.get("as-groups") or []
    if len(groups) > 1:
        raise user.error("as-groups", "more than one group is not supported")
    given = {"User": user.text("as"), "Uid": user.text("as-uid"), "Group": "".join(groups)}
    return {f"Impersonate-{name}": value for name, value in given.items() if value}


async def _log_in(found: Files, access: Access, cluster: Entry, user: Entry, *, log_in: bool) -> Access:
    """Log in with the user's plugin or identity provider, if there is one."""
    if user.part("exec").members:
        proof = await _run_plugin(user, cluster, log_in)
    elif user.part("auth-provider").members:
        proof = await _identify(user, log_in)
        found.save_changes()
    else:
        return access
    return msgspec.structs.replace(access, token_file="", **proof)


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


async def _identify(user: Entry, log_in: bool) -> Members:
    """Return members of an `Access` from the user's ID token, which is replaced in the kubeconfig before it expires."""
    name, config = user.part("auth-provider").text("name"), user.part("auth-provider").part("config")
    if name != "oidc":
        raise user.error("auth-provider", f"was removed from Kubernetes ({name}): use an exec plugin")
    expires = _end(config)
    if expires is None or SystemClock().now() >= expires - RENEWAL_MARGIN:
        if not log_in:
            return {"deferred": True}
        config.members.update(await _new_tokens(config))
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
        access = asyncio.run(read(files, context, login == "login"))
    except ConfigError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(msgspec.json.encode(access))


if __name__ == "__main__":
    main()
