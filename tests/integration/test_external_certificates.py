"""Certificates from outside, as cert-manager keeps them: a Secret without the authority's key, injected caBundles."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flotilla_webhook.server.certificates import Bundle, issue
from tests.support.webhook import Running, cloneset, eventually, webhook

CONFIGURATIONS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


async def fill(running: Running, bundle: Bundle) -> None:
    """Put the certificate into the Secret, as its issuer does."""
    data = {"tls.crt": bundle.cert, "tls.key": bundle.key, "ca.crt": bundle.ca_cert}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "kruise-webhook-certs", "namespace": "kruise-system"},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
    await running.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(secret))


async def inject(running: Running, bundle: Bundle) -> None:
    """Put the authority into webhook configurations and CRDs, as cert-manager's injector does."""
    authority = base64.b64encode(bundle.ca_cert).decode()
    for kind in CONFIGURATIONS:
        for one in (await running.read(kind))["items"]:
            for entry in one["webhooks"]:
                entry["clientConfig"]["caBundle"] = authority
            await running.kubectl("replace", "-f", "-", stdin=json.dumps(one))
    client: dict[str, Any] = {"clientConfig": {"caBundle": authority}}
    for one in (await running.read("crds"))["items"]:
        if one["spec"]["conversion"]["strategy"] == "Webhook":
            patch = json.dumps({"spec": {"conversion": {"webhook": client}}})
            await running.kubectl("patch", "crd", one["metadata"]["name"], "--type=merge", "-p", patch)


async def test_the_webhook_waits_for_them_serves_them_and_takes_up_new_ones(tmp_path: Path) -> None:
    async with webhook(tmp_path, external=True) as running:
        first = issue("127.0.0.1", datetime.now(UTC))
        await fill(running, first)

        async def says(text: str) -> bool:
            return text in running.health.report()

        await eventually(lambda: says("does not have the caBundle of the Secret yet"))
        await inject(running, first)
        await eventually(lambda: says("[+]webhook-ready"))
        assert await running.ca_bundles() == {base64.b64encode(first.ca_cert).decode()}
        await running.apply(cloneset("served", "v1alpha1"))
        assert (await running.read("clonesets.v1beta1.apps.kruise.io", "served"))["spec"]["replicas"] == 1

        shown = await running.serial()
        renewed = issue("127.0.0.1", datetime.now(UTC), first)
        await fill(running, renewed)

        async def replaced() -> bool:
            return await running.serial() != shown

        await eventually(replaced)
        await running.apply(cloneset("served-anew", "v1alpha1"))
        assert await running.ca_bundles() == {base64.b64encode(first.ca_cert).decode()}
