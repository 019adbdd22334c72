"""The API of external metrics, where HorizontalPodAutoscalers read a number that a test sets.

An autoscaler lists `external.metrics.k8s.io/v1beta1`, in its namespace, under the name of the metric. Here this is a
custom resource, so the apiserver itself answers, and no other server is needed.
"""

import json

from flotilla_common.api.resources import CRD
from tests.support.cluster import Cluster
from tests.support.workspace import Workspace
from tests.testkit.documents import Json, typed

GROUP, METRIC = "external.metrics.k8s.io", "load"


def serve_metrics(cluster: Cluster) -> None:
    """Have the apiserver serve the metric, in all namespaces.

    A kind that is added later makes the garbage collector pause: call this when the cluster starts.
    """
    serve_kind(cluster, GROUP, METRIC, "ExternalMetricValue")


def serve_kind(cluster: Cluster, group: str, plural: str, kind: str) -> None:
    """Have the apiserver store objects of a foreign kind, with any fields and a status."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Json = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    crd: Json = typed(
        CRD,
        f"{plural}.{group}",
        annotations={"api-approved.kubernetes.io": "unapproved, for tests"},
        spec={"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    )
    cluster.apply(crd)
    cluster.kubectl("wait", f"crd/{plural}.{group}", "--for=condition=Established", "--timeout=30s")


def set_metric(space: Workspace, value: int) -> None:
    """Give the metric this value in the namespace."""
    item: Json = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "ExternalMetricValue",
        "metadata": {"name": METRIC},
        "metricName": METRIC,
        "metricLabels": {},
        "timestamp": "2026-01-01T00:00:00Z",
        "value": str(value),
    }
    space.kubectl("apply", "-f", "-", stdin=json.dumps(item))
