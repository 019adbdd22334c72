"""Pods, revisions and templates for the tests of the workload engine."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.control.plan import Chain, Patch
from flotilla_common.gates import Gates
from flotilla_common.workload.inplace import InPlaceContext
from flotilla_common.workload.revision_codec import RevisionCodec, belongs, canonical_template_data, template_labels
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, decoded
from tests.testkit.workloads import stored_revision

NOW = datetime(2024, 3, 1, 8, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
GATES = Gates.parse("")
RESIZE = Gates.parse("InPlaceWorkloadVerticalScaling=true")
STATE = "apps.kruise.io/inplace-update-state"
GRACE = "apps.kruise.io/inplace-update-grace"
LIFECYCLE = "lifecycle.apps.kruise.io/state"

CODEC = RevisionCodec(canonical=canonical_template_data, labels=template_labels, belongs=belongs)


def in_place(**members: Any) -> InPlaceContext:
    """Return the context of in-place updates for a workload without hooks."""
    values: dict[str, Any] = {"codec": CODEC, "lifecycle": None, "gates": GATES, "server_version": "v1.33.1"}
    return InPlaceContext(**(values | {"now": NOW} | members))


def container(name: str = "nginx", image: str = "nginx:alpine", **members: Any) -> Json:
    """Return a container of a template as admission leaves it."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "resources": {},
        **members,
    }


def template(*containers: Json, metadata: Json | None = None, **spec: Any) -> Json:
    """Return a pod template as admission leaves it."""
    return {
        "metadata": {"creationTimestamp": None, **({"labels": {"app": "sample"}} if metadata is None else metadata)},
        "spec": {
            "containers": list(containers) or [container()],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
            **spec,
        },
    }


def revision(content: Json, name: str = "sample-new", *, number: int = 1, **metadata: Any) -> ControllerRevision:
    """Return a stored revision of a template."""
    return stored_revision(name, number, content, **metadata)


def env_from(name: str, path: str) -> Json:
    """Return an env entry that reads the pod's metadata."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def barrier(priority: int) -> Json:
    """Return the env entry that holds a container back until those of higher priority run."""
    reference = {"name": "web-barrier", "key": f"p_{priority}"}
    return {"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": reference}}


def status(name: str, image: str = "nginx:alpine", image_id: str = "id-1", **members: Any) -> Json:
    return {"name": name, "image": image, "imageID": image_id, "containerID": f"cid-{name}", "ready": True, **members}


def condition(kind: str, value: str = "True", **members: Any) -> Json:
    return {"type": kind, "status": value, "lastTransitionTime": LONG_AGO, **members}


def pod(
    name: str = "web",
    *,
    state: str = "Normal",
    labels: Json | None = None,
    annotations: Json | None = None,
    finalizers: list[str] | None = None,
    node: str = "node-1",
    gates: tuple[str, ...] = ("InPlaceUpdateReady",),
    conditions: dict[str, str | Json] | None = None,
    containers: list[Json] | None = None,
    statuses: list[Json] | None = None,
    **metadata: Any,
) -> Pod:
    """Return a pod that runs, is ready, and is on revision sample-old."""
    values: dict[str, str | Json] = {"InPlaceUpdateReady": "True", "ContainersReady": "True", "Ready": "True"}
    values |= conditions or {}
    held = containers or [container()]
    known: Json = {"uid": f"uid-{name}", "version": 7, "created": LONG_AGO, "finalizers": finalizers}
    document = pods_of.pod(
        name,
        **known | metadata,
        labels={"controller-revision-hash": "sample-old", **({LIFECYCLE: state} if state else {}), **(labels or {})},
        annotations=annotations,
        node=node,
        containers=held,
        gates=gates,
        phase="Running",
        conditions=[
            condition(kind, value) if isinstance(value, str) else condition(kind, **value)
            for kind, value in values.items()
            if value
        ],
        statuses=[status(item["name"]) for item in held] if statuses is None else statuses,
    )
    return decoded(document, Pod)


def patches(chain: Chain) -> list[Patch]:
    """Return the chain, which must consist of patches."""
    assert all(isinstance(action, Patch) for action in chain)
    return [action for action in chain if isinstance(action, Patch)]


def conditions_of(patch: Patch) -> dict[str, Json]:
    """Return the conditions that a status patch writes, by type."""
    assert patch.subresource == "status"
    return {item["type"]: item for item in patch.body["status"]["conditions"]}


def labels_of(patch: Patch) -> Json:
    return patch.body.get("metadata", {}).get("labels", {})


def annotations_of(patch: Patch) -> Json:
    return patch.body.get("metadata", {}).get("annotations", {})


def state_in(patch: Patch) -> Json:
    """Return the state annotation that a patch writes."""
    return msgspec.json.decode(annotations_of(patch)[STATE])
