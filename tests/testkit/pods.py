"""Builds pods: documents that say no more than a test needs.

`pod` makes any pod. `decoded(pod(...), Pod)` is the same as the struct that services read.
"""

from collections.abc import Iterable
from typing import Any

from tests.testkit.documents import Json, metadata, present


def container(name: str = "main", image: str = "", **more: Any) -> Json:
    """Return a container of a pod's spec; `more`: env, resources and so on."""
    return present(name=name, image=image) | more


def container_status(name: str = "main", image: str = "", image_id: str = "", **more: Any) -> Json:
    """Return the status of a container; `more`: ready, restartCount, state and so on."""
    return present(name=name, image=image, imageID=image_id) | more


def on_node(name: str) -> Json:
    """Return the affinity of a pod that may be on this node only, as DaemonSets write it."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def pod(
    name: str = "web-1",
    namespace: str = "default",
    /,
    *,
    node: str = "",
    containers: Iterable[Json] = (),
    gates: Iterable[str] = (),
    phase: str = "",
    conditions: Iterable[Json] = (),
    statuses: Iterable[Json] = (),
    spec: Json | None = None,
    status: Json | None = None,
    **meta: Any,
) -> Json:
    """Return a pod; members that are empty are left out.

    `spec` and `status` are further members of these parts; `meta` are arguments of `metadata`: uid, version, labels …
    """
    named = [{"conditionType": gate} for gate in gates]
    return {
        "metadata": metadata(name, namespace, **meta),
        "spec": present(nodeName=node, containers=list(containers), readinessGates=named) | (spec or {}),
        "status": present(phase=phase, conditions=list(conditions), containerStatuses=list(statuses)) | (status or {}),
    }
