"""The programs that the local cluster needs: oldest versions that work, and pinned versions to download or build."""

import re
from importlib import resources

import msgspec

Version = tuple[int, ...]


class Patch(msgspec.Struct, frozen=True):
    """A change of one source file of a module that a build applies: `old` occurs in it once, and becomes `new`."""

    module: str
    file: str
    old: str
    new: str

    def apply(self, source: str) -> str:
        """Return the changed source. Raises ValueError if `old` does not occur exactly once."""
        if source.count(self.old) != 1:
            raise ValueError(f"the text to replace occurs {source.count(self.old)} times in {self.file}")
        return source.replace(self.old, self.new)


class Product(msgspec.Struct, frozen=True):
    """One Go project: its pinned version, and its programs with the packages of its module (`gomod/<home>`).

    Products that share a module share its dependencies, too: each package is compiled once.
    """

    name: str
    version: str
    packages: dict[str, str]
    linked: tuple[str, ...] = ()  # -X assignments, so that the programs know their version
    build_gib: int = 2  # free disk that a cold build needs: sources, build cache, programs
    module: str = ""  # if it is not the product's own
    patches: tuple[Patch, ...] = ()

    @property
    def home(self) -> str:
        """The module that the product is built from."""
        return self.module or self.name

    @property
    def dotted(self) -> str:
        """The version without its v."""
        return self.version.removeprefix("v")

    @property
    def release(self) -> str:
        """Name and version: the folder of its programs in the cache. One without the patches is another one."""
        return f"{self.name}-{self.dotted}" + ("-patched" if self.patches else "")

    def module_files(self) -> dict[str, bytes]:
        """Return go.mod, go.sum and tools.go of the build."""
        folder = resources.files("flotilla_dev.cluster").joinpath("gomod", self.home)
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


_PLANE = "control-plane"
_KUBERNETES = "v1.36.3"
_COMPONENT = "k8s.io/component-base/version"
KUBERNETES = Product(
    "kubernetes",
    _KUBERNETES,
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in (
            *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
            *("kubelet", "kube-proxy"),
        )
    },
    (f"{_COMPONENT}.gitVersion={_KUBERNETES}", f"{_COMPONENT}.gitMajor=1", f"{_COMPONENT}.gitMinor=36"),
    build_gib=8,
    module=_PLANE,
)
ETCD = Product("etcd", "v3.7.3", {"etcd": "go.etcd.io/etcd/server/v3"}, module=_PLANE)
_KWOK = "sigs.k8s.io/kwok"
_WATCH_FROM_START = """
		opts.ResourceVersion = "0"
"""
_WATCH_FROM_WHERE_IT_ENDED = """
		if opts.ResourceVersion == "" {
			opts.ResourceVersion = "0"
		}
"""
KWOK = Product(
    "kwok",
    "v0.8.0",
    {"kwok": f"{_KWOK}/cmd/kwok"},
    (f"{_KWOK}/pkg/consts.Version=v0.8.0",),
    module=_PLANE,
    patches=(
        # kwok begins each watch at version 0, also the one after a watch that the apiserver ended because kwok was too
        # slow. Then it gets all pods again, is slower still, and the next watch ends, too.
        Patch(_KWOK, "pkg/utils/informer/event.go", _WATCH_FROM_START, _WATCH_FROM_WHERE_IT_ENDED),
    ),
)
NATS = Product("nats", "v2.15.2", {"nats-server": "github.com/nats-io/nats-server/v2"}, module=_PLANE)
_CONTAINERD = "github.com/containerd/containerd/v2"
CONTAINERD = Product(
    "containerd",
    "v2.4.2",
    {name: f"{_CONTAINERD}/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
    (f"{_CONTAINERD}/version.Version=v2.4.2",),
    build_gib=3,
)
_CRANE = "github.com/google/go-containerregistry/cmd/crane"
CRANE = Product("crane", "v0.22.1", {"crane": _CRANE}, (f"{_CRANE}/cmd.Version=v0.22.1",))
COREDNS = Product("coredns", "v1.14.7", {"coredns": "."})
_CHARTUTIL = "helm.sh/helm/v3/pkg/chartutil"
HELM = Product(
    "helm",
    "v3.21.4",
    {"helm": "helm.sh/helm/v3/cmd/helm"},
    (
        "helm.sh/helm/v3/internal/version.version=v3.21.4",
        f"{_CHARTUTIL}.k8sVersionMajor=1",  # what `helm template` takes for the cluster's version
        f"{_CHARTUTIL}.k8sVersionMinor=36",
    ),
)
_COMPOSE = "github.com/docker/compose/v2"
COMPOSE = Product(
    "compose",
    "v2.40.3",
    {"docker-compose": f"{_COMPOSE}/cmd"},
    (f"{_COMPOSE}/internal.Version=v2.40.3",),
)
NATSCLI = Product("natscli", "v0.5.1", {"nats": "github.com/nats-io/natscli/nats"}, ("main.version=0.5.1",))
PRODUCTS = (KUBERNETES, ETCD, KWOK, NATS, CONTAINERD, CRANE, COREDNS, HELM, COMPOSE, NATSCLI)


class Program(msgspec.Struct, frozen=True):
    """One program: the option that prints its version, and the oldest version that works."""

    name: str
    product: Product
    minimum: Version
    ask: tuple[str, ...] = ("--version",)

    def version(self, output: str) -> Version | None:
        """Return the version in its output, or None."""
        found = re.search(r"v?(\d+)\.(\d+)\.(\d+)", output)
        return tuple(map(int, found.groups())) if found else None


def _named(*programs: Program) -> dict[str, Program]:
    return {program.name: program for program in programs}


CONTROL_PLANE = _named(
    Program("etcd", ETCD, (3, 5, 0)),
    Program("kube-apiserver", KUBERNETES, (1, 32, 0)),
    Program("kube-controller-manager", KUBERNETES, (1, 32, 0)),
    Program("kube-scheduler", KUBERNETES, (1, 32, 0)),
    Program("kubectl", KUBERNETES, (1, 30, 0), ("version", "--client")),
    Program("kwok", KWOK, (0, 7, 0)),  # the stages here were only tried from this one on
    Program("nats-server", NATS, (2, 12, 0)),  # per-message TTL markers, which tombstones need
)
"""Programs of every local cluster."""

REAL_NODES = _named(
    Program("containerd", CONTAINERD, (2, 0, 0)),  # its configuration has another form from this one on
    Program("containerd-shim-runc-v2", CONTAINERD, (2, 0, 0), ("-v",)),
    Program("ctr", CONTAINERD, (2, 0, 0)),
    Program("kubelet", KUBERNETES, (1, 33, 0)),  # resizes containers in place without a gate from this one on
    Program("kube-proxy", KUBERNETES, (1, 33, 0)),
    Program("crane", CRANE, (0, 20, 0), ("version",)),
    Program("coredns", COREDNS, (1, 11, 0), ("-version",)),
)
"""Further programs of real nodes."""

SET = CONTROL_PLANE | REAL_NODES
"""All programs of a local cluster with real nodes."""

CHART = _named(Program("helm", HELM, (3, 18, 0), ("version", "--short")))
"""Further programs for tests of the chart."""

CONTAINERS = _named(Program("docker-compose", COMPOSE, (2, 24, 0), ("version",)))
"""Further programs for tests of compose.yaml."""

BUS_CLIENT = _named(Program("nats", NATSCLI, (0, 3, 0)))
"""The stock client of the bus, for tests of docs/bus.md."""

PROGRAMS = SET | CHART | CONTAINERS | BUS_CLIENT
