"""A namespace of its own for one scenario, used as users do and watched all the time.

space.apply(manifest)
space.settled(replicas=5, updatedReadyReplicas=5)
assert all(image(pod) == "nginx:mainline" for pod in space.pods.values())
"""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from zlib import crc32

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD, Resource
from tests.support.cluster import Cluster, Kubectl
from tests.support.objects import Objects
from tests.support.recorder import Event, Recorder, key
from tests.support.rest import JSON_PATCH, STRATEGIC
from tests.testkit.documents import Json

PATIENCE = 60.0  # seconds; far above what anything here takes, so that only a real stop fails


class Workspace(Kubectl):
    """One namespace of a watched cluster. Objects without a kind are of the kind `workload`."""

    def __init__(self, cluster: Cluster, recorder: Recorder, name: str, workload: Resource = CLONE_SET) -> None:
        self.cluster = cluster
        self.name = name
        self.workload = workload
        self._word = f"{workload.plural}.{workload.group}"
        self._recorder = recorder
        self._generations: dict[str, int] = {}

    # What users do

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl in the namespace; a refusal fails the test."""
        return self.cluster.kubectl("-n", self.name, *arguments, stdin=stdin)

    @cached_property
    def api_objects(self) -> Objects:
        return self.cluster.api_objects.within(self.name)

    def apply(self, manifest: Json | str) -> Json:
        """Apply a manifest: a new object by the request of `kubectl apply`, text and changes by kubectl itself."""
        if isinstance(manifest, dict) and (created := self.api_objects.first_apply(manifest)):
            return self._remember(created)
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        return self._remember(json.loads(self.kubectl("apply", "-f", "-", "-o", "json", stdin=text)))

    def patch(self, body: Json, name: str = "sample", kind: str = "") -> Json:
        """Merge into an object."""
        return self._remember(self.send_patch(kind or self._word, name, body))

    def write_back(self, version: str, name: str, change: Callable[[Json], object]) -> Json:
        """Read an object in a version, change it and replace it by kubectl; return what was read.

        A status that a service writes in between makes the request a Conflict: then the object is read anew.
        """
        for _ in range(20):
            found = self.read(version, name)
            changed = deepcopy(found)
            change(changed)
            try:
                self.kubectl("replace", "-f", "-", stdin=json.dumps(changed))
            except AssertionError as refusal:
                if "(Conflict)" not in str(refusal):
                    raise
            else:
                return found
        raise AssertionError(f"{version} {name} changed between each of 20 reads and the write that followed")

    def scale(self, replicas: int, name: str = "sample") -> None:
        """Run `kubectl scale`, and record the generation, so that an older status is ignored."""
        self.kubectl("scale", f"{self._word}/{name}", f"--replicas={replicas}")
        self._remember(self.read(self._word, name))

    def json_patch(self, *operations: Json, name: str = "sample") -> Json:
        """Apply a JSON patch to a workload."""
        return self._remember(self.send_patch(self._word, name, operations, kind=JSON_PATCH))

    def set_image(self, image: str, name: str = "sample") -> Json:
        """Give the first container of the template another image."""
        return self.json_patch(
            {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}, name=name
        )

    def label(self, pod: str, *labels: str) -> None:
        """Set labels of a pod: `key=value`, or `key-` to remove it."""
        self.patch({"metadata": {"labels": _changes(labels)}}, pod, "pod")

    def annotate(self, pod: str, *annotations: str) -> None:
        """Set annotations of a pod, in the same notation."""
        self.patch({"metadata": {"annotations": _changes(annotations)}}, pod, "pod")

    def set_finalizers(self, pod: str, *finalizers: str) -> None:
        """Replace all finalizers of a pod."""
        self.patch({"metadata": {"finalizers": list(finalizers)}}, pod, "pod")

    def set_condition(self, pod: str, kind: str, status: str) -> None:
        """Write one condition into a pod's status, as the owner of a readiness gate does."""
        body = {"status": {"conditions": [{"type": kind, "status": status}]}}
        self.send_patch("pod", pod, body, kind=STRATEGIC, subresource="status")

    def evict(self, pod: str) -> None:
        """Let a pod fail, as a kubelet under memory pressure does."""
        body = {"status": {"phase": "Failed", "reason": "Evicted"}}
        self.send_patch("pod", pod, body, subresource="status")

    def _remember(self, document: Json) -> Json:
        if document["kind"] == self.workload.kind:
            self._generations[document["metadata"]["name"]] = document["metadata"]["generation"]
        return document

    # What users see

    @property
    def pods(self) -> dict[str, Json]:
        """Return all pods of the namespace by name, also terminating ones."""
        return {name: pod for (kind, where, name), pod in self._all() if (kind, where) == ("Pod", self.name)}

    def _all(self) -> list[tuple[tuple[str, str, str], Json]]:
        return list(self._recorder.objects.items())

    def object(self, kind: str, name: str) -> Json:
        """Return one object of a watched kind; {} if absent."""
        return self._recorder.objects.get((kind, self.name, name), {})

    def objects(self, kind: str) -> list[Json]:
        """Return all objects of a watched kind."""
        return [found for (what, where, _), found in self._all() if (what, where) == (kind, self.name)]

    def pod(self, name: str) -> Json:
        """Return one pod; {} if absent."""
        return self._recorder.objects.get(("Pod", self.name, name), {})

    def clone(self, name: str = "sample") -> Json:
        """Return the CloneSet (or other workload) as last seen, in its storage version; {} if absent."""
        return self._recorder.objects.get((self.workload.kind, self.name, name), {})

    def status(self, name: str = "sample") -> Json:
        """Return the workload's status; {} while it does not describe the last change made through this workspace."""
        status = self.clone(name).get("status", {})
        return status if status.get("observedGeneration", 0) >= self._generations.get(name, 1) else {}

    def progress(self, name: str = "sample") -> tuple[str, str]:
        """Return status and reason of the Progressing condition."""
        conditions = {condition["type"]: condition for condition in self.status(name).get("conditions", [])}
        found = conditions.get("Progressing", {})
        return found.get("status", ""), found.get("reason", "")

    def revisions(self, name: str = "sample") -> dict[str, int]:
        """Return the CloneSet's ControllerRevisions and their numbers."""
        items = self.read("controllerrevisions")["items"]
        return {
            item["metadata"]["name"]: item["revision"]
            for item in items
            if item["metadata"]["ownerReferences"][0]["name"] == name
        }

    def events(self) -> set[tuple[str, str, str]]:
        """Return (type, reason, message) of all events about workloads."""
        items = self.read("events", f"--field-selector=involvedObject.kind={self.workload.kind}")["items"]
        return {(item["type"], item["reason"], item["message"]) for item in items}

    # Waiting, and looking back

    def until(self, check: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait until the check holds; fails with the state of everything."""
        if not self._recorder.until(check, seconds):
            raise AssertionError(f"not within {seconds:g} s\n{self._picture()}")

    def settled(self, name: str = "sample", seconds: float = PATIENCE, **fields: Any) -> Json:
        """Wait until the status, being up to date, has these fields, and no pod is terminating.

        Statuses and pods come through watches of their own: everything that happened to pods before is waited for too.
        """

        def reached() -> bool:
            status = self.status(name)
            return (
                all(status.get(field) == value for field, value in fields.items())
                and bool(status)
                and sum(is_ready(pod) for pod in self.pods.values()) >= fields.get("readyReplicas", 0)
                and not any(terminating(pod) for pod in self.pods.values())
            )

        self.until(reached, seconds)
        self.catch_up(seconds)
        self.until(reached, seconds)  # a pod may have been terminating at the moment to which the record has caught up
        return self.status(name)

    def catch_up(self, seconds: float = PATIENCE) -> None:
        """Wait until the record of pods has reached the apiserver's current state."""
        listed = self.cluster.rest.send("GET", POD.path(self.name))
        now = int(listed["metadata"]["resourceVersion"])
        versions = {("Pod", self.name, pod["metadata"]["name"]): version_of(pod) for pod in listed["items"]}

        def caught_up() -> bool:
            seen = {key(event.object): version_of(event.object) for event in self._recorder.events}
            return all(seen.get(pod, 0) >= version for pod, version in versions.items()) and all(
                ("Pod", self.name, name) in versions or version_of(pod) > now for name, pod in self.pods.items()
            )

        self.until(caught_up, seconds)

    def event(self, reason: str, message: str, seconds: float = PATIENCE) -> None:
        """Wait for an event about a workload."""
        self.until(lambda: any((reason, message) == event[1:] for event in self.events()), seconds)

    def warnings(self, reason: str, seconds: float = PATIENCE) -> list[str]:
        """Wait for warnings about workloads with this reason, and return their messages."""
        # events are written in the background

        self.until(lambda: bool(self.warnings_so_far(reason)), seconds)
        return self.warnings_so_far(reason)

    def warnings_so_far(self, reason: str) -> list[str]:
        """Return the messages so far of warnings about workloads with this reason."""
        return [message for kind, why, message in self.events() if (kind, why) == ("Warning", reason)]

    def clock(self) -> datetime:
        """Return the time; the control plane uses this machine's clock, too."""
        return datetime.now(UTC)

    def now(self) -> int:
        """Return a mark for `moments` and `history`."""
        return len(self._recorder.events)

    def moments(self, since: int = 0) -> Iterator[dict[str, Json]]:
        """Yield the pods by name after each event."""
        return self._recorder.moments("Pod", self.name, since)

    def history(self, since: int = 0, kind: str = "Pod") -> list[Event]:
        """Return the events of pods (or of another watched kind) of the namespace."""
        seen = self._recorder.events[since:]
        return [
            event
            for event in seen
            if (event.object["kind"], event.object["metadata"]["namespace"]) == (kind, self.name)
        ]

    def first_updates(self, since: int, revision: str) -> list[str]:
        """Return the names of pods in the order in which they reached a revision."""
        names = [
            event.object["metadata"]["name"] for event in self.history(since) if revision_of(event.object) == revision
        ]
        return list(dict.fromkeys(names))

    def _picture(self) -> str:
        kind = self.workload.kind
        sets = [found for (what, where, _), found in self._all() if (what, where) == (kind, self.name)]
        lines = [
            json.dumps({"generation": clone["metadata"]["generation"], **clone.get("status", {})}) for clone in sets
        ]
        lines += [
            f"{name} {pod['status'].get('phase')} ready={is_ready(pod)} {state(pod)} {revision_of(pod)} {image(pod)}"
            f"{' terminating' if terminating(pod) else ''}"
            for name, pod in self.pods.items()
        ]
        return "\n".join([*lines, *map(str, sorted(self.events()))])


def fresh(cluster: Cluster, recorder: Recorder, title: str) -> Workspace:
    """Create a namespace for the test of this title."""
    return Workspace(cluster, recorder, new_namespace(cluster, title))


@contextmanager
def watched(cluster: Cluster, title: str, workload: Resource, *resources: Resource) -> Generator[Workspace]:
    """Create a namespace for the test of this title, and record its workloads and pods, and these resources."""
    name = new_namespace(cluster, title)
    recorded = (POD, workload, *resources)
    with Recorder(cluster.rest, *recorded, namespace=name) as recorder:
        assert recorder.until(recorder.begun, PATIENCE), "no watch"
        yield Workspace(cluster, recorder, name, workload)


def new_namespace(cluster: Cluster, title: str) -> str:
    """Create a namespace, named after a test: by its name and a hash of its whole path."""
    words = re.sub("[^a-z0-9]+", "-", title.rpartition("::")[2].removeprefix("test_").lower())[:40].strip("-")
    name = f"{words}-{crc32(title.encode()):08x}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def _changes(words: Iterable[str]) -> dict[str, str | None]:
    """Return labels or annotations as a patch."""
    split = (word.partition("=") for word in words)
    return {key if equals else key.removesuffix("-"): value if equals else None for key, equals, value in split}


def image(pod: Json) -> str:
    """Return the image of the first container."""
    return pod["spec"]["containers"][0]["image"]


def version_of(pod: Json) -> int:
    """Return the resourceVersion; versions of one kind can be compared."""
    return int(pod["metadata"]["resourceVersion"])


def revision_of(pod: Json) -> str:
    """Return the revision label."""
    return pod["metadata"].get("labels", {}).get("controller-revision-hash", "")


def state(pod: Json) -> str:
    """Return the lifecycle state label."""
    return pod["metadata"].get("labels", {}).get("lifecycle.apps.kruise.io/state", "")


def instance(pod: Json) -> str:
    """Return the instance id of a pod or claim."""
    return pod["metadata"]["labels"]["apps.kruise.io/cloneset-instance-id"]


def terminating(pod: Json) -> bool:
    """Report whether deletion has begun."""
    return "deletionTimestamp" in pod["metadata"]


def condition(pod: Json, kind: str) -> Json:
    """Return one condition; {} if it, or the status, is absent."""
    conditions: list[Json] = pod.get("status", {}).get("conditions", [])
    return next((found for found in conditions if found["type"] == kind), Json())


def table(text: str) -> list[list[str]]:
    """Return the rows of a printed table, whose columns are two or more blanks apart."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def is_ready(pod: Json) -> bool:
    """Report whether condition Ready is True."""
    return condition(pod, "Ready").get("status") == "True"


def available(pod: Json) -> bool:
    """Report whether a pod is available: ready, not updating, not terminating."""
    return is_ready(pod) and not terminating(pod) and state(pod) in ("Normal", "")


def restarts(pod: Json) -> int:
    """Return the restarts of the first container."""
    return pod["status"]["containerStatuses"][0]["restartCount"]


def identity(pod: Json) -> tuple[str, str, str, str]:
    """Return what an in-place update keeps: name, uid, IP and node."""
    meta = pod["metadata"]
    return meta["name"], meta["uid"], pod["status"].get("podIP", ""), pod["spec"].get("nodeName", "")


def moment(timestamp: str) -> datetime:
    """Parse a timestamp of the API."""
    return datetime.fromisoformat(timestamp)


def cloneset(
    replicas: int = 3,
    *,
    name: str = "sample",
    strategy: Json | None = None,
    scale_strategy: Json | None = None,
    template: Json | None = None,
    version: str = "v1beta1",
    **spec: object,
) -> Json:
    """Return a CloneSet of one nginx container. `strategy`: rollingUpdate (v1beta1) or updateStrategy (v1alpha1)."""
    rolling = strategy or {}
    metadata: Json = {"labels": {"app": name}}
    containers = [{"name": "nginx", "image": "nginx:alpine"}]
    body = {"metadata": metadata, "spec": {"containers": containers}}
    if template:
        metadata |= {field: value for field, value in template.items() if field == "annotations"}
        metadata["labels"] |= template.get("labels", {})
        body["spec"] |= template.get("spec", {})
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "CloneSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": body,
            "updateStrategy": {"rollingUpdate": rolling} if version == "v1beta1" else rolling,
            **({"scaleStrategy": scale_strategy} if scale_strategy else {}),
            **spec,
        },
    }
