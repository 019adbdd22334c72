"""Every setting of every service, on one page.

A field `lease_duration` is the flag `--lease-duration`, the variable `FLOTILLA_LEASE_DURATION` and the key
`lease-duration` of the settings file. Names that users of the reference know are accepted beside them: the flags of
install.md §4, the variables of install.md §5.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from flotilla_common.api.kinds.kind import Kind
from flotilla_common.gates import Gates
from flotilla_common.settings import readers
from flotilla_common.settings.readers import Reader

_CERTIFICATES = "kruise-webhook-certs"


class Option(msgspec.Struct, frozen=True):
    """What `Annotated` says about a field: its section in the documentation, its meaning, its reader, further names."""

    section: str
    doc: str
    read: Reader = readers.text
    flag: str = ""  # the first name of the flag where it is not the field's
    flags: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, with their defaults. Durations are seconds."""

    # The cluster
    kubeconfig: Annotated[
        str, Option("cluster", "The kubeconfig file; empty: in-cluster, else ~/.kube/config.", env=("KUBECONFIG",))
    ] = ""
    context: Annotated[str, Option("cluster", "The kubeconfig's context; empty: its current one.")] = ""
    namespace: Annotated[
        str,
        Option(
            "cluster",
            "Flotilla's own namespace: leases, certificates, configuration.",
            flag="system-namespace",
            flags=("leader-election-namespace",),
            env=("POD_NAMESPACE",),
        ),
    ] = "kruise-system"
    watch_namespace: Annotated[
        str, Option("cluster", "Known from the reference; must be empty: all are handled.", flags=("namespace",))
    ] = ""
    kube_max_writes: Annotated[
        int,
        Option(
            "cluster", "Writes under way at once, per process; the adaptive limit moves below it.", readers.integer(1)
        ),
    ] = 64

    # The bus
    nats_url: Annotated[
        str,
        Option(
            "bus",
            "The NATS servers, separated by commas; empty: `flotilla run` starts one of its own.",
            flag="nats",
            flags=("nats-url",),
            env=("FLOTILLA_NATS",),
        ),
    ] = ""
    nats_creds: Annotated[
        str,
        Option(
            "bus",
            "Who this process is to the bus: a file with NATS credentials, a user seed, or a ServiceAccount token; or a"
            " folder with a file `<service>.seed` for each service.",
            flags=("creds",),
        ),
    ] = ""
    nats_ca: Annotated[
        str,
        Option(
            "bus",
            "A file with the authorities (CA) whose certificates NATS servers may show if they ask for TLS, read anew"
            " for every connection; empty: with `tls://` those that this machine trusts.",
        ),
    ] = ""
    nats_listen: Annotated[
        str,
        Option(
            "bus",
            "HOST:PORT on which `flotilla run`'s own NATS server listens for node agents; then everybody needs"
            " credentials (`flotilla node-creds`).",
        ),
    ] = ""
    nats_dir: Annotated[
        str,
        Option(
            "bus",
            "The state folder of `flotilla run`'s own NATS server and its users; empty: a temporary one, or with"
            " `--nats-listen` one in the user's state folder.",
        ),
    ] = ""
    nats_issuer: Annotated[
        str,
        Option(
            "bus",
            "A file with the seed of the account key that NATS trusts for its auth callout; empty: the watcher lets"
            " nobody in by ServiceAccount token.",
        ),
    ] = ""
    nats_audience: Annotated[
        str, Option("bus", "The audience that the agents' ServiceAccount tokens must be made for.")
    ] = "flotilla-bus"
    node_account: Annotated[
        str, Option("bus", "The ServiceAccount of the node agents, in Flotilla's own namespace.")
    ] = "flotilla-nodeagent"
    bus_max_payload: Annotated[
        int, Option("bus", "Bytes; larger objects travel as a header and are fetched.", readers.integer(1024))
    ] = 8 << 20
    bus_fallback_after: Annotated[
        float,
        Option(
            "bus", "How long a service waits for a dead bus before it lists and watches by itself.", readers.duration
        ),
    ] = 30.0

    # Sharing the work
    shards: Annotated[
        int,
        Option(
            "replicas",
            "Shards per service: 1 is a leader with standbys, more spread the work.",
            readers.integer(1, 256),
        ),
    ] = 1
    replica: Annotated[
        str, Option("replicas", "This replica's name; empty: a fresh one at every start.", env=("POD_NAME",))
    ] = ""
    lease_duration: Annotated[
        float,
        Option(
            "replicas",
            "How long a silent replica keeps its shards.",
            readers.duration,
            flags=("leader-election-lease-duration",),
        ),
    ] = 15.0
    lease_retry_period: Annotated[
        float,
        Option(
            "replicas",
            "How often leases are renewed and tried for.",
            readers.duration,
            flags=("leader-election-retry-period",),
        ),
    ] = 2.0

    rate_limiter_base_delay: Annotated[
        float,
        Option("replicas", "How soon a failed object is tried again; doubles with every failure.", readers.duration),
    ] = 0.005
    rate_limiter_max_delay: Annotated[
        float, Option("replicas", "The longest pause before a failed object is tried again.", readers.duration)
    ] = 1000.0
    workers: Mapping[str, int] = {}  # as given for kinds, by their names in flags: `--cloneset-workers`

    # The node agent
    node: Annotated[
        str, Option("node", "The name of the node that the agent works on.", flags=("node-name",), env=("NODE_NAME",))
    ] = ""
    cri_socket: Annotated[
        str,
        Option(
            "node",
            "The container runtime's socket; empty: looked for. A relative path lies below /run.",
            flags=("socket-file",),
        ),
    ] = ""
    host_root: Annotated[
        str, Option("node", "Where the host's /run is mounted, if the agent runs in a container of its own.")
    ] = ""
    node_state_dir: Annotated[
        str, Option("node", "Where the agent notes what it has begun, to survive its own restart.")
    ] = "/var/lib/flotilla/nodeagent"
    kubelet_root_dir: Annotated[
        str, Option("node", "The kubelet's own folder; its config.json holds logins for registries.")
    ] = "/var/lib/kubelet"
    plugin_config_file: Annotated[
        str,
        Option("node", "Credential plugins for image pulls: a kubelet's CredentialProviderConfig, if there is one."),
    ] = "/kruise/CredentialProviderPlugin.yaml"
    plugin_bin_dir: Annotated[str, Option("node", "The folder with those plugins' programs.")] = "/kruise/plugins"
    max_workers_for_pull_image: Annotated[
        int, Option("node", "Image pulls at a time on one node; -1: no limit.", readers.integer(-1))
    ] = -1

    # The webhook
    webhook_url: Annotated[
        str,
        Option("webhook", "https://IP:PORT at which the apiserver reaches the webhook; empty: through the Service."),
    ] = ""
    webhook_port: Annotated[int, Option("webhook", "The port it listens on.", readers.port, env=("WEBHOOK_PORT",))] = (
        9876
    )
    webhook_host: Annotated[
        str, Option("webhook", "The host in its certificate and URLs instead of the Service.", env=("WEBHOOK_HOST",))
    ] = ""
    webhook_cert_dir: Annotated[
        str, Option("webhook", "Where certificates lie as files.", env=("WEBHOOK_CERT_DIR",))
    ] = f"/tmp/{_CERTIFICATES}"  # noqa: S108 - the path that existing manifests mount
    webhook_cert_writer: Annotated[
        str,
        Option(
            "webhook",
            "Where certificates are kept: fs or secret; empty: fs with a webhook-host, else secret.",
            readers.choice("", "fs", "secret"),
            env=("WEBHOOK_CERT_WRITER",),
        ),
    ] = ""
    webhook_secret: Annotated[str, Option("webhook", "The certificates' Secret.", env=("SECRET_NAME",))] = _CERTIFICATES
    webhook_service: Annotated[str, Option("webhook", "The webhook's Service.", env=("SERVICE_NAME",))] = (
        "kruise-webhook-service"
    )
    certs_renew_before: Annotated[
        int,
        Option(
            "webhook",
            "Days before its end that a certificate is renewed.",
            readers.renew_before,
            env=("CERTS_RENEW_BEFORE",),
        ),
    ] = readers.RENEW_BEFORE_DEFAULT_DAYS
    webhook_initialize_timeout: Annotated[
        float,
        Option("webhook", "Within this time certificates and configurations are right, or it exits.", readers.duration),
    ] = 60.0

    # Behaviour
    feature_gates: Annotated[str, Option("behaviour", "Name=true,Name=false,… or, in the file, a mapping.")] = ""
    custom_resource_enable: Annotated[
        str,
        Option("behaviour", "The kinds to serve, separated by commas; empty: all.", env=("CUSTOM_RESOURCE_ENABLE",)),
    ] = ""
    cloneset_scaling_exclude_preparing_delete: Annotated[
        bool, Option("behaviour", "Pods in PreparingDelete do not count when CloneSets scale.", readers.boolean)
    ] = False
    keep_managed_fields: Annotated[
        bool,
        Option(
            "behaviour",
            "Pods that are updated in place keep metadata.managedFields; every write of them then costs the apiserver"
            " about three times as much. Give it to `flotilla install`, too: new pods keep theirs then.",
            readers.boolean,
        ),
    ] = False
    daemon_config_namespace: Annotated[
        str,
        Option(
            "behaviour",
            "The namespace that copies of pull secrets are made in; nodes get secrets of no other one.",
            env=("KRUISE_DAEMON_CONFIG_NS",),
        ),
    ] = "kruise-daemon-config"
    nodeimage_creation_delay: Annotated[
        float,
        Option("behaviour", "How long a node is ready before its NodeImage is made.", readers.duration),
    ] = 30.0
    default_ttlseconds_for_always_nodeimage: Annotated[
        int,
        Option(
            "behaviour",
            "Seconds that a finished pull stays in a NodeImage beyond what its job asks for.",
            readers.integer(0, 2678400),
        ),
    ] = 300
    protection_log_path: Annotated[
        str, Option("behaviour", "The directory of protection.log; empty: the log only.")
    ] = ""

    # Seeing what happens
    log_level: Annotated[
        str, Option("operations", "debug, info, warning, error, or a klog verbosity.", readers.log_level, flags=("v",))
    ] = "info"
    log_format: Annotated[
        str,
        Option("operations", "json or text.", readers.choice("json", "text"), flags=("logging-format",)),
    ] = "json"
    metrics_port: Annotated[
        int, Option("operations", "Where /metrics is served; 0: not at all.", readers.port, flags=("metrics-addr",))
    ] = 8080
    health_port: Annotated[
        int,
        Option(
            "operations",
            "Where /healthz and /readyz are served; 0: not at all.",
            readers.port,
            flags=("health-probe-addr", "addr"),
        ),
    ] = 8000

    def serves(self, kind: str) -> bool:
        """Whether custom-resource-enable lets the kind's controllers run (install.md §6)."""
        kinds = {name.strip() for name in self.custom_resource_enable.split(",")} - {""}
        return not kinds or kind in kinds

    def workers_of(self, kind: Kind) -> int:
        """How many objects of the kind are planned side by side."""
        return self.workers.get(kind.workers.flag, kind.workers.default)

    def gates(self) -> Gates:
        """The feature gates after derivation (install.md §3)."""
        return Gates.parse(self.feature_gates, self.custom_resource_enable)
