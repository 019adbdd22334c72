"""A whole cluster around the apiserver: its controllers, their watches, and its faults."""

from collections.abc import Callable

import msgspec

from flotilla_common.api.resources import CLAIM, CONFIG_MAP, NODE, POD
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import ObjectKey
from tests.simulation.apiserver.wire import Wire
from tests.simulation.cluster.durations import Durations
from tests.simulation.cluster.garbage import GarbageCollector
from tests.simulation.cluster.jobs import Jobs
from tests.simulation.cluster.kubelet import Kubelets
from tests.simulation.cluster.namespaces import Namespaces
from tests.simulation.cluster.nodes import LostPods, Nodes
from tests.simulation.cluster.scheduler import Scheduler
from tests.simulation.cluster.volumes import Volumes
from tests.simulation.cluster.workloads import Workloads
from tests.simulation.history import Version
from tests.simulation.restored_copies import RESTORED_NAMESPACE
from tests.testkit.documents import typed

ZONES = 3


class Cluster:
    """Everybody but us. Must be made inside the running loop."""

    def __init__(
        self, server: ApiServer, *, durations: Durations | None = None, wire: Callable[[str], Wire] | None = None
    ) -> None:
        self.server = server
        durations = durations or Durations()

        def carried(writer: str) -> Wire | None:
            return wire(writer) if wire else None

        self.kubelets = Kubelets(server, durations, carried("kubelet"))
        self.scheduler = Scheduler(server, durations, carried("scheduler"))
        self.nodes = Nodes(server, durations, self.kubelets.dead, carried("nodes"))
        self.lost_pods = LostPods(server, durations, carried("nodes"))
        self.namespaces = Namespaces(server, durations, carried("namespaces"))
        self.volumes = Volumes(server, durations, carried("volumes"))
        self.jobs = Jobs(server, durations, carried("jobcontroller"))
        self.workloads = Workloads(server, durations, carried("workloads"))
        self.garbage = GarbageCollector(server, durations, carried("gc"))
        self._paced = (
            *(self.kubelets, self.scheduler, self.nodes, self.lost_pods),
            *(self.namespaces, self.volumes, self.jobs, *self.workloads.actors),
        )
        server.history.listeners.append(self._see)

    @property
    def busy(self) -> bool:
        """Somebody works, or will without anything else happening."""
        return self.garbage.busy or any(actor.busy for actor in self._paced)

    async def add_nodes(self, count: int) -> None:
        """Ready nodes `node-1`, `node-2`, …, spread over zones."""
        for number in range(1, count + 1):
            await self.kubelets.api.create(NODE, "", msgspec.json.encode(_node(number)))

    def lose_node(self, name: str) -> None:
        """Cut a node off: its kubelet stops reporting."""
        self.kubelets.dead.add(name)
        self._touch_node(name)

    def return_node(self, name: str) -> None:
        """Return a node, with its containers as they were."""
        self.kubelets.dead.discard(name)
        self._touch_node(name)

    def crash_container(self, namespace: str, pod: str, container: str) -> None:
        """Crash a container; its kubelet restarts it."""
        document = self.kubelets.stored((namespace, pod))
        if document is not None:
            self.kubelets.crashed.add((document["metadata"]["uid"], container))
            self.kubelets.touch((namespace, pod))

    @property
    def broken_images(self) -> set[str]:
        """Images that cannot be pulled; what runs one already goes on. Taking one out calls for `mend_image`."""
        return self.kubelets.broken_images

    def mend_image(self, image: str) -> None:
        """Make an image pullable again."""
        self.kubelets.broken_images.discard(image)
        self.kubelets.touch_all()

    def set_pace(self, durations: Durations) -> None:
        """Everything that begins from now on takes other times."""
        for actor in self._paced:
            actor.durations = durations
        self.garbage.durations = durations

    def _touch_node(self, name: str) -> None:
        self.nodes.touch(("", name))
        self.kubelets.touch_all()

    def _see(self, version: Version) -> None:
        if version.namespace == RESTORED_NAMESPACE:
            return
        resource, place = version.resource, (version.namespace, version.name)
        self.garbage.see(version)
        self.namespaces.see(version)
        self.volumes.see(version)
        self.jobs.see(version)
        self.workloads.see(version)
        if resource == POD:
            self._see_pod(place, version)
        elif resource == NODE:
            self.nodes.touch(place)
            self.lost_pods.touch_all()
            self.scheduler.touch_all()
            if version.verb == "create":
                self.kubelets.touch_all()
        elif resource == CLAIM:
            self.scheduler.touch_all()
        elif resource == CONFIG_MAP:
            self.kubelets.see_config_map(place)

    def _see_pod(self, place: ObjectKey, version: Version) -> None:
        self.kubelets.touch(place)
        self.scheduler.touch(place)
        self.lost_pods.touch(place)
        if version.after is None:
            self.scheduler.touch_all()  # there is room again


def _node(number: int) -> Json:
    name = f"node-{number}"
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return typed(NODE, name, labels=labels, status={"capacity": room, "allocatable": room, "conditions": [ready]})
