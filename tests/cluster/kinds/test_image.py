"""The image on a real node: every program in it starts under Pod Security "restricted", and its services are alive."""

import re
import tempfile
from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from flotilla_common.api.resources import POD
from flotilla_dev.image import build
from flotilla_dev.image.build import Built
from flotilla_dev.image.tree import File
from tests.cluster.conftest import forget
from tests.support.cluster import eventually
from tests.support.nodes import RealCluster
from tests.testkit.documents import typed

SPACE = "restricted"
RESTRICTED = {
    "runAsNonRoot": True,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
HEALTHZ = {"httpGet": {"path": "/healthz", "port": 8000}, "periodSeconds": 1, "failureThreshold": 60}
SERVICES = ("cloneset", "webhook")
UNWANTED = re.compile(
    r"(^|/)s?bin/(sh|bash|dash|gcc|cc|ld|make|apt|apt-get|dpkg|pip3?|uv)$|/(pip|setuptools|pytest|ensurepip)$"
)


@pytest.fixture(scope="module")
def built() -> Built:
    return build.build(print)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stocked(cluster: RealCluster, built: Built) -> AsyncIterator[RealCluster]:
    """Yield the cluster with the images in its registry, and a namespace that admits only restricted pods."""
    await cluster.registry.store(build.reference(), built.image)
    await cluster.registry.store(build.BUS_NAMES[0], build.bus_image(cluster.program("nats-server")))
    cluster.kubectl("create", "namespace", SPACE)
    cluster.kubectl("label", "namespace", SPACE, "pod-security.kubernetes.io/enforce=restricted")
    yield cluster
    forget(cluster, SPACE)


def start(
    cluster: RealCluster, name: str, image: str, command: Sequence[str] = (), probe: dict[str, object] | None = None
) -> None:
    container: dict[str, object] = {"name": "main", "image": image, "securityContext": RESTRICTED}
    if command:
        container["command"] = list(command)
    if probe:
        container["readinessProbe"] = probe
    pod = typed(POD, name, SPACE, spec={"restartPolicy": "Never", "containers": [container]})
    cluster.apply(pod)


def ready(cluster: RealCluster, name: str) -> bool:
    conditions = cluster.read("pod", name, "--namespace", SPACE).get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def ended(cluster: RealCluster, name: str) -> str:
    """Return the final phase of a pod; empty while it runs."""
    phase = cluster.read("pod", name, "--namespace", SPACE).get("status", {}).get("phase", "")
    return phase if phase in {"Succeeded", "Failed"} else ""


def said(cluster: RealCluster, name: str) -> str:
    return cluster.kubectl("logs", name, "--namespace", SPACE)


async def test_without_a_command_it_is_flotilla_which_runs_no_cluster(stocked: RealCluster) -> None:
    start(stocked, "plain", build.reference())
    start(stocked, "up", build.reference(), ["flotilla", "up"])
    await eventually(lambda: all(ended(stocked, name) for name in ("plain", "up")), 120)
    assert ended(stocked, "plain") == "Succeeded"
    assert "Usage: flotilla" in said(stocked, "plain")
    assert "needs the package flotilla-dev" in said(stocked, "up")


async def test_services_are_alive_and_every_program_is_there(stocked: RealCluster) -> None:
    """Without a bus: to wait for one is no reason to end. The node agent says what it lacks."""
    for service in SERVICES:
        start(stocked, service, build.reference(), [f"flotilla-{service}"], HEALTHZ)
    programs = build.first_commands()[1]
    start(stocked, "programs", build.reference(), programs)
    start(stocked, "nodeagent", build.reference(), ["flotilla-nodeagent", "--no-such-flag"])
    await eventually(lambda: all(ready(stocked, service) for service in SERVICES), 120)
    await eventually(lambda: all(ended(stocked, name) for name in ("programs", "nodeagent")), 120)
    assert ended(stocked, "programs") == "Succeeded"
    assert "unknown flag --no-such-flag" in said(stocked, "nodeagent")


async def test_nats_server_runs_under_its_public_name(stocked: RealCluster) -> None:
    start(stocked, "nats", build.BUS_NAMES[0])
    await eventually(lambda: ready(stocked, "nats"), 120)
    await eventually(lambda: "Server is ready" in said(stocked, "nats"), 30)


def test_nothing_is_in_it_that_a_service_does_not_run(built: Built) -> None:
    names = {name for layer in built.layers for name in layer.files()}
    assert [name for name in names if UNWANTED.search(name)] == []
    assert [name for name in names if "/tests/" in name] == []
    assert [name for name in names if "flotilla_dev" in name] == []


def test_all_python_of_it_is_compiled(built: Built) -> None:
    for layer in built.layers:
        files = layer.files()
        modules = [name for name in files if name.endswith(".py")]
        assert modules
        compiled = (re.sub(r"([^/]+)\.py$", r"__pycache__/\1.cpython-311.pyc", name) for name in modules)
        assert [name for name in compiled if name not in files] == []


def test_bytecode_names_no_folder_of_the_build(built: Built) -> None:
    files = [entry for layer in built.layers for entry in layer.files().values() if isinstance(entry, File)]
    made_in = f"{tempfile.gettempdir()}/flotilla-image-".encode()
    assert not [entry for entry in files if made_in in entry.content and entry.content[:2] == b"\xa7\r"]
