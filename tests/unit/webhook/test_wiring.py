"""Endpoint, certificate name and store by the settings (webhooks.md §4, install.md §5)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from flotilla_common.api.webhooks import mutating_entries, path_of, validating_entries
from flotilla_common.gates import Gates
from flotilla_common.service import Context
from flotilla_common.settings import Settings
from flotilla_webhook.chain import chain_of
from flotilla_webhook.kinds import handlers_of
from flotilla_webhook.metrics import process_metrics
from flotilla_webhook.protection import protection_log
from flotilla_webhook.server import tls
from flotilla_webhook.server.certificates import issue
from flotilla_webhook.server.registration import Endpoint, Registration
from flotilla_webhook.server.serving import certificate_user, host_of
from flotilla_webhook.server.stores import ExternalStore, FileStore, SecretStore, files_of, store_of, write_files
from tests.support.dice import Dice
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.unit.webhook.fakes import records

SERVICE_NAME = "kruise-webhook-service.kruise-system.svc"


class Wired:
    """The part of a context that the wiring reads."""

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.gates = self.settings.gates()
        self.api = FakeApi().api
        self.clock = FakeClock()

    @property
    def context(self) -> Context:
        return cast("Context", self)


@pytest.mark.parametrize(
    ("settings", "url", "host", "store"),
    [
        pytest.param({}, "", SERVICE_NAME, SecretStore, id="in the cluster"),
        pytest.param(
            {"webhook_url": "https://10.0.0.1:443/"}, "https://10.0.0.1:443", "10.0.0.1", SecretStore, id="outside"
        ),
        pytest.param({"webhook_host": "a.b"}, "https://a.b:9876", "a.b", FileStore, id="WEBHOOK_HOST keeps files"),
        pytest.param(
            {"webhook_host": "a.b", "webhook_cert_writer": "secret"},
            "https://a.b:9876",
            "a.b",
            SecretStore,
            id="writer wins",
        ),
        pytest.param({"webhook_cert_writer": "fs"}, "", SERVICE_NAME, FileStore, id="files"),
        pytest.param({"feature_gates": "EnableExternalCerts=true"}, "", SERVICE_NAME, ExternalStore, id="external"),
        pytest.param({"namespace": "n", "webhook_service": "s"}, "", "s.n.svc", SecretStore, id="own names"),
    ],
)
def test_endpoint_and_store(settings: dict[str, Any], url: str, host: str, store: type) -> None:
    wired = Wired(**settings)
    assert Endpoint.of(wired.settings).url == url
    assert host_of(wired.settings) == host
    assert isinstance(store_of(wired.context), store)


@pytest.mark.parametrize(
    "gates", ["", "KruisePodReadinessGate=true", "ResourcesDeletionProtection=false", "AllAlpha=true"]
)
def test_every_entry_has_a_handler(gates: str) -> None:
    parsed = Gates.parse(gates)
    wired = Wired(feature_gates=gates)
    api, settings = wired.context.api, wired.settings
    chain = chain_of(api, FakeBus(), wired.clock, Dice(), settings, parsed, records(FakeApi()))
    served = {**handlers_of(api, wired.clock, settings, parsed, process_metrics()), **chain.handlers()}
    assert {path_of(entry) for entry in mutating_entries() + validating_entries(parsed)} <= served.keys()
    registration = Registration(api, Endpoint("n", "s"), served, chain.entries())
    wrapped = chain.with_activation(api, wired.clock, registration, served)
    rule_sources = {path.rpartition("-")[2] for path in wrapped}
    assert rule_sources == {
        "persistentpodstate",
        "podprobemarker",
        "podunavailablebudget",
        "sidecarset",
        "workloadspread",
    }


def test_steps_of_pods_are_in_order() -> None:
    wired = Wired()
    chain = chain_of(wired.context.api, FakeBus(), wired.clock, Dice(), wired.settings, wired.gates, records(FakeApi()))
    assert [step.name for step in chain.pods.steps] == [
        "readiness gate",
        "WorkloadSpread",
        "SidecarSet",
        "launch priority",
        "PodUnavailableBudget",
        "PersistentPodState",
        "PodProbeMarker",
    ]


def test_metrics_tell_when_the_certificate_ends(tmp_path: Path) -> None:
    write_files(tmp_path / "certs", files_of(issue("localhost", datetime(2026, 1, 1, tzinfo=UTC))))
    metrics = process_metrics()
    vitals: dict[str, Callable[[], object]] = {}
    certificate_user(tls.Certificate(), metrics, vitals)(tmp_path / "certs")
    ends = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=3650)
    assert metrics.certificate_end._value.get() == ends.timestamp()
    assert vitals["certificateEnd"]() == ends


def test_protection_log(tmp_path: Path) -> None:
    record = protection_log(str(tmp_path / "log"))
    record(b"one")
    record(b"two")
    assert (tmp_path / "log" / "protection.log").read_bytes() == b"one\ntwo\n"
    protection_log("")(b"to the log")
