"""The webhook service against a real apiserver: admission, conversion, its callers, and its certificates.

The service answers only the apiserver, which shows a client certificate. Its registration repairs itself.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
import pytest_asyncio

from flotilla_cli.local import HOST
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_common.clock import SystemClock
from flotilla_webhook.metrics import process_metrics
from flotilla_webhook.server.certificates import Bundle, issue
from flotilla_webhook.server.http_server import MAX_BODIES, BodyReader
from tests.support.callers import showing_certificate
from tests.support.certificates import Authority
from tests.support.webhook import Running, cloneset, eventually, serving, webhook

SECRET = "kruise-webhook-certs"
SYSTEM = "kruise-system"
CONFIGURATIONS = {
    "mutatingwebhookconfiguration": MUTATING_CONFIGURATION,
    "validatingwebhookconfiguration": VALIDATING_CONFIGURATION,
}
OLD, NEW = "clonesets.v1alpha1.apps.kruise.io", "clonesets.v1beta1.apps.kruise.io"

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Guarded(NamedTuple):
    """The service, and the authority of its only caller."""

    running: Running
    authority: Authority


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Guarded]:
    folder = tmp_path_factory.mktemp("webhook")
    authority = Authority(folder, "front-proxy")
    flags = showing_certificate(folder, authority)
    async with webhook(folder, apiserver_flags=flags, client_authority=authority.file, client_names=HOST) as here:
        yield Guarded(here, authority)


@pytest.fixture
def running(guarded: Guarded) -> Running:
    return guarded.running


async def test_defaults_are_stored_and_both_versions_served(running: Running) -> None:
    spec = (await running.apply(cloneset("plain")))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)
    assert spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "20%"
    assert spec["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert spec["template"]["metadata"]["creationTimestamp"] is None
    await running.apply(cloneset("old", "v1alpha1", updateStrategy={"type": "InPlaceIfPossible", "partition": "50%"}))
    old = await running.read(OLD, "old")
    assert old["spec"]["updateStrategy"]["type"] == "InPlaceIfPossible"
    new = await running.read(NEW, "old")
    assert new["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] == "InPlaceIfPossible"
    assert new["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == "50%"
    assert new["spec"]["scaleStrategy"]["enablePVCReuse"] is True
    assert "old" in await running.kubectl("get", OLD)


async def test_field_errors_are_kubernetes_own(running: Running) -> None:
    broken = cloneset("broken", updateStrategy={"rollingUpdate": {"maxUnavailable": "5"}})
    broken["spec"]["template"]["spec"]["containers"].append({"name": "main", "image": ""})
    message = await running.refused("apply", "-f", "-", stdin=json.dumps(broken))
    assert 'admission webhook "vcloneset.kb.io" denied the request: [' in message
    assert 'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "5"' in message
    assert 'spec.template.spec.containers[1].name: Duplicate value: "main"' in message


async def test_what_the_cluster_does_not_know_is_warned_of(running: Running) -> None:
    document = cloneset("typo")
    document["spec"]["template"]["spec"]["containers"][0]["imagePullPolici"] = "Always"
    command = ["apply", "--dry-run=server", "-f", "-", "--warnings-as-errors"]
    told = await running.refused(*command, stdin=json.dumps(document))
    assert 'unknown field "spec.template.spec.containers[0].imagePullPolici"' in told
    await running.kubectl(*command, stdin=json.dumps(cloneset("fine")))


async def test_a_changed_selector_and_a_missing_pod_are_refused(running: Running) -> None:
    await running.apply(cloneset("fixed", "v1alpha1"))
    patch = {"spec": {"selector": {"matchLabels": None, "matchExpressions": [{"key": "app", "operator": "Exists"}]}}}
    assert "spec: Forbidden" in await running.refused("patch", OLD, "fixed", "--type=merge", "-p", json.dumps(patch))
    arguments = ("fixed", "--type=merge", "-p", json.dumps({"spec": {"scaleStrategy": {"podsToDelete": ["nobody"]}}}))
    assert "find pod nobody failed" in await running.refused("patch", OLD, *arguments)
    await running.kubectl("patch", NEW, *arguments)


async def test_a_stored_template_without_defaults_stays_as_it_is(running: Running) -> None:
    before = await running.apply(cloneset("steady"))
    await running.kubectl("scale", "clone", "steady", "--replicas=2")  # past the webhook, through /scale
    await asyncio.to_thread(running.cluster.send_patch, "clone", "steady", {"spec": {"replicas": 3}})
    after = await running.read("clone", "steady")
    assert after["spec"]["replicas"] == 3
    assert after["spec"]["template"] == before["spec"]["template"]


async def test_the_armed_pod_rule_adds_the_gate(running: Running) -> None:
    await running.kubectl("run", "bare", "--image=nginx:alpine")
    pod = await running.read("pod", "bare")
    assert pod["spec"]["readinessGates"] == [{"conditionType": "KruisePodReady"}]
    await running.kubectl("run", "exempt", "-n", "kube-system", "--image=nginx:alpine")
    exempt = await running.read("pod", "exempt", "-n", "kube-system")
    assert "readinessGates" not in exempt["spec"]


async def test_nobody_but_the_apiserver_is_answered(guarded: Guarded) -> None:
    for path in ("/mutate-apps-kruise-io-cloneset", "/validate-apps-kruise-io-cloneset", "/mutate-pod"):
        assert await asked(guarded.running, path) == 403
    assert await asked(guarded.running, "/mutate-pod", guarded.authority.pair()) != 403


def anything() -> ssl.SSLContext:
    """Return a client's context that accepts any certificate."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    return trust


async def asked(running: Running, path: str, pair: Path | None = None) -> int:
    """Return the status code for a client other than the apiserver."""
    trust = anything()
    if pair is not None:
        trust.load_cert_chain(pair)
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}}
    url = f"https://{HOST}:{running.port}{path}"
    async with aiohttp.request("POST", url, json=review, ssl=trust) as reply:
        return reply.status


async def test_the_apiserver_comes_again_when_there_is_no_room(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write waits while other bodies take all room, and is not refused."""
    take, room = BodyReader._take, [0]

    def take_of_what_is_left(bodies: BodyReader, size: int) -> None:
        bodies.limit = room[-1]
        take(bodies, size)

    monkeypatch.setattr(BodyReader, "_take", take_of_what_is_left)
    applied = asyncio.create_task(running.apply(cloneset("patient")))
    await eventually(sent_away)
    room.append(MAX_BODIES)
    assert (await applied)["metadata"]["name"] == "patient"


async def sent_away() -> bool:
    """Report whether some request was answered 429."""
    (metric,) = process_metrics().requests.collect()
    return any(one.labels.get("code") == "429" and one.value for one in metric.samples)


async def test_registration_is_written_when_it_differs_and_only_then(running: Running) -> None:
    (good,) = await running.ca_bundles()
    before = await running.read("mutatingwebhookconfiguration", MUTATING_CONFIGURATION)
    await running.kubectl("annotate", "crd", "clonesets.apps.kruise.io", "touched=yes")
    await SystemClock().sleep(1)
    after = await running.read("mutatingwebhookconfiguration", MUTATING_CONFIGURATION)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]
    await running.kubectl(
        "patch", "mutatingwebhookconfiguration", MUTATING_CONFIGURATION, "--type=json", "-p", json.dumps(patch)
    )

    async def repaired() -> bool:
        return await running.ca_bundles() == {good}

    await eventually(repaired)


async def test_a_deleted_secret_rotates_everything_and_nobody_notices(running: Running) -> None:
    before, bundles = await running.serial(), await running.ca_bundles()
    await running.apply(cloneset("busy"))
    done = asyncio.Event()

    def write_and_read(number: int) -> None:
        running.cluster.send_patch(OLD, "busy", {"spec": {"minReadySeconds": number % 5}})
        running.cluster.read(OLD, "busy")

    async def use() -> None:
        rounds = 0
        while not done.is_set() or rounds < 2:
            await asyncio.to_thread(write_and_read, rounds)
            await SystemClock().sleep(0.05)
            rounds += 1

    user = asyncio.create_task(use())
    await running.kubectl("delete", "secret", SECRET, "-n", SYSTEM)

    async def rotated() -> bool:
        now = await running.ca_bundles()
        return await running.serial() != before and len(now) == 1 and not now & bundles

    await eventually(rotated)
    done.set()
    await user
    assert not running.health.waiting


async def test_certificates_from_outside_are_waited_for_served_and_replaced(running: Running, tmp_path: Path) -> None:
    """As cert-manager keeps them: a Secret without the authority's key, injected caBundles."""
    await running.stop()
    await running.kubectl("delete", "secret", SECRET, "-n", SYSTEM)
    async with serving(running.cluster, tmp_path, external=True) as other:
        first = issue(HOST, datetime.now(UTC))
        await fill(other, first)

        async def says(text: str) -> bool:
            return text in other.health.report()

        await eventually(lambda: says("does not have the caBundle of the Secret yet"))
        await inject(other, first)
        await eventually(lambda: says("[+]webhook-ready"))
        assert await other.ca_bundles() == {base64.b64encode(first.ca_cert).decode()}
        await other.apply(cloneset("served", "v1alpha1"))
        assert (await other.read(NEW, "served"))["spec"]["replicas"] == 1

        shown = await other.serial()
        await fill(other, issue(HOST, datetime.now(UTC), first))

        async def replaced() -> bool:
            return await other.serial() != shown

        await eventually(replaced)
        await other.apply(cloneset("served-again", "v1alpha1"))
        assert await other.ca_bundles() == {base64.b64encode(first.ca_cert).decode()}


async def fill(running: Running, bundle: Bundle) -> None:
    """Put the certificate into the Secret, as its issuer does."""
    data = {"tls.crt": bundle.cert, "tls.key": bundle.key, "ca.crt": bundle.ca_cert}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": SECRET, "namespace": SYSTEM},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
    await running.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(secret))


async def inject(running: Running, bundle: Bundle) -> None:
    """Put the authority into webhook configurations and CRDs, as cert-manager's injector does."""
    client = {"clientConfig": {"caBundle": base64.b64encode(bundle.ca_cert).decode()}}
    patch = running.cluster.send_patch
    for word, name in CONFIGURATIONS.items():
        entries = (await running.read(word, name))["webhooks"]
        changed = [entry | {"clientConfig": entry["clientConfig"] | client["clientConfig"]} for entry in entries]
        await asyncio.to_thread(patch, word, name, {"webhooks": changed})
    for one in (await running.read("crds"))["items"]:
        if one["spec"]["conversion"]["strategy"] == "Webhook":
            body = {"spec": {"conversion": {"webhook": client}}}
            await asyncio.to_thread(patch, "crd", one["metadata"]["name"], body)
