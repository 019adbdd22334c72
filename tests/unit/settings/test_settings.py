"""Settings: sources, precedence, units, and errors that name what was meant."""

from pathlib import Path

import pytest

from flotilla_common.api.kinds import catalogue
from flotilla_common.settings import Settings, SettingsError, known_flags, load, split_flags


@pytest.fixture
def settings_file(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "flotilla.yaml"
        path.write_text(text)
        return path

    return write


def test_nothing_given_means_the_defaults():
    assert load({}, {}) == Settings()


def test_flag_beats_environment_beats_file_beats_default(settings_file):
    file = settings_file("shards: 2\nreplica: file\nlease-duration: 40s\n")
    settings = load({"shards": "8"}, {"FLOTILLA_SHARDS": "4", "FLOTILLA_REPLICA": "env"}, file)
    assert (settings.shards, settings.replica, settings.lease_duration) == (8, "env", 40.0)
    assert settings.metrics_port == 8080


@pytest.mark.parametrize(
    ("flag", "field", "text", "value"),
    [
        pytest.param("metrics-addr", "metrics_port", ":9090", 9090, id="an address is a port"),
        pytest.param("metrics-addr", "metrics_port", "0", 0, id="zero switches off"),
        pytest.param("health-probe-addr", "health_port", "0.0.0.0:8001", 8001, id="host and port"),
        pytest.param("leader-election-lease-duration", "lease_duration", "1m30s", 90.0, id="Go duration"),
        pytest.param("bus-fallback-after", "bus_fallback_after", "250ms", 0.25, id="milliseconds"),
        pytest.param("lease-duration", "lease_duration", "20", 20.0, id="plain seconds"),
        pytest.param("v", "log_level", "5", "debug", id="klog verbosity of developers"),
        pytest.param("v", "log_level", "4", "info", id="klog verbosity of operators"),
        pytest.param("logging-format", "log_format", "text", "text", id="reference's log format"),
        pytest.param("system-namespace", "namespace", "flotilla", "flotilla", id="own namespace"),
        pytest.param(
            "cloneset-scaling-exclude-preparing-delete",
            "cloneset_scaling_exclude_preparing_delete",
            "true",
            True,
            id="boolean",
        ),
        pytest.param("certs-renew-before", "certs_renew_before", "2y", 730, id="years of 365 days"),
        pytest.param("certs-renew-before", "certs_renew_before", "3m", 90, id="months of 30 days"),
        pytest.param("certs-renew-before", "certs_renew_before", "soon", 180, id="nonsense is the default"),
        pytest.param("certs-renew-before", "certs_renew_before", "0d", 180, id="zero is the default"),
        pytest.param("nats", "nats_url", "nats://bus:4222", "nats://bus:4222", id="short name of the bus"),
        pytest.param("lease_duration", "lease_duration", "20s", 20.0, id="underscores"),
    ],
)
def test_flag_values(flag: str, field: str, text: str, value: object):
    assert getattr(load({flag: text}, {}), field) == value


@pytest.mark.parametrize(
    ("variable", "field", "text", "value"),
    [
        pytest.param("POD_NAMESPACE", "namespace", "ns", "ns", id="POD_NAMESPACE"),
        pytest.param("WEBHOOK_PORT", "webhook_port", "9443", 9443, id="WEBHOOK_PORT"),
        pytest.param("WEBHOOK_CERT_DIR", "webhook_cert_dir", "/certs", "/certs", id="WEBHOOK_CERT_DIR"),
        pytest.param("WEBHOOK_HOST", "webhook_host", "10.0.0.1", "10.0.0.1", id="WEBHOOK_HOST"),
        pytest.param("WEBHOOK_CERT_WRITER", "webhook_cert_writer", "fs", "fs", id="WEBHOOK_CERT_WRITER"),
        pytest.param("SECRET_NAME", "webhook_secret", "s", "s", id="SECRET_NAME"),
        pytest.param("SERVICE_NAME", "webhook_service", "s", "s", id="SERVICE_NAME"),
        pytest.param("CERTS_RENEW_BEFORE", "certs_renew_before", "90d", 90, id="CERTS_RENEW_BEFORE"),
        pytest.param("CUSTOM_RESOURCE_ENABLE", "custom_resource_enable", "CloneSet", "CloneSet", id="kinds"),
        pytest.param("FLOTILLA_NATS", "nats_url", "nats://x", "nats://x", id="FLOTILLA_NATS"),
        pytest.param("FLOTILLA_NATS_URL", "nats_url", "nats://x", "nats://x", id="FLOTILLA_NATS_URL"),
        pytest.param("FLOTILLA_WEBHOOK_PORT", "webhook_port", "1", 1, id="own names for everything"),
    ],
)
def test_environment_values(variable: str, field: str, text: str, value: object):
    assert getattr(load({}, {variable: text, "PATH": "/bin"}), field) == value


def test_ways_to_sign_in_keep_their_order():
    given = {"console-sign-in": "token, fixed", "console-fixed-user": "guest"}
    assert load(given, {}).console_sign_in == "token,fixed"


def test_workers_of_kinds(settings_file):
    settings = load({"crr-workers": "7"}, {"FLOTILLA_NODEIMAGE_WORKERS": "4"}, settings_file("cloneset-workers: 5\n"))
    kinds = {kind.name: settings.workers_of(kind) for kind in catalogue.KINDS}
    assert kinds == {
        "AdvancedCronJob": 32,
        "BroadcastJob": 8,
        "CloneSet": 5,
        "ContainerRecreateRequest": 7,
        "DaemonSet": 8,
        "EphemeralJob": 10,
        "ImageListPullJob": 3,
        "ImagePullJob": 3,
        "NodeImage": 4,
        "NodePodProbe": 3,
        "PersistentPodState": 8,
        "PodProbeMarker": 3,
        "PodUnavailableBudget": 3,
        "ResourceDistribution": 3,
        "SidecarSet": 3,
        "StatefulSet": 32,
        "UnitedDeployment": 3,
        "WorkloadSpread": 3,
    }
    assert Settings().workers_of(catalogue.called("clone")) == 32


def test_our_own_variable_beats_the_reference_s():
    assert load({}, {"WEBHOOK_PORT": "1", "FLOTILLA_WEBHOOK_PORT": "2"}).webhook_port == 2


def test_variables_that_the_kubelet_makes_for_services_are_no_settings():
    env = {
        "FLOTILLA_WEBHOOK_PORT": "tcp://10.0.0.5:443",
        "FLOTILLA_WEBHOOK_PORT_443_TCP_ADDR": "10.0.0.5",
        "FLOTILLA_WEBHOOK_SERVICE_HOST": "10.0.0.5",
        "FLOTILLA_WEBHOOK_SERVICE_PORT_HTTPS": "443",
    }
    assert load({}, env) == Settings()


def test_file_takes_natural_yaml(settings_file):
    file = settings_file(
        "feature-gates: {CloneSetShortHash: true, PodWebhook: false}\n"
        "custom_resource_enable: [CloneSet, SidecarSet]\ncloneset-workers: 5\n"
        "cloneset-scaling-exclude-preparing-delete: true\n"
    )
    settings = load({}, {}, file)
    assert settings.feature_gates == "CloneSetShortHash=true,PodWebhook=false"
    assert settings.custom_resource_enable == "CloneSet,SidecarSet"
    assert settings.cloneset_scaling_exclude_preparing_delete


@pytest.mark.parametrize("text", ["", "# only a comment\n"], ids=["empty", "comment"])
def test_empty_file(settings_file, text: str):
    assert load({}, {}, settings_file(text)) == Settings()


@pytest.mark.parametrize(
    ("flags", "env", "yaml", "problem"),
    [
        pytest.param(
            {"leese-duration": "1"}, {}, "", "unknown flag --leese-duration; did you mean --lease-duration?", id="flag"
        ),
        pytest.param(
            {}, {"FLOTILLA_SHARD": "1"}, "", "unknown variable FLOTILLA_SHARD; did you mean FLOTILLA_SHARDS?", id="env"
        ),
        pytest.param({}, {}, "webhok-port: 1", "webhok-port; did you mean webhook-port?", id="file key"),
        pytest.param({"zzz": "1"}, {}, "", "unknown flag --zzz", id="nothing near"),
        pytest.param({"workers": "3"}, {}, "", "unknown flag --workers", id="workers of no kind"),
        pytest.param({"crr-workers": "0"}, {}, "", "--crr-workers: must be a whole number of 1 or more", id="workers"),
        pytest.param({"shards": "0"}, {}, "", "--shards: must be a whole number from 1 to 256, not '0'", id="bounds"),
        pytest.param({"metrics-port": "99999"}, {}, "", "must be a port from 0 to 65535", id="port"),
        pytest.param({"lease-duration": "1 fortnight"}, {}, "", "must be a duration like 15s", id="duration"),
        pytest.param(
            {"cloneset-scaling-exclude-preparing-delete": "perhaps"}, {}, "", "must be true or false", id="boolean"
        ),
        pytest.param({"log-format": "xml"}, {}, "", "must be one of json, text", id="choice"),
        pytest.param({"feature-gates": "NoSuchGate=true"}, {}, "", "unrecognized feature gate: NoSuchGate", id="gate"),
        pytest.param(
            {"lease-duration": "5s"}, {}, "", "lease-retry-period must be at most a third", id="contradiction"
        ),
        pytest.param({"namespace": "team-a"}, {}, "", "namespace: serving one namespace only", id="one namespace"),
        pytest.param({"webhook-url": "http://1.2.3.4"}, {}, "", "must begin with https://", id="plain http"),
        pytest.param({"console-sign-in": "oidc,magic"}, {}, "", "must be different ones of proxy, oidc", id="words"),
        pytest.param({"console-sign-in": "token,token"}, {}, "", "must be different ones of", id="a word twice"),
        pytest.param({"console-sign-in": "proxy"}, {}, "", "needs console-proxy-secret-file", id="trust in headers"),
        pytest.param({"console-sign-in": "oidc"}, {}, "", "needs console-oidc-issuer", id="no issuer"),
        pytest.param({"console-oidc-issuer": "http://id"}, {}, "", "must begin with https://", id="plain issuer"),
        pytest.param({"console-sign-in": "fixed"}, {}, "", "needs console-fixed-user", id="nobody"),
        pytest.param(
            {"console-sign-in": "key", "console-listen": "127.0.0.1"}, {}, "", "needs console-key-file", id="no key"
        ),
        pytest.param(
            {"console-sign-in": "key", "console-key-file": "/k"}, {}, "", "needs console-listen", id="key for all"
        ),
        pytest.param({"console-tls-cert": "/c"}, {}, "", "console-tls-key go together", id="certificate alone"),
        pytest.param(
            {"console-client-ca": "/c", "console-client-names": "x"}, {}, "", "needs console-tls-cert", id="no TLS"
        ),
        pytest.param({"console-client-names": "x"}, {}, "", "console-client-names go together", id="no authority"),
        pytest.param({}, {}, "- a list", "flotilla.yaml: Expected `object | null`", id="no mapping"),
        pytest.param({}, {}, "a: [", "flotilla.yaml: ", id="no YAML"),
    ],
)
def test_errors(settings_file, flags: dict[str, str], env: dict[str, str], yaml: str, problem: str):
    with pytest.raises(SettingsError) as caught:
        load(flags, env, settings_file(yaml))
    assert len(caught.value.problems) == 1
    assert problem in str(caught.value)


def test_all_problems_are_reported_at_once(tmp_path: Path):
    with pytest.raises(SettingsError) as caught:
        load({"shard": "1", "metrics-port": "x"}, {"FLOTILLA_NAT": "1"}, tmp_path / "missing.yaml")
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize("flag", ["logtostderr", "sync-period", "enable-leader-election", "pprof-addr"])
def test_flags_of_the_reference_without_meaning_are_accepted(flag: str):
    assert load({flag: "7"}, {}) == Settings()


def test_command_line_is_split_into_flags_and_words():
    flags, words = split_flags(
        [
            "watcher",
            "--v=5",
            "-logtostderr",
            "cloneset",
            "--allow-privileged",
            "--sync-period",
            "10m",
            "--nats=nats://x",
        ]
    )
    assert words == ["watcher", "cloneset"]
    assert flags == {"v": "5", "logtostderr": "", "allow-privileged": "", "sync-period": "10m", "nats": "nats://x"}
    assert load(flags, {}).nats_url == "nats://x"


def test_every_setting_is_documented():
    for flag, _, option, _ in known_flags():
        assert option.doc.endswith("."), flag
        assert option.section, flag
