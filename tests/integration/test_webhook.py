"""The webhook service against a real apiserver: admission, conversion, and a registration that repairs itself."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from flotilla_common.api.webhooks import MUTATING_CONFIGURATION
from flotilla_common.clock import SystemClock
from flotilla_webhook.metrics import process_metrics
from flotilla_webhook.server.http_server import MAX_BODIES, MAX_BODY
from tests.support.webhook import Running, cloneset, eventually, webhook

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with webhook(tmp_path_factory.mktemp("webhook")) as here:
        yield here


async def test_defaults_are_stored(running: Running) -> None:
    spec = (await running.apply(cloneset("plain")))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)
    assert spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "20%"
    assert spec["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert spec["template"]["metadata"]["creationTimestamp"] is None


async def test_both_versions_are_served(running: Running) -> None:
    await running.apply(cloneset("old", "v1alpha1", updateStrategy={"type": "InPlaceIfPossible", "partition": "50%"}))
    old = await running.read("clonesets.v1alpha1.apps.kruise.io", "old")
    assert old["spec"]["updateStrategy"]["type"] == "InPlaceIfPossible"
    new = await running.read("clonesets.v1beta1.apps.kruise.io", "old")
    assert new["spec"]["updateStrategy"]["rollingUpdate"]["podUpdatePolicy"] == "InPlaceIfPossible"
    assert new["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == "50%"
    assert new["spec"]["scaleStrategy"]["enablePVCReuse"] is True
    listed = await running.kubectl("get", "clonesets.v1alpha1.apps.kruise.io")
    assert "old" in listed


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
    assert "spec: Forbidden" in await running.refused(
        "patch", "clonesets.v1alpha1.apps.kruise.io", "fixed", "--type=merge", "-p", json.dumps(patch)
    )
    patch = {"spec": {"scaleStrategy": {"podsToDelete": ["nobody"]}}}
    arguments = ("--type=merge", "-p", json.dumps(patch))
    assert "find pod nobody failed" in await running.refused(
        "patch", "clonesets.v1alpha1.apps.kruise.io", "fixed", *arguments
    )
    await running.kubectl("patch", "clonesets.v1beta1.apps.kruise.io", "fixed", *arguments)


async def test_a_stored_template_without_defaults_stays_as_it_is(running: Running) -> None:
    before = await running.apply(cloneset("steady"))
    await running.kubectl("scale", "clone", "steady", "--replicas=2")  # past the webhook, through /scale
    await running.kubectl("patch", "clone", "steady", "--type=merge", "-p", '{"spec":{"replicas":3}}')
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


async def test_an_edited_ca_bundle_is_repaired(running: Running) -> None:
    (good,) = await running.ca_bundles()
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]
    await running.kubectl(
        "patch", "mutatingwebhookconfiguration", MUTATING_CONFIGURATION, "--type=json", "-p", json.dumps(patch)
    )

    async def repaired() -> bool:
        return await running.ca_bundles() == {good}

    await eventually(repaired)


async def test_the_apiserver_comes_again_when_there_is_no_room(running: Running) -> None:
    """All room is taken by bodies whose last byte does not come: a write waits for it, and is not refused."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    head = f"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {MAX_BODY}\r\n\r\n"
    senders: list[asyncio.StreamWriter] = []
    room = MAX_BODIES
    while room:
        _, writer = await asyncio.open_connection("127.0.0.1", running.port, ssl=trust)
        writer.write(head.encode() + b" " * min(room, MAX_BODY - 1))
        await writer.drain()
        senders.append(writer)
        room -= min(room, MAX_BODY - 1)
    applied = asyncio.create_task(running.apply(cloneset("patient")))
    await eventually(sent_away)
    for writer in senders:
        writer.transport.abort()
    assert (await applied)["metadata"]["name"] == "patient"


async def sent_away() -> bool:
    """Report whether some request was answered 429."""
    (metric,) = process_metrics().requests.collect()
    return any(one.labels.get("code") == "429" and one.value for one in metric.samples)


async def test_registration_is_written_only_when_it_differs(running: Running) -> None:
    before = await running.read("mutatingwebhookconfiguration", MUTATING_CONFIGURATION)
    await running.kubectl("annotate", "crd", "clonesets.apps.kruise.io", "touched=yes")
    await SystemClock().sleep(1)
    after = await running.read("mutatingwebhookconfiguration", MUTATING_CONFIGURATION)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_a_deleted_secret_rotates_everything_and_nobody_notices(running: Running) -> None:
    before, bundles = await running.serial(), await running.ca_bundles()
    await running.apply(cloneset("busy"))
    done = asyncio.Event()

    async def write_and_read() -> None:
        rounds = 0
        while not done.is_set() or rounds < 2:
            patch = json.dumps({"spec": {"minReadySeconds": rounds % 5}})
            await running.kubectl("patch", "clonesets.v1alpha1.apps.kruise.io", "busy", "--type=merge", "-p", patch)
            await running.kubectl("get", "clonesets.v1alpha1.apps.kruise.io", "busy")
            rounds += 1

    user = asyncio.create_task(write_and_read())
    await running.kubectl("delete", "secret", "kruise-webhook-certs", "-n", "kruise-system")

    async def rotated() -> bool:
        now = await running.ca_bundles()
        return await running.serial() != before and len(now) == 1 and not now & bundles

    await eventually(rotated)
    done.set()
    await user
    assert not running.health.waiting
