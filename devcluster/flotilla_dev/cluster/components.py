"""The command line of each control-plane component.

All listen on the loopback address, except that the apiserver of real nodes listens where they can reach it. There is no
leader election (one instance of each), and client limits are high enough never to throttle: measurements are to show
the cost of writes.
"""

from pathlib import Path

import msgspec
import yaml

from flotilla_cli.certificates import Authority
from flotilla_cli.local import HOST, Ports, write_private
from flotilla_dev.cluster.ports import free_ports

QPS = "3000"  # twice what this apiserver can do on two cores, so that it is no limit
BURST = "6000"
NODE_GRACE = "10m"  # fake nodes show a heartbeat every one to two minutes, later when the machine is overloaded
SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
"""The address of the Service `kubernetes`: the first of the range."""

POD_RANGE = "10.128.0.0/9"  # a /20 per node: 2,048 nodes with 4,094 pods each


def choose_ports() -> Ports:
    """Return free ports for a control plane."""
    return Ports(*free_ports(3))


class Places(msgspec.Struct, frozen=True):
    """The files of one control plane under its state folder."""

    state_dir: Path

    @property
    def servers(self) -> Authority:
        """The authority of the apiserver's own certificate, which its clients trust."""
        return Authority(self.state_dir / "servers.crt", self.state_dir / "servers.key", "flotilla")

    @property
    def server(self) -> Path:
        """The apiserver's own certificate and its key. A pair that it makes itself is RSA, twenty times the work."""
        return self.state_dir / "server.pem"

    @property
    def clients(self) -> Authority:
        """The authority that the apiserver and the kubelets accept clients by."""
        return Authority(self.state_dir / "clients.crt", self.state_dir / "clients.key")

    @property
    def kubelet_client(self) -> Path:
        """The apiserver's certificate for kubelets."""
        return self.state_dir / "kubelet-client.pem"

    @property
    def tokens(self) -> Path:
        return self.state_dir / "tokens.csv"

    @property
    def signing_key(self) -> Path:
        return self.state_dir / "service-account.key"

    @property
    def volumes(self) -> Path:
        """The directories of volumes, the same for every node."""
        return self.state_dir / "volumes"

    def kubeconfig(self, component: str) -> Path:
        """Return `kubeconfig` for people, `<component>.kubeconfig` for the rest."""
        return self.state_dir / ("kubeconfig" if component == "admin" else f"{component}.kubeconfig")


def etcd(places: Places, ports: Ports, *, durable: bool) -> list[str]:
    """Return the command of etcd with one member. Not `durable`, a power cut may lose data, and writes do not wait."""
    client, peer = f"http://{HOST}:{ports.etcd}", f"http://{HOST}:{ports.etcd_peer}"
    return [
        "etcd",
        f"--data-dir={places.state_dir / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
        *([] if durable else ["--unsafe-no-fsync"]),
    ]


def apiserver(places: Places, ports: Ports, address: str, extra: list[str]) -> list[str]:
    """Return the command of kube-apiserver with token users, RBAC, and request limits wide enough for benchmarks."""
    # A loopback address may not stand in an EndpointSlice: then there is no Service `kubernetes`.
    reconciler = ["--endpoint-reconciler-type=none"] if address == HOST else []
    return [
        "kube-apiserver",
        f"--etcd-servers=http://{HOST}:{ports.etcd}",
        f"--bind-address={address}",
        f"--advertise-address={address}",
        *reconciler,
        f"--secure-port={ports.apiserver}",
        f"--tls-cert-file={places.server}",
        f"--tls-private-key-file={places.server}",
        f"--client-ca-file={places.clients.certificate}",
        f"--kubelet-client-certificate={places.kubelet_client}",
        f"--kubelet-client-key={places.kubelet_client}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--token-auth-file={places.tokens}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={places.signing_key}",
        f"--service-account-signing-key-file={places.signing_key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged",
        "--enable-aggregator-routing",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
        "--shutdown-watch-termination-grace-period=0s",
        *extra,
    ]


def controller_manager(places: Places, address: str) -> list[str]:
    """Return the command of kube-controller-manager with one identity per controller.

    It gives pod ranges to fake nodes; real ones get theirs before they are created.
    """
    ranges = ["--allocate-node-cidrs", f"--cluster-cidr={POD_RANGE}", "--node-cidr-mask-size=20"]
    return [
        "kube-controller-manager",
        f"--kubeconfig={places.kubeconfig('kube-controller-manager')}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={places.signing_key}",
        f"--root-ca-file={places.servers.certificate}",
        *(ranges if address == HOST else ["--allocate-node-cidrs=false"]),
        f"--node-monitor-grace-period={NODE_GRACE}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--kube-api-qps={QPS}",
        f"--kube-api-burst={BURST}",
    ]


def scheduler(places: Places) -> list[str]:
    """Return the command of kube-scheduler; writes the file that its client limits can only be set in."""
    path = places.state_dir / "scheduler.yaml"
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(places.kubeconfig("kube-scheduler")),
            "qps": float(QPS),
            "burst": int(BURST),
        },
    }
    write_private(path, yaml.safe_dump(document))
    return ["kube-scheduler", f"--config={path}", "--secure-port=0"]
