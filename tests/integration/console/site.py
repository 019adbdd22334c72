"""The console as a process beside the services and a real control plane, behind a proxy that signs users in.

It has the account, the rights and the bus permissions that the chart gives it, and acts for its users by constrained
impersonation.
"""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from flotilla_console import app
from flotilla_dev.cluster.ports import free_ports
from tests.integration.browser.site.front import Front, front
from tests.support.chart import rendered
from tests.support.chart_rights import kubeconfig_of
from tests.support.fleet import Fleet
from tests.support.helm import helm
from tests.testkit.documents import Json

HOST = "127.0.0.1"
SECRET = "a-secret-of-the-proxy"
VALUES = (
    "console.enabled=true",
    "console.signIn={proxy}",
    "console.proxy.secret=proxy",
    "console.impersonation.users={*}",
    "console.impersonation.groups={developers}",
)
RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}
KUBERNETES = "1.36.0"
"""The first release that restricts an impersonator to kinds of requests."""

DEVELOPER: Sequence[Json] = (
    {"apiGroups": ["apps.kruise.io"], "resources": ["clonesets"], "verbs": ["get", "list", "patch"]},
    {"apiGroups": ["apps.kruise.io"], "resources": ["containerrecreaterequests"], "verbs": ["create"]},
    {"apiGroups": ["apps"], "resources": ["controllerrevisions"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["pods/log", "events"], "verbs": ["get", "list"]},
)
"""The rights of somebody who develops one application."""

READER: Sequence[Json] = (
    {"apiGroups": ["apps.kruise.io"], "resources": ["clonesets"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
)


class Site:
    """The console and the proxy in front of it."""

    def __init__(self, flotilla: Fleet, proxy: Front, url: str, flags: Sequence[str]) -> None:
        self.flotilla, self.proxy, self.url = flotilla, proxy, url
        self._flags = flags

    async def start(self) -> None:
        """Start the console, and wait until it is ready."""
        await self.flotilla.start(app.NAME, flags=self._flags)

    def admit(self, name: str, namespace: str, rules: Sequence[Json], kind: str = "User") -> None:
        """Give a user or a group these rights in a namespace."""
        metadata = {"name": name, "namespace": namespace}
        subject = {"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        self.flotilla.cluster.create(
            RBAC | {"kind": "Role", "metadata": metadata, "rules": list(rules)},
            RBAC | {"kind": "RoleBinding", "metadata": metadata, "subjects": [subject], "roleRef": reference},
        )

    def admit_everywhere(self, user: str) -> None:
        """Give a user all rights."""
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        metadata = {"name": f"everything-{user}"}
        self.flotilla.cluster.create(
            RBAC | {"kind": "ClusterRoleBinding", "metadata": metadata, "subjects": [subject], "roleRef": reference}
        )


async def account(flotilla: Fleet) -> Path:
    """Return a kubeconfig with the account that the chart gives the console."""
    chart = rendered(await helm(), *VALUES, kubernetes=KUBERNETES)
    return await asyncio.to_thread(kubeconfig_of, app.NAME, flotilla.cluster, chart)


@asynccontextmanager
async def site(flotilla: Fleet, folder: Path) -> AsyncGenerator[Site]:
    """Run console and proxy for the time of the block."""
    own, port = free_ports(2)
    secret, key = folder / "proxy-secret", folder / "cookie-key"
    secret.write_text(SECRET, encoding="utf-8")
    key.write_bytes(urlsafe_b64encode(bytes(range(32))))
    flags = (
        f"--kubeconfig={await account(flotilla)}",
        f"--console-listen={HOST}",
        f"--console-port={own}",
        "--console-sign-in=proxy",
        f"--console-proxy-secret-file={secret}",
        f"--console-cookie-key-file={key}",
    )
    async with front(port, f"http://{HOST}:{own}", SECRET) as proxy:
        made = Site(flotilla, proxy, f"http://{HOST}:{port}", flags)
        await made.start()
        yield made
