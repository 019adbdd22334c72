"""Real HorizontalPodAutoscalers on all kinds with /scale, in both versions; their metric is a number of the test."""

import json

import pytest

from tests.support.metrics_api import METRIC, set_metric
from tests.support.rest import MERGE, Refused, Rest
from tests.support.stateful import statefulset
from tests.support.united import united
from tests.support.workspace import Workspace, cloneset
from tests.testkit.documents import Json

VERSIONS = ("v1alpha1", "v1beta1")
PLURALS = {"CloneSet": "clonesets", "StatefulSet": "statefulsets", "UnitedDeployment": "uniteddeployments"}
PATIENCE = 100  # seconds; autoscalers look every 15 seconds
TARGETS = [(kind, version) for kind in PLURALS for version in VERSIONS]


def name_of(kind: str, version: str) -> str:
    return f"{kind.lower()}-{version}"


def made(kind: str, version: str) -> Json:
    """Return a set of two pods, whose selector has an expression, too."""
    name = name_of(kind, version)
    document = {"CloneSet": cloneset, "StatefulSet": statefulset, "UnitedDeployment": united}[kind](2, version=version)
    document["metadata"]["name"] = name
    spec = document["spec"]
    (template,) = [spec["template"]] if kind != "UnitedDeployment" else spec["template"].values()
    labels = {"app": name, "tier": "front"}
    selector = {
        "matchLabels": {"app": name},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}],
    }
    spec["selector"] = selector
    if kind == "UnitedDeployment":
        template["metadata"]["labels"] = labels
        template["spec"]["selector"] = {"matchLabels": labels}
        template["spec"]["template"]["metadata"]["labels"] = labels
    else:
        template["metadata"]["labels"] = labels
    return document


def autoscaler(kind: str, version: str) -> Json:
    """Return an autoscaler that wants twice the ready pods while the metric is twice its target."""
    target = {"apiVersion": f"apps.kruise.io/{version}", "kind": kind, "name": name_of(kind, version)}
    metric = {"metric": {"name": METRIC}, "target": {"type": "Value", "value": "10"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name_of(kind, version)},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": 4,
            "metrics": [{"type": "External", "external": metric}],
        },
    }


class Scales:
    """The /scale of all sets of this test."""

    def __init__(self, rest: Rest, namespace: str) -> None:
        self._rest = rest
        self._namespace = namespace

    def path(self, kind: str, version: str, name: str) -> str:
        return f"/apis/apps.kruise.io/{version}/namespaces/{self._namespace}/{PLURALS[kind]}/{name}/scale"

    def all_have(self, replicas: int) -> bool:
        """Report whether each set has this many pods, in each version, and a selector that finds them."""
        for kind, own in TARGETS:
            for version in VERSIONS:
                scale = self._rest.send("GET", self.path(kind, version, name_of(kind, own)))
                name = name_of(kind, own)
                assert scale["status"]["selector"] == f"app={name},tier in (front)"
                if (scale["spec"].get("replicas", 0), scale["status"]["replicas"]) != (replicas, replicas):
                    return False
        return True

    def write(self, replicas: int) -> None:
        """Scale to zero and back as KEDA does."""
        for kind, version in TARGETS:
            path = self.path(kind, version, name_of(kind, version))
            self._rest.send("PATCH", path, {"spec": {"replicas": replicas}}, MERGE)


def test_autoscalers_read_and_write_the_scale_of_all_kinds(space: Workspace, rest: Rest):
    scales = Scales(rest, space.name)
    set_metric(space, 20)
    sets = [made(kind, version) for kind, version in TARGETS]
    space.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": sets}))

    def settled(replicas: int) -> None:
        wanted = replicas * len(TARGETS)

        def reached() -> bool:
            return (
                all(map(pod_is_ready, space.pods.values())) and len(space.pods) == wanted and scales.all_have(replicas)
            )

        space.until(reached, PATIENCE)

    space.until(lambda: all(rest_has_status(rest, scales, *one) for one in TARGETS))
    settled(2)
    items = [autoscaler(kind, version) for kind, version in TARGETS]
    space.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    settled(4)  # of two ready pods, which the selector finds; the next look comes 15 seconds later
    for found in space.read("hpa")["items"]:
        conditions = {one["type"]: (one["status"], one["reason"]) for one in found["status"]["conditions"]}
        assert conditions["AbleToScale"][0] == "True", found
        assert conditions["ScalingActive"] == ("True", "ValidMetricFound"), found
    space.kubectl("delete", "hpa", "--all")
    scales.write(0)
    settled(0)
    scales.write(1)
    settled(1)


def rest_has_status(rest: Rest, scales: Scales, kind: str, version: str) -> bool:
    return "selector" in rest.send("GET", scales.path(kind, version, name_of(kind, version)))["status"]


def pod_is_ready(pod: Json) -> bool:
    return any((one["type"], one["status"]) == ("Ready", "True") for one in pod["status"].get("conditions", ()))


def test_a_daemon_set_has_no_scale(rest: Rest):
    for version in VERSIONS:
        path = f"/apis/apps.kruise.io/{version}/namespaces/default/daemonsets/agent/scale"
        with pytest.raises(Refused) as refusal:
            rest.send("GET", path)
        assert refusal.value.status == 404
