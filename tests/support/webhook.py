"""The webhook service in the test's own process, in front of a real apiserver, which calls it at its URL.

So kubectl runs in threads.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from cryptography import x509

from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_common.gates import Gates
from flotilla_common.health import Health
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.service import Context
from flotilla_common.settings import Settings
from flotilla_dev.cluster.ports import free_ports
from flotilla_insight.installation.manifests import manifests
from flotilla_webhook import app
from tests.support.cluster import Cluster, control_plane
from tests.support.fake_bus import FakeBus

GATES = "KruisePodReadinessGate=true,DeletionProtectionForCRDCascadingGate=true"


class Running:
    """A cluster with the webhook service in front."""

    def __init__(
        self, cluster: Cluster, port: int, health: Health, protection_log: Path, service: asyncio.Task[None]
    ) -> None:
        self.cluster = cluster
        self.port = port
        self.health = health
        self.protection_log = protection_log
        self._service = service

    async def stop(self) -> None:
        """End the service."""
        self._service.cancel()
        await asyncio.gather(self._service, return_exceptions=True)

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return await asyncio.to_thread(self.cluster.kubectl, *arguments, stdin=stdin)

    async def refused(self, *arguments: str, stdin: str = "") -> str:
        """Return kubectl's output for a command that must be refused."""
        with pytest.raises(AssertionError) as refusal:
            await self.kubectl(*arguments, stdin=stdin)
        return str(refusal.value)

    async def read(self, *arguments: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.cluster.read, *arguments)

    async def apply(self, document: dict[str, Any]) -> dict[str, Any]:
        made = await asyncio.to_thread(self.cluster.api_objects.first_apply, document)
        return made or json.loads(await self.kubectl("apply", "-o", "json", "-f", "-", stdin=json.dumps(document)))

    async def ca_bundles(self) -> set[str]:
        """Return every caBundle of both configurations and the CRD."""
        bundles: set[str] = set()
        for kind, name in (
            ("mutatingwebhookconfigurations", MUTATING_CONFIGURATION),
            ("validatingwebhookconfigurations", VALIDATING_CONFIGURATION),
        ):
            bundles |= {
                entry["clientConfig"].get("caBundle", "") for entry in (await self.read(kind, name))["webhooks"]
            }
        crd = await self.read("crd", "clonesets.apps.kruise.io")
        return bundles | {crd["spec"]["conversion"]["webhook"]["clientConfig"].get("caBundle", "")}

    async def serial(self) -> int:
        """Return the serial number of the certificate that a new connection is shown."""
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=trust)
        shown = cast("ssl.SSLObject", writer.get_extra_info("ssl_object")).getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        assert shown is not None
        return x509.load_der_x509_certificate(shown).serial_number


async def eventually(check: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """Wait until the check holds."""
    clock = SystemClock()
    async with asyncio.timeout(seconds):
        while not await check():
            await clock.sleep(0.1)


@asynccontextmanager
async def webhook(
    folder: Path,
    *,
    apiserver_flags: tuple[str, ...] = (),
    client_authority: Path | None = None,
    client_names: str = "",
) -> AsyncIterator[Running]:
    """Run a control plane with one node, its state in `folder`, and the ready service.

    With `client_authority` it requires a certificate from clients.
    """
    async with (
        control_plane(folder / "plane", nodes=1, apiserver_flags=apiserver_flags) as cluster,
        serving(cluster, folder, client_authority=client_authority, client_names=client_names) as running,
    ):
        yield running


@asynccontextmanager
async def serving(
    cluster: Cluster,
    folder: Path,
    *,
    external: bool = False,
    client_authority: Path | None = None,
    client_names: str = "",
) -> AsyncIterator[Running]:
    """Run the service on a control plane. It is ready, or waits for certificates from outside with `external`."""
    (port,) = free_ports(1)
    url = f"https://127.0.0.1:{port}"
    settings = Settings(
        kubeconfig=str(cluster.kubeconfig),
        webhook_url=url,
        webhook_port=port,
        webhook_cert_dir=str(folder / "certs"),
        protection_log_path=str(folder),
        webhook_client_ca=str(client_authority or ""),
        webhook_client_names=client_names,
        feature_gates="EnableExternalCerts=true" if external else GATES,
    )
    # The installation has neither the gates that arm the pod rule nor the URL: the service writes both, unless
    # certificates are from outside, when it writes nothing.
    items = json.loads(msgspec.json.encode(manifests(Gates.parse(""), url if external else "")))
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    command = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    await asyncio.to_thread(cluster.kubectl, *command, stdin=listed)
    api = KubeClient(await load_config(settings, reader=read_here), user_agent="kruise-manager/webhook")
    health = Health()
    context = Context(
        service="webhook",
        settings=settings,
        gates=settings.gates(),
        api=api,
        bus=cast("Bus", FakeBus()),
        clock=SystemClock(),
        entropy=SystemEntropy(),
        health=health,
        replica="test",
    )
    service = asyncio.create_task(app.run(context))
    running = Running(cluster, port, health, folder / "protection.log", service)
    try:
        if not external:
            await eventually(lambda: _ready(service, health))
        yield running
    finally:
        await running.stop()
        await api.close()


async def _ready(service: asyncio.Task[None], health: Health) -> bool:
    if service.done():
        service.result()
    return "[+]webhook-ready" in health.report()


def cloneset(name: str, version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    """Return a CloneSet of one container, with these fields in its spec."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "nginx:alpine"}]},
    }
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "CloneSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template} | spec,
    }
