"""The state file of a local cluster: written by `flotilla up`, read by every command."""

from pathlib import Path

import msgspec

from flotilla_cli.local.errors import ClusterError

STATE_FILE = "set.json"
HOST = "127.0.0.1"
"""The address of everything in a cluster without real nodes."""


class Ports(msgspec.Struct, frozen=True):
    """The ports of the control plane, on the loopback address."""

    apiserver: int
    etcd: int
    etcd_peer: int


class LocalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """One local cluster: addresses for commands, ports to start it again, and whether its demo has been shown."""

    kubeconfig: str
    nats: str
    nats_creds: str = ""  # the folder with the credentials of services and people
    nats_ca: str = ""  # the authority of the bus's certificate, if it speaks TLS
    ports: Ports
    nats_port: int
    nats_monitor: int
    webhook_port: int
    services: dict[str, int]  # the port of each service's /readyz and /metrics
    programs: dict[str, str]
    nodes: int  # fake ones
    real_nodes: int = 0
    bare: bool = False  # a cluster only: no NATS, no services of ours
    address: str = HOST  # of the apiserver
    demo_done: bool = False

    @property
    def webhook_url(self) -> str:
        """The URL under which the apiserver reaches the webhook."""
        return f"https://127.0.0.1:{self.webhook_port}"


class Health(msgspec.Struct, frozen=True):
    """The state of one process of a local cluster, as `flotilla status` prints it."""

    name: str
    pid: int
    running: bool
    healthy: bool
    detail: str
    log: str


def read(state_dir: Path) -> LocalCluster | None:
    """Return the cluster of a state folder; None if there is none. Raises ClusterError for a damaged file."""
    path = state_dir / STATE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=LocalCluster)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{path} is damaged ({error}). `flotilla down` stops what runs and removes it.") from error
