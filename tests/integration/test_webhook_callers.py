"""A webhook that answers only the apiserver, where that shows a client certificate."""

import json
import ssl
from pathlib import Path

import aiohttp

from flotilla_cli.local import HOST
from tests.support.callers import showing_certificate
from tests.support.certificates import Authority
from tests.support.webhook import Running, cloneset, webhook


async def asked(running: Running, path: str, pair: Path | None = None) -> int:
    """Return the status code for a client other than the apiserver."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        trust.load_cert_chain(pair)
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}}
    url = f"https://{HOST}:{running.port}{path}"
    async with aiohttp.request("POST", url, json=review, ssl=trust) as reply:
        return reply.status


async def test_the_apiserver_is_answered_and_nobody_else(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "front-proxy")
    flags = showing_certificate(tmp_path, authority)
    async with webhook(tmp_path, apiserver_flags=flags, client_authority=authority.file, client_names=HOST) as running:
        await running.apply(cloneset("served", "v1alpha1"))  # defaulted, validated, converted
        assert (await running.read("clonesets.v1beta1.apps.kruise.io", "served"))["spec"]["replicas"] == 1
        wrong = cloneset("wrong", selector={"matchLabels": {"app": "another"}})
        assert "selector" in await running.refused("apply", "-f", "-", stdin=json.dumps(wrong))
        for path in ("/mutate-apps-kruise-io-cloneset", "/validate-apps-kruise-io-cloneset", "/mutate-pod"):
            assert await asked(running, path) == 403
        assert await asked(running, "/mutate-pod", authority.pair()) != 403
