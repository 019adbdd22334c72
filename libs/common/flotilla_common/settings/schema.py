"""Defines every setting of every service, on one page.

A field `lease_duration` is the flag `--lease-duration`, the variable `FLOTILLA_LEASE_DURATION` and the key
`lease-duration` of the settings file. The names of the reference are accepted too: the flags of install.md §4, the
variables of install.md §5.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.uidranges import MOST_RANGES
from flotilla_common.gates import Gates
from flotilla_common.settings import readers
from flotilla_common.settings.readers import Reader

T = TypeVar("T", str, bool, int, float)

OPTION = "option"
"""The key of a field's `Option` in its metadata."""

_CERTIFICATES = "kruise-webhook-certs"


class Option(msgspec.Struct, frozen=True):
    """The description of a field: its section in the documentation, meaning, reader, and further names."""

    section: str
    doc: str
    read: Reader
    flag: str = ""  # the first name of the flag if it differs from the field's
    flags: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


class _Section:
    """Creates the fields of one section. Numbers need a reader with bounds; the other types have a default reader."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(
        self,
        default: T,
        doc: str,
        read: Reader | None = None,
        *,
        flag: str = "",
        flags: tuple[str, ...] = (),
        env: tuple[str, ...] = (),
    ) -> T:
        option = Option(self._name, doc, read or readers.OF_TYPE[type(default)], flag, flags, env)
        return field(default=default, metadata={OPTION: option})


_cluster, _bus, _replicas, _node = _Section("cluster"), _Section("bus"), _Section("replicas"), _Section("node")
_webhook, _behaviour, _operations = _Section("webhook"), _Section("behaviour"), _Section("operations")
_console = _Section("console")

SIGN_IN_WAYS = ("proxy", "oidc", "token", "fixed", "key")
"""The ways in which users of the console can sign in."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, with their defaults. Durations are seconds."""

    # The cluster
    kubeconfig: str = _cluster("", "The kubeconfig file; empty: in-cluster, else ~/.kube/config.", env=("KUBECONFIG",))
    context: str = _cluster("", "The kubeconfig's context; empty: its current one.")
    namespace: str = _cluster(
        "kruise-system",
        "Flotilla's own namespace: leases, certificates, configuration.",
        flag="system-namespace",
        flags=("leader-election-namespace",),
        env=("POD_NAMESPACE",),
    )
    watch_namespace: str = _cluster(
        "", "Accepted for compatibility; must be empty, as all namespaces are served.", flags=("namespace",)
    )
    kube_max_writes: int = _cluster(
        64, "Concurrent writes per process; the adaptive limit never exceeds it.", readers.integer(1)
    )

    # The bus
    nats_url: str = _bus(
        "",
        "The NATS servers, separated by commas; empty: `flotilla run` starts one of its own.",
        flag="nats",
        flags=("nats-url",),
        env=("FLOTILLA_NATS",),
    )
    nats_creds: str = _bus(
        "",
        "The credentials of this process: a file with NATS credentials, a user seed, or a ServiceAccount token; or a"
        " folder with a file `<service>.seed` for each service.",
        flags=("creds",),
    )
    nats_ca: str = _bus(
        "",
        "A file with the CA certificates of NATS servers that use TLS, read for every connection; empty: with `tls://`"
        " the CAs that this machine trusts.",
    )
    allow_open_bus: bool = _bus(
        False,
        "Use NATS servers that require no credentials. Without this flag they are refused, because every client that"
        " reaches such a bus can have pods created and deleted.",
    )
    nats_listen: str = _bus(
        "",
        "HOST:PORT on which `flotilla run`'s own NATS server listens for node agents, over TLS; they need credentials"
        " (`flotilla node-creds`).",
    )
    nats_dir: str = _bus(
        "",
        "The state folder of `flotilla run`'s own NATS server and its users; empty: a temporary one, or with"
        " `--nats-listen` one in the user's state folder.",
    )
    nats_issuer: str = _bus(
        "",
        "A file with the seed of the account key that NATS trusts for its auth callout; empty: the watcher accepts"
        " no ServiceAccount tokens.",
    )
    nats_audience: str = _bus("flotilla-bus", "The audience that the agents' ServiceAccount tokens must be made for.")
    node_account: str = _bus(
        "flotilla-nodeagent", "The ServiceAccount of the node agents, in Flotilla's own namespace."
    )
    bus_max_payload: int = _bus(
        8 << 20, "The largest message in bytes; of larger objects only a header is sent.", readers.integer(1024)
    )
    bus_copies: int = _bus(
        1,
        "The least number of NATS servers that keep each stream: 3 with servers that form a cluster.",
        readers.integer(1, 5),
    )
    bus_fallback_after: float = _bus(
        30.0, "How long a service waits for a dead bus before it lists and watches directly."
    )

    # Sharing the work
    shards: int = _replicas(
        1, "Shards per service: 1 is a leader with standbys, more spread the work.", readers.integer(1, 256)
    )
    watcher_shards: int = _replicas(
        1,
        "Streams into which the watcher's replicas share the pods; more than 1 needs an apiserver with the feature gate"
        " ShardedListAndWatch (Kubernetes 1.36).",
        readers.integer(1, MOST_RANGES),
    )
    replica: str = _replicas("", "This replica's name; empty: a new one at every start.", env=("POD_NAME",))
    lease_holder: str = _replicas(
        "",
        "The name that holds leases; empty: the replica's with a unique suffix. Processes may share a name only if"
        " they never run at the same time.",
    )
    lease_duration: float = _replicas(
        15.0, "How long a replica keeps its shards without renewing.", flags=("leader-election-lease-duration",)
    )
    lease_retry_period: float = _replicas(
        2.0, "The interval at which leases are renewed and acquired.", flags=("leader-election-retry-period",)
    )

    rate_limiter_base_delay: float = _replicas(
        0.005, "The first delay before a failed object is retried; doubles with every failure."
    )
    rate_limiter_max_delay: float = _replicas(1000.0, "The longest delay before a failed object is retried.")
    sidecarterminator_workers: int = _replicas(
        3, "Pods whose sidecars are terminated concurrently.", readers.integer(1)
    )
    # By the kinds' names in flags such as `--cloneset-workers`.
    workers: Mapping[str, int] = field(default_factory=dict[str, int])

    # The node agent
    node: str = _node("", "The name of the node that the agent works on.", flags=("node-name",), env=("NODE_NAME",))
    cri_socket: str = _node(
        "",
        "The container runtime's socket; empty: found automatically. A relative path is below /run.",
        flags=("socket-file",),
    )
    host_root: str = _node("", "The prefix of the host's paths such as /run, if the agent runs in a container.")
    node_ips: str = _node(
        "",
        "The node's addresses, separated by commas, for an agent in a network of its own; pods in the node's network "
        "are probed there.",
    )
    node_state_dir: str = _node(
        "/var/lib/flotilla/nodeagent",
        "The folder in which the agent records unfinished work, to resume it after a restart.",
    )
    kubelet_root_dir: str = _node(
        "/var/lib/kubelet", "The kubelet's own folder; its config.json holds logins for registries."
    )
    plugin_config_file: str = _node(
        "/kruise/CredentialProviderPlugin.yaml",
        "Credential plugins for image pulls: a kubelet's CredentialProviderConfig, if there is one.",
    )
    plugin_bin_dir: str = _node("/kruise/plugins", "The folder with those plugins' programs.")
    max_workers_for_pull_image: int = _node(
        -1, "Concurrent image pulls on one node; -1: no limit.", readers.integer(-1)
    )

    # The webhook
    webhook_url: str = _webhook(
        "", "https://IP:PORT at which the apiserver reaches the webhook; empty: through the Service."
    )
    webhook_port: int = _webhook(9876, "The port that the webhook listens on.", readers.port, env=("WEBHOOK_PORT",))
    webhook_host: str = _webhook(
        "", "The host in the certificate and URLs instead of the Service.", env=("WEBHOOK_HOST",)
    )
    webhook_client_ca: str = _webhook(
        "",
        "A file with the CA of the apiserver's client certificate: admission then refuses all other clients. The"
        " apiserver only sends a certificate if its AdmissionConfiguration names one.",
    )
    webhook_client_names: str = _webhook(
        "",
        "The accepted common names, separated by commas, of the apiserver's client certificate, for a CA that issues"
        " certificates to other clients, too; empty: any.",
    )
    webhook_cert_dir: str = _webhook(
        f"/tmp/{_CERTIFICATES}",  # noqa: S108 - the path that existing manifests mount
        "The folder with certificates as files.",
        env=("WEBHOOK_CERT_DIR",),
    )
    webhook_cert_writer: str = _webhook(
        "",
        "Where certificates are kept: fs or secret; empty: fs with a webhook-host, else secret.",
        readers.choice("", "fs", "secret"),
        env=("WEBHOOK_CERT_WRITER",),
    )
    webhook_secret: str = _webhook(_CERTIFICATES, "The certificates' Secret.", env=("SECRET_NAME",))
    webhook_service: str = _webhook("kruise-webhook-service", "The webhook's Service.", env=("SERVICE_NAME",))
    certs_renew_before: int = _webhook(
        readers.RENEW_BEFORE_DEFAULT_DAYS,
        "Days before its expiry that a certificate is renewed.",
        readers.renew_before,
        env=("CERTS_RENEW_BEFORE",),
    )
    webhook_initialize_timeout: float = _webhook(
        60.0, "How long certificates and configurations may take to become valid before the webhook exits."
    )

    # Behaviour
    feature_gates: str = _behaviour("", "Name=true,Name=false,… or, in the file, a mapping.")
    custom_resource_enable: str = _behaviour(
        "", "The kinds to serve, separated by commas; empty: all.", env=("CUSTOM_RESOURCE_ENABLE",)
    )
    cloneset_scaling_exclude_preparing_delete: bool = _behaviour(
        False, "Pods in PreparingDelete do not count when CloneSets scale."
    )
    ws_enabled_versioned_status: str = _behaviour(
        "deployment,replicaset", "Kinds of workloads whose WorkloadSpreads count places per version of pods."
    )
    assign_pods_by_scheduler: bool = _behaviour(
        True, "The scheduler binds pods of DaemonSets to their nodes; else they are created with a node name."
    )
    assign_bcj_pods_by_scheduler: bool = _behaviour(
        True, "The scheduler binds pods of BroadcastJobs to their nodes; else they are created with a node name."
    )
    keep_managed_fields: bool = _behaviour(
        False,
        "Pods that are updated in place keep metadata.managedFields; every write of them then costs the apiserver"
        " about three times as much. Set it for `flotilla install`, too, to keep those of new pods.",
    )
    daemon_config_namespace: str = _behaviour(
        "kruise-daemon-config",
        "The namespace for copies of pull secrets; nodes get secrets from this namespace only.",
        env=("KRUISE_DAEMON_CONFIG_NS",),
    )
    nodeimage_creation_delay: float = _behaviour(30.0, "How long a node must be ready before its NodeImage is created.")
    default_ttlseconds_for_always_nodeimage: int = _behaviour(
        300,
        "Seconds that a finished pull stays in a NodeImage beyond what its job asks for.",
        readers.integer(0, 2678400),
    )
    pub_eviction_denied_code: int = _behaviour(
        429,
        "The code of evictions that a PodUnavailableBudget refuses: 429, so that `kubectl drain` retries, or 403.",
        readers.one_of(403, 429),
    )
    protection_log_path: str = _behaviour("", "The directory of protection.log; empty: the log only.")

    # The console
    console_listen: str = _console("", "The address that the console listens on; empty: all.")
    console_port: int = _console(8090, "The port that the console listens on.", readers.port)
    console_url: str = _console(
        "",
        "The https:// URL of the console in browsers: of its Ingress, for instance. Needed for OIDC; requests of other"
        " origins are refused.",
    )
    console_tls_cert: str = _console(
        "", "A file with the console's certificate, read again when it changes; empty: plain HTTP, behind a proxy."
    )
    console_tls_key: str = _console("", "The file with the key of that certificate.")
    console_sign_in: str = _console(
        "token",
        "The ways to sign in, separated by commas, in the order in which they are tried: proxy (by its headers), oidc,"
        " token (pasted by the user), fixed (all are one user who only reads), key (of `flotilla console`).",
        readers.words(*SIGN_IN_WAYS),
    )
    console_proxy_user_header: str = _console("X-Remote-User", "The header in which the proxy names the user.")
    console_proxy_group_header: str = _console(
        "X-Remote-Group", "The header in which the proxy names the user's groups."
    )
    console_proxy_group_separator: str = _console(
        "", "What separates groups in one header, `,` for oauth2-proxy; empty: each header is one group."
    )
    console_proxy_extra_prefix: str = _console(
        "X-Remote-Extra-", "The prefix of headers with further attributes of the user."
    )
    console_proxy_secret_header: str = _console(
        "X-Flotilla-Proxy-Secret", "The header in which the proxy proves itself with the secret."
    )
    console_proxy_secret_file: str = _console(
        "",
        "A file with the secret by which the proxy's headers are trusted, one secret a line; empty: they are trusted by"
        " its client certificate.",
    )
    console_client_ca: str = _console(
        "", "A file with the CA of the proxy's client certificate: its headers are then trusted. Needs TLS."
    )
    console_client_names: str = _console("", "The accepted common names, separated by commas, of that certificate.")
    console_oidc_issuer: str = _console("", "The https:// URL of the OpenID Connect issuer.")
    console_oidc_client_id: str = _console("", "The console's client ID at the issuer.")
    console_oidc_client_secret_file: str = _console(
        "", "A file with the client's secret; empty: a public client, with PKCE only."
    )
    console_oidc_ca: str = _console("", "A file with the CA of the issuer; empty: those that this machine trusts.")
    console_oidc_scopes: str = _console("openid email groups", "The scopes that are asked for.")
    console_oidc_user_claim: str = _console("sub", "The claim with the user's name, as the apiserver reads it.")
    console_oidc_groups_claim: str = _console("groups", "The claim with the user's groups.")
    console_oidc_user_prefix: str = _console(
        "",
        "The prefix of users' names, as at the apiserver; empty: the issuer and `#` unless the claim is `email`, `-`:"
        " none.",
    )
    console_oidc_groups_prefix: str = _console("", "The prefix of groups' names, as at the apiserver.")
    console_cookie_key_file: str = _console(
        "",
        "A file with Fernet keys, one a line: the first encrypts sessions, all decrypt them. All replicas need the"
        " same. Empty: a new key at every start, which ends all sessions.",
    )
    console_session_duration: float = _console(8 * 3600.0, "How long a session lasts.")
    console_fixed_user: str = _console("", "The user that all are with the sign-in `fixed`.")
    console_fixed_groups: str = _console("", "The groups of that user, separated by commas.")
    console_key_file: str = _console("", "A file with the one-time key of the sign-in `key`.")
    console_log_lines: int = _console(
        1000, "The most lines of a container's log that a page shows.", readers.integer(1, 100_000)
    )
    console_log_bytes: int = _console(
        1 << 20, "The most bytes of a container's log that a page shows.", readers.integer(1024, 16 << 20)
    )

    # Seeing what happens
    log_level: str = _operations(
        "info", "debug, info, warning, error, or a klog verbosity.", readers.log_level, flags=("v",)
    )
    log_format: str = _operations("json", "json or text.", readers.choice("json", "text"), flags=("logging-format",))
    metrics_port: int = _operations(8080, "The port of /metrics; 0: disabled.", readers.port, flags=("metrics-addr",))
    state_metrics_port: int = _operations(
        8081, "The port of the statemetrics service's metrics of objects.", readers.port
    )
    health_port: int = _operations(
        8000, "The port of /healthz and /readyz; 0: disabled.", readers.port, flags=("health-probe-addr", "addr")
    )
    otlp_endpoint: str = _operations(
        "",
        "The collector that traces are exported to, by OTLP over HTTP: http://HOST:4318; empty: no traces. Headers,"
        " certificates and timeouts come from the variables OTEL_EXPORTER_OTLP_….",
        env=("OTEL_EXPORTER_OTLP_ENDPOINT",),
    )

    def serves(self, kind: str) -> bool:
        """Report whether custom-resource-enable lets the kind's controllers run (install.md §6)."""
        kinds = {name.strip() for name in self.custom_resource_enable.split(",")} - {""}
        return not kinds or kind in kinds

    def workers_of(self, kind: Kind) -> int:
        """Return how many objects of the kind are planned concurrently."""
        return self.workers.get(kind.workers.flag, kind.workers.default)

    def gates(self) -> Gates:
        """Return the feature gates after derivation (install.md §3)."""
        return Gates.parse(self.feature_gates, self.custom_resource_enable)
