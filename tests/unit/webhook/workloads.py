"""Workloads that the webhook admits, which tests make wrong in one place."""

from typing import Any

from tests.testkit.documents import Json

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEMANDED: dict[str, Json] = {
    "CloneSet": {"replicas": 1},
    "DaemonSet": {"updateStrategy": {"type": "OnDelete"}},
    "StatefulSet": {"podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}},
}
"""Members of specs that each kind needs besides selector and template."""


def workload(kind: str, version: str = "v1beta1", /, *, metadata: Json | None = None, **spec: Any) -> Json:
    """Return a workload; `spec` replaces members of it."""
    given = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE} | DEMANDED[kind]
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": kind,
        "metadata": {"name": "s", "namespace": "n", "uid": "1"} | (metadata or {}),
        "spec": given | spec,
    }


def cloneset(version: str = "v1beta1", **members: Any) -> Json:
    """Return a CloneSet."""
    return workload("CloneSet", version, **members)


def daemonset(version: str = "v1beta1", **members: Any) -> Json:
    """Return a DaemonSet."""
    return workload("DaemonSet", version, **members)


def statefulset(version: str = "v1beta1", **members: Any) -> Json:
    """Return a StatefulSet."""
    return workload("StatefulSet", version, **members)
