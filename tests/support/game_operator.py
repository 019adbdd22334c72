"""A stand-in for OpenKruiseGame: acts on an Advanced StatefulSet and its pods as that controller does.

Written after its documentation (openkruise/kruise-game, docs/en). Pods are game servers; their labels give the
operational state and the order of deletion and of updates. The controller chooses which servers are deleted, and writes
that as `reserveOrdinals` and `replicas` in one update of the set.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from tests.support.rest import MERGE, Conflict, Rest
from tests.support.workspace import Json as Document
from tests.support.workspace import terminating
from tests.testkit.documents import Json, typed

STATE, DELETION, PRIORITY = (
    "game.kruise.io/gs-opsState",
    "game.kruise.io/gs-delete-priority",
    "game.kruise.io/gs-update-priority",
)
OWNER = "game.kruise.io/owner-gss"
NETWORK = "game.kruise.io/network-ready"
GOES_FIRST = ("WaitToBeDeleted", "None", "Allocated", "Maintaining")
OLD, NEW = "nginx:alpine", "nginx:mainline"


class GameOperator:
    """The controller, for one set of game servers."""

    def __init__(self, rest: Rest, namespace: str, name: str = "game") -> None:
        self._rest = rest
        self._namespace = namespace
        self._name = name
        self._given: set[int] = set()
        self.keeps_numbers = False
        """`scaleDownStrategyType: ReserveIds`: the numbers of servers that went are not used again."""

    def create(self, replicas: int, *, network: bool = False, **spec: object) -> Json:
        """Create the set. `network`: servers are ready once the operator marks them as reachable."""
        gates = [{"conditionType": "InPlaceUpdateReady"}] + [{"conditionType": NETWORK}] * network
        labels = {OWNER: self._name}
        containers = [{"name": name, "image": OLD} for name in ("server", "scripts")]
        order: Json = {"priorityStrategy": {"orderPriority": [{"orderedKey": PRIORITY}]}}
        rolling: Json = {
            "podUpdatePolicy": "InPlaceIfPossible",
            "partition": 0,
            "maxUnavailable": "100%",
            "unorderedUpdate": order,
        }
        body: Json = {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "StatefulSet",
            "metadata": {"name": self._name},
            "spec": {
                "replicas": replicas,
                "serviceName": self._name,
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"terminationGracePeriodSeconds": 1, "readinessGates": gates, "containers": containers},
                },
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
                **spec,
            },
        }
        return self._rest.send("POST", self._sets, body)

    def take_care(self) -> None:
        """Give every new server its labels and a Service of its own, which goes with it."""
        for pod in self.servers():
            if STATE in pod["metadata"]["labels"]:
                continue
            meta = pod["metadata"]
            self.mark(meta["name"], **{STATE: "None", DELETION: "0", PRIORITY: "0"})
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
            service: Json = {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": meta["name"], "ownerReferences": [owner]},
                "spec": {
                    "selector": {"statefulset.kubernetes.io/pod-name": meta["name"]},
                    "ports": [{"port": 80, "protocol": "TCP"}],
                },
            }
            self._rest.send("POST", f"/api/v1/namespaces/{self._namespace}/services", service)

    def mark(self, pod: str, **labels: str) -> None:
        """Change labels of a running server, and an annotation beside them."""
        body = {"metadata": {"labels": labels, "annotations": {"game.kruise.io/gs-synced": ",".join(labels)}}}
        self._rest.send("PATCH", f"{self._pods}/{pod}", body, MERGE)

    def connect(self, pod: str, *, ready: bool = True) -> None:
        """Set a readiness gate of a server: whether it is reachable."""
        path = f"{self._pods}/{pod}"
        found = self._rest.send("GET", path)
        others = [one for one in found["status"].get("conditions", ()) if one["type"] != NETWORK]
        status = "True" if ready else "False"
        body = {"status": {"conditions": [*others, {"type": NETWORK, "status": status}]}}
        self._rest.send("PATCH", f"{path}/status", body, MERGE)

    def scale(self, replicas: int) -> None:
        """Change the number of servers; state, priority and number decide which are deleted, from the last on."""
        servers = {number_of(pod): pod["metadata"]["labels"] for pod in self.servers()}
        order = sorted(servers, key=lambda number: goes_before(servers[number], number))
        going = order[: max(len(servers) - replicas, 0)]
        wanted = self._given | set(going)
        if replicas > len(servers) and not self.keeps_numbers:
            wanted = set()
        self._given = wanted
        self.change(lambda spec: spec.update(replicas=replicas, reserveOrdinals=sorted(wanted)))

    def reserve(self, *numbers: int) -> None:
        """Reserve numbers that users want free, at the same number of servers."""
        self._given = set(numbers)
        self.change(lambda spec: spec.update(reserveOrdinals=sorted(numbers)))

    def update(self, partition: int = 0, **images: str) -> None:
        """Change images of containers, all but `partition` servers."""

        def change(spec: Json) -> None:
            spec["updateStrategy"]["rollingUpdate"]["partition"] = partition
            for container in spec["template"]["spec"]["containers"]:
                container["image"] = images.get(container["name"], container["image"])

        self.change(change)

    def probe(self) -> Json:
        """Create a PodProbeMarker for `serviceQualities`, whose result becomes the state of operations."""
        idle = {"state": "Succeeded", "labels": {STATE: "WaitToBeDeleted"}}
        one: Json = {
            "name": "idle",
            "containerName": "server",
            "probe": {"exec": {"command": ["sh", "-c", "./idle.sh"]}, "periodSeconds": 10},
            "podConditionType": "game.kruise.io/idle",
            "markerPolicy": [idle],
        }
        body: Json = typed(
            POD_PROBE_MARKER, self._name, spec={"selector": {"matchLabels": {OWNER: self._name}}, "probes": [one]}
        )
        path = f"/apis/apps.kruise.io/v1alpha1/namespaces/{self._namespace}/podprobemarkers"
        return self._rest.send("POST", path, body)

    def delete(self) -> None:
        """Delete the set; its servers follow."""
        self._rest.send("DELETE", f"{self._sets}/{self._name}")

    def servers(self) -> list[Document]:
        """Return the pods that are not terminating, by their numbers."""
        found = self._rest.send("GET", f"{self._pods}?labelSelector={OWNER.replace('/', '%2F')}%3D{self._name}")
        return sorted((pod for pod in found["items"] if not terminating(pod)), key=number_of)

    def change(self, change: Callable[[Json], None]) -> Json:
        """Read the set, change its spec, and write all of it; retry after a conflict."""
        path = f"{self._sets}/{self._name}"
        while True:
            found = self._rest.send("GET", path)
            change(found["spec"])
            with suppress(Conflict):
                return self._rest.send("PUT", path, found)

    @property
    def _sets(self) -> str:
        return f"/apis/apps.kruise.io/v1beta1/namespaces/{self._namespace}/statefulsets"

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods"


def number_of(pod: Document) -> int:
    """Return the number of a game server."""
    return int(pod["metadata"]["name"].rpartition("-")[2])


def goes_before(labels: Json, number: int) -> tuple[int, int, int]:
    """Return the sort key of a server for scaling in: the smallest is deleted first."""
    return GOES_FIRST.index(labels.get(STATE, "None")), -int(labels.get(DELETION, "0")), -number


def numbers(pods: Iterable[Document]) -> list[int]:
    """Return the numbers of these pods."""
    return sorted(map(number_of, pods))
