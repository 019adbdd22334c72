"""The chart, used as a user does: with helm, and on real nodes with the image from their registry.

async with release(cluster, services__cloneset__shards=4) as flotilla:
    flotilla.helm.install("upgrade", profile="compact")
    await flotilla.healthy()
"""

import asyncio
import base64
import json
import os
import subprocess
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.provision import provide
from flotilla_dev.image import build
from flotilla_dev.image.oci import push
from tests.support.cluster import eventually
from tests.support.nodes import RealCluster

CHART = Path(__file__).parents[2] / "helm" / "flotilla"
NAMESPACE = "kruise-system"
PATIENCE = "180s"

Value = str | int | bool


class Helm:
    """helm against a cluster, or against none for `template` and `lint`."""

    def __init__(self, program: Path, kubeconfig: Path | None = None) -> None:
        self._command = [str(program), *(["--kubeconfig", str(kubeconfig)] if kubeconfig else [])]

    def run(self, *arguments: str, check: bool = True) -> str:
        """Run helm and return its output; raises AssertionError with its error output."""
        reply = subprocess.run([*self._command, *arguments], capture_output=True, text=True, timeout=300, check=False)
        if check and reply.returncode:
            raise AssertionError(f"helm {' '.join(arguments)}: {reply.stderr}")
        return reply.stdout if check else reply.stdout + reply.stderr

    def template(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the objects of the chart with these values."""
        printed = self.run("template", "flotilla", str(CHART), *arguments)
        documents = yaml.load_all(printed, Loader=yaml.CSafeLoader)  # a tenth of the time of the one in Python
        return [document for document in documents if document]

    def install(self, verb: str = "install", chart: Path = CHART, **values: Value) -> str:
        """Install or upgrade the chart, and wait until everything is ready."""
        return self.run(verb, "flotilla", str(chart), "--wait", "--timeout", PATIENCE, *settings(values))


class Release:
    """The chart on a cluster: the counterpart of a `Fleet`, whose services run as processes."""

    def __init__(self, cluster: RealCluster, helm: Helm) -> None:
        self._cluster = cluster
        self.helm = helm

    @property
    def cluster(self) -> RealCluster:
        return self._cluster

    def kubectl(self, *arguments: str, check: bool = True, timeout: float = 120) -> str:
        """Run kubectl in Flotilla's own namespace."""
        return self._cluster.kubectl("-n", NAMESPACE, *arguments, check=check, timeout=timeout)

    def pods(self, component: str = "") -> list[dict[str, Any]]:
        """Return Flotilla's own pods, or those of one service."""
        chosen = f"app.kubernetes.io/name=flotilla{f',app.kubernetes.io/component={component}' if component else ''}"
        return self._cluster.read("pods", "-n", NAMESPACE, "-l", chosen)["items"]

    def ready(self, component: str, count: int) -> bool:
        """Report whether just this many pods of a service exist, and all are ready."""
        return [_is_ready(pod) for pod in self.pods(component)] == [True] * count

    def held(self, service: str) -> dict[str, str]:
        """Return the holder of each shard of a service, without shards that have no holder."""
        chosen = f"flotilla.kruise.io/service={service},flotilla.kruise.io/role=shard"
        leases = self._cluster.read("leases", "-n", NAMESPACE, "-l", chosen)["items"]
        named = {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") for lease in leases}
        return {name: holder for name, holder in named.items() if holder}

    async def scale(self, service: str, replicas: int) -> None:
        """Scale `deploy/flotilla-<service>`; return when this many replicas are ready."""
        await asyncio.to_thread(self.kubectl, "scale", f"deploy/flotilla-{service}", f"--replicas={replicas}")
        await eventually(lambda: self.ready(service, replicas), 90)

    async def use(self, service: str, image: str) -> None:
        """Replace the pods of `deploy/flotilla-<service>` by pods with this image; return when they are ready."""
        workload = f"deploy/flotilla-{service}"
        await asyncio.to_thread(self.kubectl, "set", "image", workload, f"{service}={image}")
        await self.rolled_out(workload)

    def images(self) -> dict[str, set[str]]:
        """Return the images of our own pods that are not being deleted, by service."""
        found: dict[str, set[str]] = {}
        for pod in self.pods():
            if "deletionTimestamp" not in pod["metadata"]:
                service = pod["metadata"]["labels"]["app.kubernetes.io/component"]
                found.setdefault(service, set()).update(one["image"] for one in pod["spec"]["containers"])
        return found

    async def rolled_out(self, *workloads: str, seconds: int = 120) -> None:
        """Run `kubectl rollout status` for each."""
        for workload in workloads:
            words = ("rollout", "status", workload, f"--timeout={seconds}s")
            await asyncio.to_thread(self.kubectl, *words, timeout=seconds + 30)

    def workloads(self) -> list[str]:
        """Return all our workloads with pods, as `deployment.apps/flotilla-watcher`."""
        return self.kubectl("get", "deploy,sts,ds", "-l", "app.kubernetes.io/name=flotilla", "-o", "name").split()

    @contextmanager
    def forwarded_bus(self) -> Generator[tuple[str, dict[str, str]]]:
        """Yield the URL of the bus on this machine and an environment with the credentials that may do everything."""
        secret = json.loads(self.kubectl("get", "secret", "flotilla-bus-flotilla", "-o", "json"))["data"]
        with TemporaryDirectory() as folder, self.forwarded("svc/flotilla-bus", 4222) as port:
            held = Path(folder) / "flotilla.seed"
            held.write_bytes(b"\n".join(base64.b64decode(one) for one in secret.values()))
            given = {"FLOTILLA_NATS_CREDS": str(held), "FLOTILLA_NATS_CA": str(held)}
            yield f"tls://localhost:{port}", {**os.environ, **given}

    @contextmanager
    def forwarded(self, target: str, port: int) -> Generator[int]:
        """Yield the port of this machine that `kubectl port-forward` sends on."""
        words = ("-n", NAMESPACE, "port-forward", target, f":{port}")
        command = [self._cluster.program("kubectl"), "--kubeconfig", self._cluster.kubeconfig, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
            try:
                assert forwarding.stdout is not None
                said = forwarding.stdout.readline()  # Forwarding from 127.0.0.1:40117 -> 4222
                yield int(said.split()[2].rpartition(":")[2])
            finally:
                forwarding.terminate()

    async def healthy(self) -> None:
        """Wait until all pods are ready, and check that no program has logged a programming error."""
        await self.rolled_out(*self.workloads())
        for pod in self.pods():
            log = self.kubectl("logs", pod["metadata"]["name"], "--all-containers", "--prefix", check=False)
            assert "Traceback" not in log, log[log.index("Traceback") - 1000 :][:4000]


@asynccontextmanager
async def release(cluster: RealCluster, chart: Path = CHART, **values: Value) -> AsyncGenerator[Release]:
    """Install the chart with these values on a cluster, with its images pushed."""
    push_images(cluster)
    made = Release(cluster, await helm(cluster.kubeconfig))
    await asyncio.to_thread(made.helm.install, chart=chart, **values)
    yield made


def settings(values: Mapping[str, Value]) -> Iterator[str]:
    """Yield `--set` for each value; `__` stands for a dot."""
    for name, value in values.items():
        yield from ("--set", f"{name.replace('__', '.')}={str(value).lower() if isinstance(value, bool) else value}")


async def helm(kubeconfig: Path | None = None) -> Helm:
    """Return helm, downloaded or built if missing."""
    program = await provide(["helm"], SystemClock(), say=print)
    return Helm(program("helm"), kubeconfig)


def push_images(cluster: RealCluster) -> None:
    """Put the image of the services and one of nats-server into the registry of the nodes."""
    crane = cluster.program("crane")
    push(build.build(print).image, cluster.registry.address, build.reference(build.REPOSITORY), crane)
    server = build.bus_image(cluster.program("nats-server"))
    for name in build.BUS_NAMES:
        push(server, cluster.registry.address, name, crane)


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
