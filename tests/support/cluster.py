"""Private control planes for tests: real etcd, apiserver, controllers, scheduler and nats-server on free ports.

They sync nothing to disk, and are bound to the test process: even `kill -9` of pytest leaves no process behind.

    async with control_plane(tmp_path) as cluster:
        cluster.kubectl("apply", "-f", "-", input=manifest)
"""

import asyncio
import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.control_plane import ControlPlane, PlaneOptions
from flotilla_dev.cluster.kwok import Kubelet
from flotilla_dev.cluster.nats import NatsServer, start_nats
from flotilla_dev.cluster.programs import CONTROL_PLANE
from flotilla_dev.cluster.provision import search
from tests.support.objects import Objects
from tests.support.rest import MERGE, Rest
from tests.testkit.documents import Json


class MissingPrograms(Exception):
    """The control plane's programs are not in the cache; tests take none from PATH."""


def programs() -> Callable[[str], Path]:
    """Return the function that gives a program's path; never downloads or builds."""
    result = search(CONTROL_PLANE.values())
    missing = sorted(CONTROL_PLANE.keys() - result.found.keys())
    if missing:
        how = "run `.venv/bin/python -m tests.support.programs` once, it gets them"
        raise MissingPrograms(f"{', '.join(missing)}: {how}. Tried: {result.tried}")
    return result.found.__getitem__


async def eventually(check: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until the check holds, trying ten times a second; raises TimeoutError.

    The deadline is generous: it is for what never happens, not for what is late, because machines are shared.
    """
    clock = SystemClock()
    async with asyncio.timeout(seconds):
        while not check():
            await clock.sleep(0.1)


class Kubectl(ABC):
    """Requests with kubectl, as users make them; those that are not the subject of a test need no process."""

    @property
    @abstractmethod
    def api_objects(self) -> Objects:
        """Return the stored objects, in the namespace of `kubectl`."""

    @abstractmethod
    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl and return what it prints; raises AssertionError with its error output."""

    def read(self, *arguments: str) -> dict[str, Any]:
        """Return what `kubectl get … -o json` prints."""
        query = self.api_objects.query(arguments)
        if query is None:
            return json.loads(self.kubectl("get", *arguments, "-o", "json"))
        return self.api_objects.get(query)

    def create(self, *documents: Json | str) -> None:
        """Create these manifests by the requests of `kubectl create`; texts by kubectl itself."""
        for document in documents:
            if isinstance(document, str):
                self.kubectl("create", "-f", "-", stdin=document)
            else:
                items: list[Json] = document["items"] if document["kind"] == "List" else [document]
                for item in items:
                    self.api_objects.create(item)

    def send_patch(self, word: str, name: str, body: object, *, kind: str = MERGE, subresource: str = "") -> Json:
        """Patch an object by the request of `kubectl patch`. `kind`: a content type of `rest`."""
        return self.api_objects.patch(word, name, body, kind=kind, subresource=subresource)

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """Return kubectl's output for a request that must fail."""
        with pytest.raises(AssertionError) as refusal:
            self.kubectl(*arguments, stdin=stdin)
        return str(refusal.value)

    def refuses(self, document: Json | str, verb: str = "create") -> str:
        """Return kubectl's output for a manifest that must be refused."""
        return self.refused(verb, "-f", "-", stdin=_manifest(document))

    def refuses_patch(self, kind: str, name: str, patch: Json) -> str:
        """Return kubectl's output for a merge patch that must be refused."""
        return self.refused("patch", kind, name, "--type=merge", "-p", json.dumps(patch))


def _manifest(*documents: Json | str) -> str:
    """Return the documents as kubectl reads them."""
    found = documents[0] if len(documents) == 1 else {"apiVersion": "v1", "kind": "List", "items": documents}
    return found if isinstance(found, str) else json.dumps(found)


class Cluster(Kubectl):
    """A running control plane and its clients."""

    def __init__(self, plane: ControlPlane, program: Callable[[str], Path]) -> None:
        self.plane = plane
        self.kubeconfig = plane.kubeconfig
        self.program = program

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True, timeout: float = 60) -> str:
        """Run kubectl and return what it prints; raises with its error output."""
        reply = subprocess.run(
            [self.program("kubectl"), "--kubeconfig", self.kubeconfig, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and reply.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {reply.stderr or reply.stdout}")
        return reply.stdout

    @cached_property
    def rest(self) -> Rest:
        """Return a client with the credentials of the kubeconfig."""
        return Rest(self.kubeconfig)

    @cached_property
    def api_objects(self) -> Objects:
        return Objects(self.rest)

    def apply(self, document: Json | str) -> None:
        """Run `kubectl apply`."""
        self.kubectl("apply", "-f", "-", stdin=_manifest(document))

    async def nats(self) -> NatsServer:
        """Return the nats-server beside this control plane (the same one every time)."""
        return await start_nats(self.plane.places.state_dir, program=self.program, bound=True)


@asynccontextmanager
async def control_plane(
    state_dir: Path, *, nodes: int = 3, kubelet: Kubelet | None = None, apiserver_flags: tuple[str, ...] = ()
) -> AsyncGenerator[Cluster]:
    """Run a control plane with fake nodes for the time of the block."""
    program = programs()
    clock = SystemClock()
    options = PlaneOptions(durable=False, bound=True, apiserver_flags=apiserver_flags, kubelet=kubelet or Kubelet())
    plane = ControlPlane(state_dir, program, clock, options=options)
    try:
        await plane.start()
        await plane.add_nodes(nodes)
        yield Cluster(plane, program)
    finally:
        await plane.processes.stop(["nats-server"], clock, grace=0)
        await plane.stop(grace=0)  # nothing here is worth a farewell
