"""Measures the time from a `kill -9` of a service to its next right write."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import Resource
from tests.support.cluster import Cluster, eventually
from tests.support.recorder import Recorder

KINDS = {"cloneset": CLONE_SET, "statefulset": STATEFUL_SET, "daemonset": DAEMON_SET}


class Victim:
    """A service with a workload of its kind, whose pods are deleted as the service dies."""

    def __init__(self, cluster: Cluster, seen: Recorder, service: str, pods: int, nodes: dict[str, str]) -> None:
        """Prepare. `pods`: number of the workload's pods; a DaemonSet has one on each of the `nodes`."""
        self._cluster = cluster
        self._seen = seen
        self._service = service
        self._pods = pods
        cluster.apply(_manifest(KINDS[service], service, pods, nodes))

    async def seconds_from_kill_to_write(self, kill: Callable[[], None]) -> float:
        """Kill once all pods run; returns the seconds until the next pod is made."""
        await eventually(lambda: self._running() == self._pods)
        before = len(self._seen.events)
        kill()
        killed = asyncio.get_running_loop().time()
        delete = ("delete", "pod", "-l", f"app={self._service}", "--grace-period=0", "--force", "--wait=false")
        await asyncio.to_thread(self._cluster.kubectl, *delete)
        await eventually(lambda: bool(self._made_since(before)))
        return self._made_since(before)[0] - killed

    def _made_since(self, event: int) -> Sequence[float]:
        """Return when pods of the workload were created, from an event on."""
        new = (one for one in list(self._seen.events[event:]) if one.type == "ADDED")
        return [one.at for one in new if one.object["metadata"].get("labels", {}).get("app") == self._service]

    def _running(self) -> int:
        """Count its pods that run and are not terminating."""
        pods = list(self._seen.objects.values())
        own = [pod for pod in pods if pod["metadata"].get("labels", {}).get("app") == self._service]
        return sum(
            pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"] for pod in own
        )


def _manifest(kind: Resource, name: str, pods: int, nodes: dict[str, str]) -> str:
    labels = {"app": name}
    containers = [{"name": "main", "image": "nginx:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"nodeSelector": nodes, "containers": containers}}
    spec: dict[str, object] = {"selector": {"matchLabels": labels}, "template": template}
    if kind != DAEMON_SET:
        spec["replicas"] = pods
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
    return msgspec.json.encode(body).decode()
