"""A stand-in for a rollout controller of CloneSets, StatefulSets and DaemonSets, as OpenKruise's rollouts.

A webhook of its own holds every new template back: it sets the partition in the same request. Then the controller
claims the workload, lowers the partition batch by batch with JSON merge patches, labels the pods of each batch, and
finally removes the partition (`null`). It reads and writes one version of the API, independent of the version that the
user writes.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from flotilla_cli.local import HOST
from tests.support.certificates import Authority
from tests.support.cluster import Cluster
from tests.support.metrics_api import serve_kind
from tests.support.rest import MERGE, Rest
from tests.testkit.documents import Json

CONTROL = "batchrelease.rollouts.kruise.io/control-info"
BATCH = "rollouts.kruise.io/rollout-batch-id"
NEVER_AVAILABLE = 2_147_483_646
"""Seconds: new pods get ready and never available, so that old ones stay beside them (blue-green)."""
PATIENCE = 60.0
GROUP = "rollouts.kruise.io"

_PLURALS = {"CloneSet": "clonesets", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}
_HELD = {"CloneSet": "100%", "StatefulSet": 32_767, "DaemonSet": 32_767}
"""Partitions at which no pod is updated."""


def serve_rollouts(cluster: Cluster) -> None:
    """Have the apiserver keep the controller's own objects."""
    serve_kind(cluster, GROUP, "rollouts", "Rollout")


class RolloutController:
    """The controller at work on one workload. It uses one version of our API."""

    def __init__(self, rest: Rest, namespace: str, kind: str, version: str, name: str = "web") -> None:
        self._rest = rest
        self._kind = kind
        self._flat = (kind, version) == ("CloneSet", "v1alpha1")
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self.collection = f"/apis/apps.kruise.io/{version}/namespaces/{namespace}/{_PLURALS[kind]}"
        self._path = f"{self.collection}/{name}"
        self._rollout = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/rollouts/{name}"
        self._one = f"fieldSelector=metadata.name%3D{name}"
        self._selector = f"labelSelector=app%3D{name}"

    def read(self) -> Json:
        """Return the workload."""
        return self._rest.send("GET", self._path)

    def patch(self, body: Json) -> Json:
        """Send a merge patch of the workload."""
        return self._rest.send("PATCH", self._path, body, MERGE)

    def strategy(self, **fields: Any) -> Json:
        """Return the patch that sets fields of the update strategy."""
        return {"spec": {"updateStrategy": fields if self._flat else {"rollingUpdate": fields}}}

    def wait_for_approval(self, step: int, approve: Callable[[], object]) -> None:
        """Mark the step as done in the Rollout, and wait until the next one is approved."""
        paused = {"canaryStatus": {"currentStepIndex": step, "currentStepState": "StepPaused"}}
        self._rest.send("PATCH", f"{self._rollout}/status", {"status": {"phase": "Progressing", **paused}}, MERGE)
        approve()
        found = self._rest.send("GET", self._rollout)
        assert found["status"]["canaryStatus"] == {"currentStepIndex": step, "currentStepState": "StepReady"}

    def take_over(self) -> None:
        """Annotate the workload with its controller, and unpause it, with all pods held back."""
        body = self.strategy(paused=False, partition=_HELD[self._kind])
        self.patch(body | {"metadata": {"annotations": {CONTROL: '{"kind":"BatchRelease"}'}}})

    def batch(self, number: int, partition: int | str, updated: int) -> Json:
        """Lower the partition, wait until `updated` pods are updated and ready, and label those of the batch."""
        self.patch(self.strategy(partition=partition))
        workload = self.wait(lambda it: self.updated_and_ready(it) == updated)
        for pod in self.pods():
            labels = pod["metadata"]["labels"]
            if self.is_updated(pod, workload) and BATCH not in labels:
                path = f"{self._pods}/{pod['metadata']['name']}"
                self._rest.send("PATCH", path, {"metadata": {"labels": {BATCH: str(number)}}}, MERGE)
        return workload

    def finish(self) -> Json:
        """Give the workload back: no partition, no note."""
        body = self.strategy(paused=False, partition=None)
        return self.patch(body | {"metadata": {"annotations": {CONTROL: None}}})

    def wait(self, reached: Callable[[Json], bool]) -> Json:
        """Return the workload once a watch shows a status that is about its spec and as wanted."""
        deadline = time.monotonic() + PATIENCE
        for workload in self._rest.watch(f"{self.collection}?watch=true&timeoutSeconds=60&{self._one}"):
            generation, status = workload["metadata"]["generation"], workload.get("status", {})
            if status.get("observedGeneration") == generation and reached(workload):
                return workload
            if time.monotonic() > deadline:
                break
        raise AssertionError(f"not reached: {json.dumps(self.read().get('status'))}")

    def partition(self, workload: Json) -> int | str:
        """Return the partition."""
        strategy = workload["spec"]["updateStrategy"]
        return (strategy if self._flat else strategy.get("rollingUpdate", {})).get("partition", 0)

    def update_hash(self, workload: Json) -> str:
        """Return the short hash of the newest revision, from wherever the version has it."""
        status = workload["status"]
        return (status.get("updateRevision") or status["daemonSetHash"]).rpartition("-")[2]

    def updated(self, workload: Json) -> int:
        """Return how many pods are updated."""
        status = workload["status"]
        return status["updatedNumberScheduled"] if self._kind == "DaemonSet" else status["updatedReplicas"]

    def updated_and_ready(self, workload: Json) -> int:
        """Return how many pods are updated and ready. Not every status counts them: then the pods are looked at."""
        if "updatedReadyReplicas" in workload["status"]:
            return workload["status"]["updatedReadyReplicas"]
        ready = [pod for pod in self.pods() if self.is_updated(pod, workload) and _is_ready(pod)]
        return len(ready) if self.updated(workload) == len(ready) else -1

    def is_updated(self, pod: Json, workload: Json) -> bool:
        """Return whether the pod is of the newest revision, by its labels."""
        labels = pod["metadata"]["labels"]
        known = {labels.get("pod-template-hash"), labels.get("controller-revision-hash", "").rpartition("-")[2]}
        return self.update_hash(workload) in known

    def pods(self) -> list[Json]:
        """Return the pods that stay."""
        items = self._rest.send("GET", f"{self._pods}?{self._selector}")["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]


def _is_ready(pod: Json) -> bool:
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and conditions.get("InPlaceUpdateReady", "True") == "True"


@contextmanager
def holding_webhook(rest: Rest, namespace: str, folder: Path) -> Iterator[list[Json]]:
    """Serve the webhook for one namespace, and yield the requests that it has held back.

    It is registered for v1alpha1 alone: the apiserver converts objects of other versions.
    """
    authority, held = Authority(folder), list[Json]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(_answer(review, held)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.socket = authority.server_context().wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    bundle = base64.b64encode(authority.file.read_bytes()).decode()
    name = f"rollouts-{namespace}"
    rest.send("POST", path, _configuration(name, namespace, f"https://{HOST}:{server.server_port}/", bundle))
    try:
        yield held
    finally:
        rest.send("DELETE", f"{path}/{name}")
        server.shutdown()
        server.server_close()


def _configuration(name: str, namespace: str, url: str, bundle: str) -> Json:
    rule = {
        "apiGroups": ["apps.kruise.io"],
        "apiVersions": ["v1alpha1"],
        "resources": list(_PLURALS.values()),
        "operations": ["UPDATE"],
    }
    webhook: Json = {
        "name": "workloads.rollouts.example.com",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "matchPolicy": "Equivalent",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


def _answer(review: Json, held: list[Json]) -> Json:
    request = review["request"]
    response: Json = {"uid": request["uid"], "allowed": True}
    document = request["object"]
    if document["spec"]["template"] != request["oldObject"]["spec"]["template"]:
        held.append(document)
        where = "/spec/updateStrategy" if document["kind"] == "CloneSet" else "/spec/updateStrategy/rollingUpdate"
        patch = [
            {"op": "add", "path": f"{where}/partition", "value": _HELD[document["kind"]]},
            {"op": "add", "path": f"{where}/paused", "value": True},
        ]
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
