"""Which objects exist: CloneSets with their pods, nodes with what belongs to them, rendered from the recorded ones."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property

import msgspec

from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import Resource
from flotilla_common.control.shards import shard_of
from tests.perf.played.collection import Key
from tests.perf.played.template import Template
from tests.testkit.documents import Json

SPACES = 10
"""Namespaces over which the CloneSets are spread."""

BALANCE = 8
"""Shards that have the same number of CloneSets each, so that two replicas have half of the work each."""

BORN_PER_SECOND = 50
"""Pods that became Ready in the same second: what a real control plane on two cores creates."""

RESTARTS = "9876543"
"""Stands for the number of restarts in the template of a pod: a change adds one."""


class Sizes(msgspec.Struct, frozen=True):
    """The numbers of objects."""

    sets: int
    pods_each: int
    nodes: int

    @property
    def pods(self) -> int:
        return self.sets * self.pods_each


def set_keys(count: int) -> list[Key]:
    """Return the keys of the CloneSets; each of BALANCE shards gets as many as the others, but for a rest."""
    most = -(-count // BALANCE)
    taken = dict.fromkeys(range(BALANCE), 0)
    keys: list[Key] = []
    number = 0
    while len(keys) < count:
        key = (f"space-{len(keys) % SPACES}", f"set-{number}")
        shard = shard_of(*key, BALANCE)
        number += 1
        if taken[shard] < most:
            taken[shard] += 1
            keys.append(key)
    return keys


def uid(kind: str, *names: object) -> str:
    """Return the uid of an object: the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join((kind, *map(str, names)))))


class Population:
    """The names of all objects, and the recorded ones that they are copies of."""

    def __init__(self, recorded: Mapping[str, Sequence[Json]], sizes: Sizes) -> None:
        self.sizes = sizes
        self.sets = set_keys(sizes.sets)
        self.clone_set, self.revision = recorded["CloneSet"][0], recorded["ControllerRevision"][0]
        self.pod = recorded["Pod"][0]
        self.of_nodes = {kind: recorded[kind][0] for kind in ("Node", "NodeImage", "NodePodProbe")}

    @cached_property
    def spaces(self) -> list[str]:
        """The namespaces."""
        return sorted({namespace for namespace, _ in self.sets})

    def documents(self, resource: Resource) -> list[Json]:
        """Return the objects of which there are few."""
        match resource.kind:
            case "CloneSet":
                return [self._clone_set(key) for key in self.sets]
            case "ControllerRevision":
                return [self._copy(self.revision, key) for key in self.sets]
            case "Namespace":
                return [self._namespace(name) for name in self.spaces]
            case _:
                return []

    def set_values(self, number: int) -> dict[str, str]:
        """Return what fills the gaps that are the same in all objects of a CloneSet."""
        namespace, name = self.sets[number]
        return {"namespace": namespace, "set": name, "set uid": uid("CloneSet", namespace, name)}

    def set_gaps(self) -> dict[str, str]:
        """Return the recorded texts behind these gaps."""
        meta = self.clone_set["metadata"]
        return {meta["namespace"]: "namespace", meta["name"]: "set", meta["uid"]: "set uid"}

    def node_name(self, number: int) -> str:
        """Return the name of a node; numbers beyond the last one begin again."""
        return f"played-node-{number % self.sizes.nodes}"

    def _clone_set(self, key: Key) -> Json:
        before = self.clone_set["spec"]["replicas"]
        status = {
            name: self.sizes.pods_each if name.lower().endswith("replicas") and value == before else value
            for name, value in self.clone_set["status"].items()
        }
        spec = self.clone_set["spec"] | {"replicas": self.sizes.pods_each}
        return self._copy(self.clone_set | {"spec": spec, "status": status}, key)

    def _copy(self, recorded: Json, key: Key) -> Json:
        """Return the copy of an object that belongs to this CloneSet."""
        values = self.set_values(self.sets.index(key))
        body = msgspec.json.encode(recorded)
        gaps = {text: gap for text, gap in self.set_gaps().items() if text.encode() in body}
        copy: Json = msgspec.json.decode(Template(body, gaps).render(values))
        if recorded is self.revision:
            copy["metadata"]["uid"] = uid("ControllerRevision", *key)
        return copy

    def _namespace(self, name: str) -> Json:
        labels = {"kubernetes.io/metadata.name": name}
        metadata = {"name": name, "uid": uid("Namespace", name), "labels": labels}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": {"phase": "Active"}}


class PodSource:
    """The pods: number N is pod N // sets of CloneSet N % sets, so that neighbours have different owners."""

    def __init__(self, population: Population) -> None:
        self._population = population
        self._sets = population.sizes.sets
        self._values = [population.set_values(number) for number in range(self._sets)]
        pod = population.pod
        self._born = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
        self._containers = [one["containerID"] for one in pod["status"]["containerStatuses"]]
        self._template = Template(
            msgspec.json.encode(_with_restarts(pod)),
            {
                pod["metadata"]["creationTimestamp"]: "born",
                **{text: text for text in self._containers},
                **population.set_gaps(),
                pod["metadata"]["name"]: "name",
                pod["metadata"]["uid"]: "uid",
                f'"resourceVersion":"{pod["metadata"]["resourceVersion"]}"': "version",
                f'"{_instance_of(pod)}"': "instance",
                f'"{pod["spec"]["nodeName"]}"': "node",
                f'"{pod["status"]["podIP"]}"': "ip",
                RESTARTS: "restarts",
            },
        )

    def __len__(self) -> int:
        return self._population.sizes.pods

    def key(self, number: int) -> Key:
        namespace, name = self._population.sets[number % self._sets]
        return namespace, f"{name}-{instance(number // self._sets)}"

    def render(self, number: int, version: int, changes: int) -> bytes:
        namespace, name = self.key(number)
        own = uid("Pod", namespace, name)
        return self._template.render(
            {
                **self._values[number % self._sets],
                **{text: f"containerd://{at}{own}" for at, text in enumerate(self._containers)},
                "name": name,
                "uid": own,
                "born": rfc3339(self._born + timedelta(seconds=number // BORN_PER_SECOND)),
                "version": f'"resourceVersion":"{version}"',
                "instance": f'"{instance(number // self._sets)}"',
                "node": f'"{self._population.node_name(number)}"',
                "ip": f'"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"',
                "restarts": str(changes),
            }
        )


class NodeSource:
    """Objects with the name of a node: the nodes themselves, or what our services keep for each."""

    def __init__(self, population: Population, recorded: Json) -> None:
        self._population = population
        self._kind: str = recorded["kind"]
        meta, body = recorded["metadata"], recorded
        gaps = {
            meta["name"]: "name",
            meta["uid"]: "uid",
            f'"resourceVersion":"{meta["resourceVersion"]}"': "version",
        }
        self._template = Template(msgspec.json.encode(body), gaps)

    def __len__(self) -> int:
        return self._population.sizes.nodes

    def key(self, number: int) -> Key:
        return "", self._population.node_name(number)

    def render(self, number: int, version: int, changes: int) -> bytes:
        name = self._population.node_name(number)
        values = {"name": name, "uid": uid(self._kind, name), "version": f'"resourceVersion":"{version}"'}
        return self._template.render(values)


_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def instance(number: int) -> str:
    """Return the last part of a pod's name, as OpenKruise's instance ids look."""
    text = ""
    for _ in range(5):
        number, digit = divmod(number, len(_LETTERS))
        text = _LETTERS[digit] + text
    return text


def _instance_of(pod: Json) -> str:
    return pod["metadata"]["name"].rpartition("-")[2]


def _with_restarts(pod: Json) -> Json:
    """Return the pod with RESTARTS in place of the restarts of its first container."""
    first, *others = pod["status"]["containerStatuses"]
    statuses = [first | {"restartCount": int(RESTARTS)}, *others]
    return pod | {"status": pod["status"] | {"containerStatuses": statuses}}
