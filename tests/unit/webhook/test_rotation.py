"""Registration and its rotator: in step, written only when needed, no fights (webhooks.md §3.4, §4, §6, §11)."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_common.api.podrules import RULES
from flotilla_common.api.resources import CRD, MUTATING, SECRET, VALIDATING
from flotilla_common.api.webhooks import (
    MUTATING_CONFIGURATION,
    VALIDATING_CONFIGURATION,
    mutating_entries,
    path_of,
    validating_entries,
)
from flotilla_common.gates import Gates
from flotilla_webhook.chain import readiness_step
from flotilla_webhook.pods.activation import LINGER_SECONDS, ActiveRules
from flotilla_webhook.pods.admission import PodAdmission, PodChecks
from flotilla_webhook.server.certificates import Bundle, issue
from flotilla_webhook.server.registration import Endpoint, Registration, RegistrationError
from flotilla_webhook.server.rotation import APART, INTERVAL, CertificateRotator
from flotilla_webhook.server.stores import SecretStore, files_of
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

CA, OTHER = b"ca", b"other"
BUNDLE = base64.b64encode(CA).decode()
NAMESPACE, SERVICE = "kruise-system", "kruise-webhook-service"
CLONE_SETS = "clonesets.apps.kruise.io"
GATES = Gates.parse("")
PATHS = {path_of(entry) for entry in mutating_entries() + validating_entries(GATES)}
MUTATORS = [entry["name"] for entry in mutating_entries()]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def installed(**annotations: str) -> FakeApi:
    """Return a cluster after an installation."""
    cluster = FakeApi()
    metadata = {"annotations": annotations} if annotations else {}
    for resource, name, entries in (
        (MUTATING, MUTATING_CONFIGURATION, mutating_entries()),
        (VALIDATING, VALIDATING_CONFIGURATION, validating_entries(GATES)),
    ):
        cluster.put(resource, {"metadata": {"name": name} | metadata, "webhooks": entries})
    webhook = {"clientConfig": {}, "conversionReviewVersions": ["v1"]}
    for name, group, conversion in (
        (CLONE_SETS, "apps.kruise.io", {"strategy": "Webhook", "webhook": webhook}),
        ("broadcastjobs.apps.kruise.io", "apps.kruise.io", {"strategy": "None"}),
        ("widgets.example.com", "example.com", {"strategy": "Webhook", "webhook": webhook}),
    ):
        cluster.put(CRD, {"metadata": {"name": name}, "spec": {"group": group, "conversion": conversion}})
    return cluster


def registration(
    cluster: FakeApi, *, url: str = "", gates: str = "", paths: set[str] = PATHS, clock: FakeClock | None = None
) -> Registration:
    parsed = Gates.parse(gates)
    pods = PodAdmission([readiness_step(parsed)], ActiveRules(clock or FakeClock()))
    checks = PodChecks(cluster.api, [], ActiveRules(clock or FakeClock()))
    made = {MUTATING: pods.entries, VALIDATING: checks.entries}
    external = parsed.on("EnableExternalCerts")
    return Registration(cluster.api, Endpoint(NAMESPACE, SERVICE, url), paths, made, external=external)


def entries(cluster: FakeApi, validating: bool = False) -> dict[str, Json]:
    resource, name = (VALIDATING, VALIDATING_CONFIGURATION) if validating else (MUTATING, MUTATING_CONFIGURATION)
    return {entry["name"]: entry for entry in cluster.named(resource, "", name)["webhooks"]}


def conversion(cluster: FakeApi) -> Json:
    return cluster.named(CRD, "", CLONE_SETS)["spec"]["conversion"]


async def test_everything_in_step() -> None:
    cluster = installed()
    assert await registration(cluster).sync(CA) == [MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION, CLONE_SETS]
    for entry in [*entries(cluster).values(), *entries(cluster, validating=True).values()]:
        assert entry["clientConfig"]["caBundle"] == BUNDLE
    service = {"namespace": NAMESPACE, "name": SERVICE, "path": "/convert", "port": 443}
    assert conversion(cluster) == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service, "caBundle": BUNDLE},
            "conversionReviewVersions": ["v1", "v1beta1"],
        },
    }
    assert cluster.named(CRD, "", "widgets.example.com")["spec"]["conversion"]["webhook"]["clientConfig"] == {}
    assert await registration(cluster).sync(CA) == []


async def test_outside_the_cluster_a_url_is_called_and_back() -> None:
    cluster = installed()
    outside = registration(cluster, url="https://10.0.0.1:9876")
    await outside.sync(CA)
    client = entries(cluster)["mcloneset.kb.io"]["clientConfig"]
    assert client == {"url": "https://10.0.0.1:9876/mutate-apps-kruise-io-cloneset", "caBundle": BUNDLE}
    assert conversion(cluster)["webhook"]["clientConfig"] == {
        "url": "https://10.0.0.1:9876/convert",
        "caBundle": BUNDLE,
    }
    assert await outside.sync(CA) == []
    await registration(cluster).sync(CA)  # the template still has Service
    assert "service" in entries(cluster)["mcloneset.kb.io"]["clientConfig"]
    assert "url" not in conversion(cluster)["webhook"]["clientConfig"]


async def test_the_template_is_made_once_and_then_rules() -> None:
    cluster = installed(template="")
    await registration(cluster).sync(CA)
    stored = cluster.named(MUTATING, "", MUTATING_CONFIGURATION)
    assert [entry["name"] for entry in json.loads(stored["metadata"]["annotations"]["template"])] == MUTATORS
    stored["webhooks"] = []
    assert await registration(cluster).sync(CA) == [MUTATING_CONFIGURATION]
    assert set(entries(cluster)) == set(MUTATORS)


async def test_entries_without_a_handler_are_dropped_and_come_back() -> None:
    cluster = installed()
    await registration(cluster, paths=PATHS - {"/validate-service", "/validate-ingress"}).sync(CA)
    assert "vservice.kb.io" not in entries(cluster, validating=True)
    await registration(cluster).sync(CA)
    assert "vservice.kb.io" in entries(cluster, validating=True)


async def test_the_pod_rule_stands_only_while_it_is_needed() -> None:
    cluster = installed()
    rule_sources = registration(cluster, gates="KruisePodReadinessGate=true")
    await rule_sources.sync(CA)
    assert set(entries(cluster)) == {"mpod.kb.io", *MUTATORS}
    assert entries(cluster)["mpod.kb.io"]["clientConfig"]["caBundle"] == BUNDLE
    assert await rule_sources.sync(CA) == []
    clock = FakeClock()
    disarmed = registration(cluster, clock=clock)
    assert await disarmed.sync(CA) == []  # another replica may have newer facts
    clock.time += LINGER_SECONDS + 1
    await disarmed.sync(CA)
    assert set(entries(cluster)) == set(MUTATORS)
    assert RULES not in cluster.named(MUTATING, "", MUTATING_CONFIGURATION)["metadata"]["annotations"]


async def test_external_certificates_are_only_checked() -> None:
    cluster = installed()
    outside = registration(cluster, gates="EnableExternalCerts=true")
    with pytest.raises(RegistrationError, match=r"m\w+\.kb\.io of kruise-mutating-webhook-configuration"):
        await outside.sync(CA)
    assert cluster.writes == []
    await registration(cluster).sync(CA)
    cluster.writes.clear()
    assert await outside.sync(CA) == []
    conversion(cluster)["webhook"]["clientConfig"]["caBundle"] = ""
    with pytest.raises(RegistrationError, match=f"conversion of {CLONE_SETS}"):
        await outside.sync(CA)
    assert cluster.writes == []


async def test_with_external_certificates_only_the_pod_rule_is_written() -> None:
    cluster = installed()
    await registration(cluster).sync(CA)
    before = entries(cluster)
    outside = registration(cluster, gates="EnableExternalCerts=true,KruisePodReadinessGate=true")
    assert await outside.sync(CA) == [MUTATING_CONFIGURATION]
    pods = entries(cluster)["mpod.kb.io"]
    assert entries(cluster) == before | {"mpod.kb.io": pods}
    assert pods["clientConfig"]["caBundle"] == BUNDLE
    assert await outside.sync(CA) == []


async def test_a_pod_rule_of_somebody_else_gives_way() -> None:
    """The template of OpenKruise's chart covers every pod."""
    theirs = {"name": "mpod.kb.io", "clientConfig": {"service": {"path": "/mutate-pod"}}}
    cluster = installed(template=json.dumps([theirs, *mutating_entries()]))
    await registration(cluster).sync(CA)
    assert set(entries(cluster)) == set(MUTATORS)


async def test_a_broken_template_is_said() -> None:
    with pytest.raises(RegistrationError, match="annotation template"):
        await registration(installed(template="{")).sync(CA)


class StepClock:
    """A clock whose time passes only in sleeps, each ended by the test; records their lengths."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []
        self.go = asyncio.Semaphore(0)
        self.asleep = asyncio.Event()

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.time)

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.asleep.set()
        await self.go.acquire()
        self.time += seconds


class Kept:
    """A rotator over a fake cluster."""

    def __init__(self, cluster: FakeApi, directory: Path, host: str = "webhook.svc") -> None:
        self.clock = StepClock()
        self.used = 0
        self.rotator = CertificateRotator(
            store=SecretStore(cluster.api, NAMESPACE, "certs"),
            directory=directory,
            host=host,
            renew_before=timedelta(days=180),
            registration=registration(cluster),
            use=self.use,
            clock=self.clock,
        )

    def use(self, _: Path) -> None:
        self.used += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.rotator.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def asleep(self, count: int) -> None:
        """Wait until the rotator has gone to sleep this many times."""
        async with asyncio.timeout(10):
            while len(self.clock.slept) < count:
                self.clock.asleep.clear()
                await self.clock.asleep.wait()


def secret_of(bundle: Bundle) -> Json:
    data = {key: base64.b64encode(value).decode() for key, value in files_of(bundle).items()}
    return {"metadata": {"name": "certs", "namespace": NAMESPACE}, "data": data}


async def test_first_pass_makes_everything(tmp_path: Path) -> None:
    cluster = installed()
    kept = Kept(cluster, tmp_path)
    written = await kept.rotator.once()
    assert written == [MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION, CLONE_SETS]
    assert kept.used == 1
    assert kept.rotator.certified.is_set()
    assert await kept.rotator.once() == []
    assert kept.used == 1


async def test_a_second_replica_changes_nothing(tmp_path: Path) -> None:
    cluster = installed()
    await Kept(cluster, tmp_path / "a").rotator.once()
    cluster.writes.clear()
    second = Kept(cluster, tmp_path / "b")
    assert await second.rotator.once() == []
    assert cluster.writes == []
    assert second.used == 1


async def test_row_16_a_deleted_secret_is_made_anew(tmp_path: Path) -> None:
    cluster = installed()
    kept = Kept(cluster, tmp_path)
    await kept.rotator.once()
    before = entries(cluster)["mcloneset.kb.io"]["clientConfig"]["caBundle"]
    del cluster.objects["secrets", NAMESPACE, "certs"]
    rotation = asyncio.create_task(kept.rotator.once())
    await kept.asleep(1)
    both = base64.b64decode(entries(cluster)["mcloneset.kb.io"]["clientConfig"]["caBundle"])
    assert both.endswith(base64.b64decode(before))  # until the new certificate is served, both are trusted
    assert kept.used == 1
    kept.clock.go.release()
    assert len(await rotation) == 6
    after = base64.b64decode(entries(cluster)["mcloneset.kb.io"]["clientConfig"]["caBundle"])
    assert both == after + base64.b64decode(before)
    assert kept.used == 2


async def test_row_17_a_certificate_is_renewed_before_its_end(tmp_path: Path) -> None:
    cluster = installed()
    old = issue("webhook.svc", NOW - timedelta(days=3650 - 100))
    cluster.put(SECRET, secret_of(old))
    await Kept(cluster, tmp_path).rotator.once()
    renewed = cluster.named(SECRET, NAMESPACE, "certs")["data"]
    assert renewed["cert.pem"] != secret_of(old)["data"]["cert.pem"]


async def test_failures_are_said_and_retried_ever_more_slowly(tmp_path: Path) -> None:
    cluster = installed()
    config = cluster.objects.pop((MUTATING.plural, "", MUTATING_CONFIGURATION))
    kept = Kept(cluster, tmp_path)
    async with kept.running():
        for count in range(1, 5):
            await kept.asleep(count)
            if count < 4:
                kept.clock.go.release()
        assert kept.clock.slept == [0.25, 0.5, 1.0, 2.0]
        assert "not found" in kept.rotator.failure
        assert kept.rotator.certified.is_set()
        assert not kept.rotator.initialised.is_set()
        cluster.objects[MUTATING.plural, "", MUTATING_CONFIGURATION] = config
        kept.clock.go.release()
        async with asyncio.timeout(10):
            await kept.rotator.initialised.wait()
        assert kept.rotator.failure == ""


async def test_a_fight_slows_down(tmp_path: Path) -> None:
    cluster = installed()
    kept = Kept(cluster, tmp_path)

    def spoil() -> None:
        entries(cluster)["mcloneset.kb.io"]["clientConfig"]["caBundle"] = "b3RoZXI="
        kept.rotator.request_pass()

    async with kept.running():
        for count in range(1, 6):
            await kept.asleep(count)
            spoil()
            kept.clock.go.release()
        await kept.asleep(6)
    assert kept.clock.slept == sorted(kept.clock.slept)
    assert kept.clock.slept[-1] == 8.0


async def test_what_pods_need_waits_for_no_fight(tmp_path: Path) -> None:
    cluster = installed()
    kept = Kept(cluster, tmp_path)
    async with kept.running():
        for count in range(1, 6):
            await kept.asleep(count)
            entries(cluster)["mcloneset.kb.io"]["clientConfig"]["caBundle"] = "b3RoZXI="
            kept.rotator.request_pass()
            kept.clock.go.release()
        await kept.asleep(6)
        assert kept.clock.slept[-1] > APART
        kept.rotator.request_pass_now()
        await kept.asleep(7)
        assert kept.clock.slept[-1] == APART


async def test_nothing_to_do_waits_a_minute_or_for_a_change(tmp_path: Path) -> None:
    cluster = installed()
    await Kept(cluster, tmp_path).rotator.once()
    cluster.writes.clear()
    kept = Kept(cluster, tmp_path)
    async with kept.running():
        await kept.asleep(1)
        kept.rotator.request_pass()
        kept.rotator.request_pass()
        assert kept.clock.slept == [APART]
        kept.clock.go.release()
        await kept.asleep(2)
        kept.clock.go.release()
        await kept.asleep(3)
        assert kept.clock.slept == [APART, APART, INTERVAL], "changes that come together call for one pass"
        entries(cluster)["mcloneset.kb.io"]["clientConfig"]["caBundle"] = ""
        kept.rotator.request_pass()
        await kept.asleep(4)
    assert cluster.writes == [("replace", MUTATING_CONFIGURATION)]


def test_entries_are_plain_json() -> None:
    document: Any = msgspec.json.decode(msgspec.json.encode(mutating_entries()))
    assert document == mutating_entries()
