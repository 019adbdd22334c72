"""The chart, used as a user does: with helm, and on real nodes with the image from their registry."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from flotilla_cli.cluster.provision import provide
from flotilla_cli.image import build, nats
from flotilla_cli.image.push import push
from flotilla_common.clock import SystemClock
from tests.support.nodes import RealCluster

CHART = Path(__file__).parents[2] / "helm" / "flotilla"
NAMESPACE = "kruise-system"
PATIENCE = "180s"


class Helm:
    """helm against a cluster, or against none for `template` and `lint`."""

    def __init__(self, program: Path, kubeconfig: Path | None = None) -> None:
        self._command = [str(program), *(["--kubeconfig", str(kubeconfig)] if kubeconfig else [])]

    def run(self, *arguments: str, check: bool = True) -> str:
        """What helm prints; raises AssertionError with its error output."""
        reply = subprocess.run([*self._command, *arguments], capture_output=True, text=True, timeout=300, check=False)
        if check and reply.returncode:
            raise AssertionError(f"helm {' '.join(arguments)}: {reply.stderr}")
        return reply.stdout if check else reply.stdout + reply.stderr

    def template(self, *arguments: str) -> list[dict[str, Any]]:
        """The objects of the chart with these values."""
        printed = self.run("template", "flotilla", str(CHART), *arguments)
        documents = yaml.load_all(printed, Loader=yaml.CSafeLoader)  # a tenth of the time of the one in Python
        return [document for document in documents if document]

    def install(self, verb: str = "install", **values: str | int | bool) -> str:
        """Install or upgrade the chart, and wait until everything is ready."""
        return self.run(verb, "flotilla", str(CHART), "--wait", "--timeout", PATIENCE, *settings(values))


def settings(values: Mapping[str, str | int | bool]) -> Iterator[str]:
    """`--set` for each value; `__` stands for a dot."""
    for name, value in values.items():
        yield from ("--set", f"{name.replace('__', '.')}={str(value).lower() if isinstance(value, bool) else value}")


async def helm(kubeconfig: Path | None = None) -> Helm:
    """helm, got if it is not there."""
    program = await provide(["helm"], SystemClock(), say=print)
    return Helm(program("helm"), kubeconfig)


def push_images(cluster: RealCluster) -> None:
    """Put the image of the services and one of nats-server into the registry of the nodes."""
    crane = cluster.program("crane")
    push(build.build(print).image, cluster.registry.address, build.reference(build.REPOSITORY), crane)
    server = nats.image(cluster.program("nats-server"))
    for name in nats.NAMES:
        push(server, cluster.registry.address, name, crane)
