"""The metrics of kruise-state-metrics, for objects on a real apiserver, written in both versions.

The expected value of each series follows from the object as kubectl reads it, by integrations/kube-state-metrics: so
the service and that file are compared with each other, and both with real objects.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flotilla_cli.local import bound_command
from flotilla_cli.nats_config import credentials_of
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_dev.cluster.ports import free_ports
from tests.support.cluster import eventually
from tests.support.custom_resource_state import series_of
from tests.support.fleet import Fleet, page
from tests.support.workspace import Workspace, watched
from tests.testkit.documents import Json
from tests.unit.statemetrics.scraped import Series, read

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(180)]

BOTH = {"CloneSet": "v1alpha1", "StatefulSet": "v1alpha1", "BroadcastJob": "v1alpha1"}
"""Kinds of which there is a second object, written in the older version."""


def pods(name: str, **spec: Any) -> Json:
    """Return the template of pods with a label of their own."""
    containers = [{"name": "main", "image": "nginx:1"}]
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **spec}}


def running(name: str, **spec: Any) -> Json:
    """Return what workloads have in common."""
    return {"selector": {"matchLabels": {"app": name}}, "template": pods(name, **spec)}


class Served:
    """The service as a process of the test's own, with no more rights on the bus than it has."""

    def __init__(self, shared: Fleet, folder: Path) -> None:
        self.port, self.health, self.own = free_ports(3)
        self._log = folder / "statemetrics.log"
        command = [
            *(sys.executable, "-m", "flotilla_cli", "run", "statemetrics"),
            f"--kubeconfig={shared.cluster.kubeconfig}",
            f"--nats={shared.nats.url}",
            f"--nats-creds={credentials_of(Path(shared.nats.credentials), 'statemetrics')}",
            f"--health-port={self.health}",
            f"--metrics-port={self.own}",
            f"--state-metrics-port={self.port}",
        ]
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(bound_command(command), stdout=output, stderr=output, env={**os.environ})

    def ready(self) -> bool:
        return page(self.health, "readyz")[0] == 200

    def series(self) -> dict[Series, float]:
        code, text = page(self.port, "metrics")
        assert code == 200, text
        return read(text)

    def of(self, obj: Json) -> dict[Series, float]:
        """Return the series of one object."""
        word = obj["kind"].lower()
        name, place = obj["metadata"]["name"], obj["metadata"].get("namespace")
        return {
            (series, labels): value
            for (series, labels), value in self.series().items()
            if series.startswith(f"kruise_{word}_")
            and dict(labels)[word] == name
            and (place is None or dict(labels).get("namespace") == place)
        }

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")


@pytest.fixture
def space(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    with watched(shared.cluster, request.node.nodeid, CLONE_SET) as made:
        yield made


@pytest.fixture
def served(shared: Fleet, tmp_path: Path) -> Iterator[Served]:
    made = Served(shared, tmp_path)
    yield made
    made.process.terminate()
    made.process.wait()


def objects(space: Workspace) -> Iterator[Json]:
    """Yield one of each kind, and a second one of some. The SidecarSet matches no pod of anybody."""
    nowhere: Json = {"nodeSelector": {"no": "node"}}
    specs: dict[str, Json] = {
        "CloneSet": {"replicas": 2, **running("clone")},
        "StatefulSet": {"replicas": 1, "serviceName": "x", "reserveOrdinals": [2], **running("stateful")},
        "DaemonSet": running("daemon", **nowhere),
        "BroadcastJob": {
            "template": pods("job", restartPolicy="Never", **nowhere),
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 900},
        },
        "WorkloadSpread": {
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "new"},
            "subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b"}],
            "scheduleStrategy": {"type": "Fixed"},
        },
        "SidecarSet": {
            "selector": {"matchLabels": {"space": space.name}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.name}},
            "containers": [{"name": "mesh", "image": "nginx:1"}],
        },
    }
    for kind, spec in specs.items():
        name = f"{space.name}-new" if kind == "SidecarSet" else "new"
        metadata = {"name": name, "labels": {"made.in": "v1beta1"}}
        yield {"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}
    for kind, version in BOTH.items():
        spec = {name: value for name, value in specs[kind].items() if name != "reserveOrdinals"}
        if "selector" in spec:
            spec |= running(f"old-{kind.lower()}")
        metadata = {"name": "old", "labels": {"made.in": version}}
        yield {"apiVersion": f"apps.kruise.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def stored(space: Workspace, made: Json) -> Json:
    """Return the object in the version that is stored."""
    return space.read(f"{made['kind'].lower()}s.v1beta1.apps.kruise.io", made["metadata"]["name"])


async def settled(space: Workspace, served: Served, made: list[Json]) -> None:
    """Wait until CloneSets have settled, and each series matches its object."""
    wrong: list[str] = []

    def agree() -> bool:
        found = [stored(space, one) for one in made]
        clones = [one for one in found if one["kind"] == "CloneSet"]
        expected = {series: value for one in found for series, value in series_of(one).items()}
        ours = {series: value for one in found for series, value in served.of(one).items()}
        wrong[:] = [
            f"{one}: {expected[one]}, not {ours.get(one)}" for one in expected if expected[one] != ours.get(one)
        ]
        wrong.extend(
            f"pods of {one['metadata']['name']}"
            for one in clones
            if one.get("status", {}).get("readyReplicas") != one["spec"]["replicas"]
        )
        return not wrong

    try:
        await eventually(agree, 60)
    except TimeoutError:
        raise AssertionError("\n".join(wrong)) from None


async def test_series_are_what_the_objects_say_while_they_live(space: Workspace, served: Served) -> None:
    made = [space.apply(one) for one in objects(space)]
    try:
        await eventually(served.ready, 60)
        assert page(served.own, "metrics")[0] == 200

        await settled(space, served, made)
        older = ("old", "clonesets.v1alpha1.apps.kruise.io")
        space.patch({"spec": {"replicas": 3, "updateStrategy": {"paused": True}}}, *older)
        await settled(space, served, made)
        clone = {name: value for (name, _), value in served.of(space.read(older[1], older[0])).items()}
        assert clone["kruise_cloneset_status_replicas"] == 3
        assert clone["kruise_cloneset_spec_paused"] == 1
    finally:
        gone = [one for one in made if one["kind"] in {"SidecarSet", "CloneSet"}]
        for one in gone:
            space.kubectl("delete", f"{one['kind'].lower()}s.v1beta1.apps.kruise.io", one["metadata"]["name"])
    await eventually(lambda: not any(served.of(one) for one in gone), 30)
    own = page(served.own, "metrics")[1]
    assert 'flotilla_mirror_direct{resource="apps_kruise_io.clonesets"} 0.0' in own, served.log()
    assert "kruise_cloneset_created" not in own
    assert "ermissions" not in served.log()
