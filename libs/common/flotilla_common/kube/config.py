"""The way to the apiserver: from a kubeconfig, or from the pod that we run in (docs/adr/0001).

`load_config` looks where kubectl looks: the named files (KUBECONFIG lists them with a colon between), else the pod's
service account, else ~/.kube/config.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from flotilla_common.clock import Clock, SystemClock
from flotilla_common.kube import kubeconfig
from flotilla_common.kube.credentials import Credential, ExecCredential, Fixed, TokenFile, load_client_certificate
from flotilla_common.kube.kubeconfig import Cluster, ConfigError, Entry, Resolved, User

__all__ = ["ApiConfig", "ConfigError", "Source", "find_config", "load_config"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts token, CA and namespace of a pod."""


class Source(Protocol):
    """What decides which cluster is meant; the services' settings have both."""

    @property
    def kubeconfig(self) -> str: ...

    @property
    def context(self) -> str: ...


class ApiConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a client needs to know of one apiserver."""

    server: str  # URL without a trailing slash
    credential: Credential
    tls: ssl.SSLContext | None = None
    tls_server_name: str = ""
    namespace: str = "default"
    headers: Mapping[str, str] = {}  # impersonation


async def load_config(
    source: Source,
    *,
    clock: Clock | None = None,
    env: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> ApiConfig:
    """Find and read the configuration, beside the event loop. Raises ConfigError. Runs no plugin yet."""
    return await asyncio.to_thread(find_config, source, clock or SystemClock(), env, service_account)


def find_config(source: Source, clock: Clock, env: Mapping[str, str], service_account: Path) -> ApiConfig:
    """The same, for callers without an event loop."""
    if source.kubeconfig:
        paths = [Path(part).expanduser() for part in source.kubeconfig.split(os.pathsep) if part]
        return from_kubeconfig(kubeconfig.read(paths, source.context), clock)
    if env.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists() and not source.context:
        return from_service_account(env, service_account, clock)
    home = Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"
    if not home.exists():
        raise ConfigError(
            f"no cluster is configured: no kubeconfig is named, this is no pod, and {home} does not exist"
        )
    return from_kubeconfig(kubeconfig.read([home], source.context), clock)


def from_service_account(env: Mapping[str, str], folder: Path, clock: Clock) -> ApiConfig:
    """The apiserver as pods see it."""
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT", "443")
    authority = f"[{host}]" if ":" in host else host
    try:
        tls = ssl.create_default_context(cadata=(folder / "ca.crt").read_text())
        name = folder / "namespace"
        namespace = name.read_text().strip() if name.exists() else "default"
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"service account {folder}: {error}") from error
    return ApiConfig(
        server=f"https://{authority}:{port}",
        credential=TokenFile(folder / "token", clock),
        tls=tls,
        namespace=namespace,
    )


def from_kubeconfig(resolved: Resolved, clock: Clock) -> ApiConfig:
    """The apiserver as one context of a kubeconfig describes it."""
    cluster, entry = resolved.cluster, resolved.cluster_entry
    server = (cluster.server or "").rstrip("/")
    scheme = urlsplit(server).scheme
    if scheme not in ("http", "https"):
        raise entry.error("server", f"{server!r} is no http or https URL" if server else "is not set")
    if cluster.proxy_url:
        raise entry.error("proxy-url", "is not supported: give a direct route to the apiserver")
    tls = _tls(resolved) if scheme == "https" else None
    return ApiConfig(
        server=server,
        credential=_credential(resolved, clock, tls),
        tls=tls,
        tls_server_name=cluster.tls_server_name or "",
        namespace=resolved.namespace,
        headers=_impersonation(resolved.user, resolved.user_entry),
    )


def _tls(resolved: Resolved) -> ssl.SSLContext:
    tls = _trust(resolved.cluster, resolved.cluster_entry)
    user, entry = resolved.user, resolved.user_entry
    certificate = _data(entry, "client-certificate", user.client_certificate_data, user.client_certificate)
    key = _data(entry, "client-key", user.client_key_data, user.client_key)
    if certificate and not key:
        raise entry.error("client-key", "is not set, but client-certificate is")
    if certificate:
        try:
            load_client_certificate(tls, certificate, key)
        except ssl.SSLError as error:
            raise entry.error("client-certificate", f"and client-key do not load: {error.reason or error}") from error
    return tls


def _trust(cluster: Cluster, entry: Entry) -> ssl.SSLContext:
    if cluster.insecure_skip_tls_verify:
        tls = ssl.create_default_context()
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        return tls
    authority = _data(entry, "certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority)
    try:
        return (
            ssl.create_default_context(cadata=authority.decode("latin-1"))
            if authority
            else ssl.create_default_context()
        )
    except (ssl.SSLError, ValueError) as error:
        raise entry.error("certificate-authority", f"is no PEM certificate: {error}") from error


def _data(entry: Entry, field: str, inline: str | None, path: str | None) -> bytes:
    """A member that comes inline or as a file; inline wins, as in kubectl."""
    if inline:
        return entry.decode(f"{field}-data", inline)
    return entry.read(field, path) if path else b""


def _credential(resolved: Resolved, clock: Clock, tls: ssl.SSLContext | None) -> Credential:
    user, entry = resolved.user, resolved.user_entry
    if user.exec is not None:
        return ExecCredential(user.exec, entry, clock, tls, _cluster_info(resolved))
    if user.auth_provider is not None:
        raise entry.error("auth-provider", "is gone from Kubernetes: use an exec plugin")
    if user.token_file:
        return TokenFile(entry.path(user.token_file), clock)
    if user.token:
        return Fixed.bearer(user.token)
    if user.username:
        return Fixed.basic(user.username, user.password or "")
    return Fixed()


def _cluster_info(resolved: Resolved) -> dict[str, object]:
    """The cluster as a plugin is told of it."""
    cluster = resolved.cluster
    return {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name or "",
        "insecure-skip-tls-verify": bool(cluster.insecure_skip_tls_verify),
        "certificate-authority-data": cluster.certificate_authority_data or "",
    }


def _impersonation(user: User, entry: Entry) -> dict[str, str]:
    headers: dict[str, str] = {}
    if user.impersonate:
        headers["Impersonate-User"] = user.impersonate
    if user.impersonate_uid:
        headers["Impersonate-Uid"] = user.impersonate_uid
    groups = user.impersonate_groups or []
    if len(groups) > 1:
        raise entry.error("as-groups", "more than one group is not supported")
    if groups:
        headers["Impersonate-Group"] = groups[0]
    return headers
