"""Namespaces and ResourceDistributions of one test, by a unique name: both are cluster-scoped."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import pytest

from tests.support.cluster import Cluster, eventually
from tests.support.fleet import Fleet
from tests.testkit.documents import Json

VERSIONS = ("v1alpha1", "v1beta1")
PATIENCE = 60.0


class Place:
    """A corner of the cluster."""

    def __init__(self, fleet: Fleet, title: str) -> None:
        self.fleet = fleet
        self.cluster: Cluster = fleet.cluster
        self.prefix = f"rd-{crc32(title.encode()):08x}"
        self._namespaces: list[str] = []

    @property
    def name(self) -> str:
        """Return the name of the ResourceDistribution, and of the distributed resource."""
        return self.prefix

    def at(self, letter: str) -> str:
        """Return the whole name of a namespace."""
        return f"{self.prefix}-{letter}"

    def namespace(self, letter: str, **labels: str) -> str:
        """Create a namespace; return its name."""
        metadata = {"name": self.at(letter), "labels": labels}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self._namespaces.append(self.at(letter))
        return self.at(letter)

    def names(self, *letters: str) -> Json:
        """Return these namespaces as the targets' list."""
        return {"list": [{"name": self.at(letter)} for letter in letters]}

    def apply(self, manifest: Json | str) -> None:
        """Run `kubectl apply`."""
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        self.cluster.apply(text)

    def refused(self, manifest: Json) -> str:
        """Return kubectl's output for a manifest that must be refused."""
        with pytest.raises(AssertionError) as refusal:
            self.apply(manifest)
        return str(refusal.value)

    def secret(self, value: str = "v1", **members: Any) -> Json:
        """Return a Secret to distribute."""
        data = {"k": base64.b64encode(value.encode()).decode()}
        metadata = {"name": self.name, "labels": {"source": "yes"}}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data, **members}

    def distribution(self, resource: Json, *, version: str = "v1beta1", **targets: Any) -> Json:
        """Return the manifest of the ResourceDistribution."""
        return {
            "apiVersion": f"apps.kruise.io/{version}",
            "kind": "ResourceDistribution",
            "metadata": {"name": self.name},
            "spec": {"resource": resource, "targets": targets},
        }

    def read(self, version: str = "v1beta1") -> Json:
        """Return the ResourceDistribution in this version."""
        return self.cluster.read(f"resourcedistributions.{version}.apps.kruise.io", self.name)

    def copy(self, letter: str, kind: str = "secret") -> Json:
        """Return the object of the source's name in the namespace; empty if absent."""
        where = f"--field-selector=metadata.name={self.name}"
        return next(iter(self.cluster.read(kind, "-n", self.at(letter), where)["items"]), {})

    def held(self, letter: str, kind: str = "secret") -> str:
        """Return the decoded value of the copy."""
        value: str = self.copy(letter, kind).get("data", {}).get("k", "")
        return base64.b64decode(value).decode() if kind == "secret" else value

    def patch(self, letter: str, patch: Json, kind: str = "secret") -> None:
        """Edit the copy."""
        self.cluster.api_objects.within(self.at(letter)).patch(kind, self.name, patch)

    def change(self, patch: Json) -> None:
        """Edit the ResourceDistribution."""
        self.cluster.send_patch("distributor", self.name, patch)

    async def until(self, check: Callable[[], bool]) -> None:
        """Wait; on failure report the status."""
        try:
            await eventually(check, PATIENCE)
        except TimeoutError:
            raise AssertionError(json.dumps(self.read().get("status"), indent=1)) from None

    async def until_any(self, check: Callable[[], bool]) -> None:
        """Wait for something that has another name."""
        await eventually(check, PATIENCE)

    async def until_gone(self, *letters: str) -> None:
        """Wait until nothing has the name in these namespaces."""
        await eventually(lambda: all(self.copy(letter) == {} for letter in letters), PATIENCE)

    async def counted(self, desired: int, succeeded: int) -> Json:
        """Return the status once it has these counts for the newest spec."""

        def reached() -> bool:
            found = self.read()
            status = found.get("status", {})
            counts = tuple(status.get(count, 0) for count in ("desired", "succeeded", "failed"))
            seen = status.get("observedGeneration") == found["metadata"]["generation"]
            return seen and counts == (desired, succeeded, desired - succeeded)

        await self.until(reached)
        return self.read()["status"]

    def end(self) -> None:
        """Leave nothing behind."""
        self.cluster.kubectl("delete", "distributor", self.name, "--ignore-not-found", "--wait=false")
        for name in self._namespaces:
            self.cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def place(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Yield a prefix of namespaces on the shared plane, and clean up after the test."""
    made = Place(shared, request.node.nodeid)
    yield made
    made.end()
