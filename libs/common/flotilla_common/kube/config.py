"""Configuration of the connection to the apiserver: from a kubeconfig, or from the pod that we run in.

`load_config` looks where kubectl does: the named files (KUBECONFIG separates them with colons), then the pod's service
account, then ~/.kube/config. For credential plugins and identity providers there is kubernetes_asyncio, which takes
more memory than a service can spare: services run it in a process of its own, commands import it, and neither loads it
for other users or in a pod (docs/adr/0009).
"""

import asyncio
import contextlib
import os
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from flotilla_common.clock import Clock, SystemClock
from flotilla_common.kube.credentials import Access, ConfigError, Credential, Login, TokenFile, load_client_certificate

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder in which the kubelet puts token, CA and namespace of a pod."""

LOGIN_SECONDS = 60.0
"""Timeout for plugins and identity providers, which may be far away."""

Reader = Callable[[str, str, bool], Awaitable[Access]]
"""Reads kubeconfig files (separated by colons) for a context (empty: the current one), and logs in if asked to.

Raises ConfigError.
"""


class Source(Protocol):
    """The settings that select the cluster; the services' settings have both."""

    @property
    def kubeconfig(self) -> str: ...

    @property
    def context(self) -> str: ...


class ApiConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The connection parameters of one apiserver."""

    server: str  # URL without a trailing slash
    credential: Credential
    tls: ssl.SSLContext | None = None
    tls_server_name: str = ""
    proxy: str = ""  # URL
    namespace: str = "default"
    headers: Mapping[str, str] = {}  # impersonation


async def read_here(files: str, context: str, log_in: bool) -> Access:
    """Read kubeconfig files, and log in, in this process: a `Reader` for commands."""
    from flotilla_common.kube import kubeconfig  # imported late, because pods need no YAML

    found = kubeconfig.read(files, context)
    if not found.needs_login:
        return found.access
    from flotilla_common.kube import logins  # imported late, because it takes 37 MiB

    return await logins.access_of(found, log_in=log_in)


async def read_apart(files: str, context: str, log_in: bool) -> Access:
    """Read kubeconfig files, and log in, in a subprocess: a `Reader` for services.

    If it hangs, it is killed with the plugin that it started.
    """
    from flotilla_common.kube import kubeconfig  # imported late, because pods need no YAML

    found = kubeconfig.read(files, context)
    if not found.needs_login:
        return found.access
    command = [sys.executable, "-P", "-m", "flotilla_common.kube.logins", files, context, "login" * log_in]
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=nothing, stdout=pipe, stderr=pipe, start_new_session=True
    )
    try:
        async with asyncio.timeout(LOGIN_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise ConfigError(f"kubeconfig {files}: no login within {LOGIN_SECONDS:.0f} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode != 0:
        raise ConfigError(errors.decode(errors="replace").strip())
    return msgspec.json.decode(output, type=Access)


async def load_config(
    source: Source,
    *,
    reader: Reader = read_apart,
    clock: Clock | None = None,
    env: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> ApiConfig:
    """Find and read the configuration, without running plugins yet. Raises ConfigError."""
    clock = clock or SystemClock()
    in_pod = env.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists()
    if in_pod and not source.kubeconfig and not source.context:
        return _from_service_account(env, service_account, clock)
    files = source.kubeconfig or _default_file(env)
    access = await reader(files, source.context, False)
    tls = _tls(access, files) if access.server.startswith("https:") else None
    renew = partial(reader, files, source.context, True)
    return ApiConfig(
        server=access.server,
        credential=TokenFile(Path(access.token_file), clock) if access.token_file else Login(access, tls, renew, clock),
        tls=tls,
        tls_server_name=access.tls_server_name,
        proxy=access.proxy,
        namespace=access.namespace,
        headers=access.headers,
    )


def _default_file(env: Mapping[str, str]) -> str:
    home = Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"
    if not home.exists():
        raise ConfigError(
            f"no cluster is configured: no kubeconfig is given, this is not a pod, and {home} does not exist"
        )
    return str(home)


def _from_service_account(env: Mapping[str, str], folder: Path, clock: Clock) -> ApiConfig:
    """Return the configuration for the apiserver from inside a pod."""
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


def _tls(access: Access, files: str) -> ssl.SSLContext:
    try:
        tls = ssl.create_default_context(cadata=access.authority or None)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"kubeconfig {files}: certificate-authority: is not a PEM certificate: {error}") from error
    if access.insecure:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    load_client_certificate(tls, access)
    return tls
