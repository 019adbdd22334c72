"""Manifests of workloads that get stuck, each for one reason."""

import base64
import json
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.certificates import Authority
from tests.support.cluster import Cluster
from tests.testkit.documents import Json

FOREVER = ["sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"]
QUICK: Json = {"periodSeconds": 1, "failureThreshold": 1}
POD_FIELDS = ("nodeName", "nodeSelector", "initContainers", "readinessGates", "schedulingGates", "schedulerName",
              "volumes", "serviceAccountName", "runtimeClassName")  # fmt: skip


def cloneset(replicas: int = 1, *, metadata: Json | None = None, spec: Json | None = None, **pod: Any) -> Json:
    """Return a CloneSet `web`. `metadata`: of its pods; `spec`: its own; `pod`: fields of pod or container."""
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(metadata or {}, pod),
            **(spec or {}),
        },
    }


def statefulset(replicas: int = 2, *, spec: Json | None = None, **pod: Any) -> Json:
    """Return a StatefulSet `web`, likewise."""
    return {**cloneset(replicas, spec={"serviceName": "web", **(spec or {})}, **pod), "kind": "StatefulSet"}


def template(metadata: Json, pod: Json) -> Json:
    """Return a pod template of one container `app`."""
    own = {name: value for name, value in pod.items() if name not in POD_FIELDS}
    rest = {name: value for name, value in pod.items() if name in POD_FIELDS}
    container = {"name": "app", "image": "busybox:1.37", "command": FOREVER, **own}
    labels = {"app": "web", **metadata.get("labels", {})}
    return {
        "metadata": {**metadata, "labels": labels},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **rest},
    }


def sidecarset(name: str, image: str) -> Json:
    """Return a SidecarSet for the pods of namespace `name`."""
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "SidecarSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
            "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 1},
            "containers": [{"name": "log", "image": image, "command": FOREVER}],
        },
    }


def shell(script: str) -> Json:
    """Return the command of a container that runs this script."""
    return {"command": ["sh", "-c", script]}


def claimed(storage_class: str) -> Json:
    """Return the spec of a workload with a claim template `data`."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {**wanted, "storageClassName": storage_class}
    return {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}]}


def plain(kind: str, name: str, spec: Json) -> Json:
    """Return an object of the core group."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def policy(namespace: str, message: str) -> list[Json]:
    """Return a ValidatingAdmissionPolicy that denies all pods of the namespace, and its binding."""
    rules = {"resourceRules": [{**PODS, "operations": ["CREATE"]}]}
    spec = {"matchConstraints": rules, "validations": [{"expression": "false", "message": message}]}
    bound = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": selecting(namespace)}
    return [
        {**ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": namespace}, "spec": spec},
        {**ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": namespace}, "spec": bound},
    ]


def webhook(name: str, namespace: str, url: str, authority: str = "") -> Json:
    """Return a validating webhook for the pods of the namespace. `authority`: the CA's certificate, base64."""
    hook = {
        "name": name,
        "clientConfig": {"url": url} | ({"caBundle": authority} if authority else {}),
        "rules": [{**PODS, "operations": ["CREATE"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 2,
        **selecting(namespace),
    }
    return {**ADMISSION, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": name}, "webhooks": [hook]}


ADMISSION = {"apiVersion": "admissionregistration.k8s.io/v1"}
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def selecting(namespace: str) -> Json:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}


class _Denial(BaseHTTPRequestHandler):
    """A handler that denies every request."""

    def do_POST(self) -> None:
        review: Json = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"message": "images must be signed"}
        answer = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the base class calls it
        """Log nothing."""


@contextmanager
def denying_webhook(folder: Path) -> Generator[tuple[str, str]]:
    """Serve a webhook that denies everything; yield its URL, and the certificate of its CA, base64."""
    authority = Authority(folder, "denial")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Denial)
    server.socket = authority.server_context().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}/pods", base64.b64encode(authority.file.read_bytes()).decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def placed(document: Json, namespace: str) -> Json:
    """Return the object in a namespace, if it is of a namespaced kind."""
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def create(cluster: Cluster, documents: Sequence[Json]) -> None:
    """Make them all in one call."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    cluster.create(items)


def refuses_pods(cluster: Cluster, namespace: str) -> bool:
    """Report whether admission denies pods: configurations are in force a moment after they are stored."""
    try:
        cluster.kubectl("-n", namespace, "run", "probe", "--image=busybox:1.37", "--dry-run=server")
    except AssertionError as refusal:
        return "service account" not in str(refusal)  # that is made a moment after its namespace
    return False


def ready_pods(cluster: Cluster, namespace: str) -> int:
    """Return how many pods of the namespace are ready."""
    pods: list[Json] = cluster.read("-n", namespace, "pods")["items"]
    conditions = [one for pod in pods for one in pod["status"].get("conditions", ())]
    return sum((one["type"], one["status"]) == ("Ready", "True") for one in conditions)
