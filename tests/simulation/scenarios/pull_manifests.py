"""Image pulls as short as a scenario's sentence, and what must be in the end of them."""

import base64
from collections.abc import Iterator

import msgspec

from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.resources import SECRET, Resource
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Stage
from tests.simulation.world import SETTINGS

SERVICES = ("jobs",)
API_VERSION = IMAGE_PULL_JOB.api_version
ONE, TWO, THREE = "shop:one", "shop:two", "shop:three"


def job(*nodes: str, name: str = "pull", image: str = ONE, completion: Json | None = None, **spec: object) -> Json:
    """Return a job for the nodes of these names, or for all."""
    return _made(IMAGE_PULL_JOB, name, nodes, {"image": image, **spec}, completion)


def images(*nodes: str, name: str = "pull", wanted: tuple[str, ...] = (ONE, TWO), **spec: object) -> Json:
    """Return a list of images for the nodes of these names, or for all."""
    return _made(IMAGE_LIST_PULL_JOB, name, nodes, {"images": list(wanted), **spec}, None)


def secret(name: str, password: str) -> Json:
    """Return a login for the registry of the shop's images."""
    login = {"auths": {"docker.io": {"username": "shop", "password": password}}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE_NAME},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(msgspec.json.encode(login)).decode()},
    }


def _made(kind: Resource, name: str, nodes: tuple[str, ...], spec: Json, completion: Json | None) -> Json:
    selector = {"selector": {"names": list(nodes)}} if nodes else {}
    body = {"completionPolicy": {"type": "Always", **(completion or {})}, **selector, **spec}
    metadata = {"name": name, "namespace": NAMESPACE_NAME}
    return {"apiVersion": API_VERSION, "kind": kind.kind, "metadata": metadata, "spec": body}


class Pulled(Frozen):
    """The final objects of image pulls. None is not checked."""

    nodes: dict[str, dict[str, str]]  # phases by node and image; nodes that are not named have no tasks
    status: Json = {}  # members of the workload's status
    completed: bool = True
    exists: bool = True  # the workload does
    jobs: tuple[str, ...] | None = None  # the images of all jobs
    copies: int = 0  # of secrets, in the namespace of copies
    most: int = 1  # how often an image comes to one node

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        current = stage.current
        workload = current.get(kind, NAMESPACE_NAME, name)
        if (workload is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        status: Json = (workload or {}).get("status", {})
        for member, value in self.status.items():
            if status.get(member) != value:
                yield f"status.{member} is {status.get(member)!r}, not {value!r}"
        if workload is not None and ("completionTime" in status) != self.completed:
            yield f"{name} has {'not ' if self.completed else ''}completed"
        jobs = sorted(found["spec"]["image"] for found in current.all(IMAGE_PULL_JOB, NAMESPACE_NAME))
        if self.jobs is not None and jobs != sorted(self.jobs):
            yield f"there are jobs for {jobs}, not for {sorted(self.jobs)}"
        copies = len(list(current.all(SECRET, SETTINGS.daemon_config_namespace)))
        if copies != self.copies:
            yield f"there are {copies} copies of secrets, not {self.copies}"
        yield from self._of_nodes(stage)

    def _of_nodes(self, stage: Stage) -> Iterator[str]:
        images = _images(stage)
        tasks = {image.metadata.name: {name: phase for name, phase, _ in _tasks(image)} for image in images}
        if (named := {node: found for node, found in tasks.items() if found}) != self.nodes:
            yield f"nodes have {named}, not {self.nodes}"
        yield from left_over(stage, self.most)


def left_over(stage: Stage, most: int = 1) -> Iterator[str]:
    """Yield entries of deleted jobs on nodes, and images that a node pulled more than `most` times."""
    living = {found["metadata"]["uid"] for found in stage.current.all(IMAGE_PULL_JOB, NAMESPACE_NAME)}
    for image in _images(stage):
        for reference, _, owners in _tasks(image):
            if owners - living:
                yield f"{image.metadata.name} still has {reference} for a job that is gone"
    for machine in stage.world.machines.values():
        for reference, times in machine.images.items():
            if times > most:
                yield f"{machine.name} has pulled {reference} {times} times"


def _images(stage: Stage) -> list[NodeImage]:
    return [msgspec.convert(document, type=NodeImage) for document in stage.current.all(NODE_IMAGE, "")]


def _tasks(image: NodeImage) -> Iterator[tuple[str, str, set[str]]]:
    """Each task with its phase, which is empty while the status speaks of another round, and its owners' uids."""
    for name, spec in image.spec.images.items():
        for tag in spec.tags:
            entry = image.entry(name, tag.tag)
            phase = entry.phase if entry is not None and entry.version == tag.version else ""
            yield f"{name}:{tag.tag}", phase, {owner.uid for owner in tag.owner_references}


def everywhere(*references: str, nodes: int = 3, phase: str = "Succeeded") -> dict[str, dict[str, str]]:
    """Return the same tasks on the first nodes."""
    return {f"node-{number}": dict.fromkeys(references, phase) for number in range(1, nodes + 1)}
