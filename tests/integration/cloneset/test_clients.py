"""Existing clients work with CloneSets: both API versions, scale, wait, autoscalers, apply in all its forms."""

import json
from pathlib import Path

import pytest

from tests.support.python_client import python_client, watched
from tests.support.workspace import Workspace, cloneset, image, is_ready
from tests.testkit.documents import Json

ALPHA = "clonesets.v1alpha1.apps.kruise.io"
BETA = "clonesets.v1beta1.apps.kruise.io"


def started(space: Workspace, replicas: int = 2, **arguments: object) -> None:
    space.apply(cloneset(replicas, **arguments))
    space.settled(replicas=replicas, readyReplicas=replicas)


def raw(space: Workspace, version: str, rest: str = "") -> Json:
    path = f"/apis/apps.kruise.io/{version}/namespaces/{space.name}/clonesets/sample{rest}"
    return json.loads(space.kubectl("get", "--raw", path))


def test_written_in_the_old_version_read_in_both(space: Workspace):
    strategy = {
        "type": "InPlaceIfPossible",
        "partition": 1,
        "maxUnavailable": "50%",
        "inPlaceUpdateStrategy": {"gracePeriodSeconds": 3},
    }
    started(space, strategy=strategy, version="v1alpha1")
    old, new = space.read(ALPHA, "sample"), space.read(BETA, "sample")
    assert old["spec"]["updateStrategy"] == strategy | {"maxSurge": 0}
    assert new["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {
            "podUpdatePolicy": "InPlaceIfPossible",
            "partition": 1,
            "maxUnavailable": "50%",
            "maxSurge": 0,
            "inPlaceUpdateStrategy": {"gracePeriodSeconds": 3},
        },
    }
    assert new["spec"]["scaleStrategy"]["enablePVCReuse"] is True
    assert old["status"] == new["status"]


@pytest.mark.parametrize("version", [ALPHA, BETA])
def test_what_was_read_can_be_written_back(space: Workspace, version: str):
    started(space)
    text = space.kubectl("get", version, "sample", "-o", "yaml")
    before = space.read(version, "sample")["spec"]
    assert space.kubectl("replace", "-f", "-", stdin=text) == "cloneset.apps.kruise.io/sample replaced\n"
    assert space.read(version, "sample")["spec"] == before
    space.until(lambda: space.status().get("observedGeneration") == space.clone()["metadata"]["generation"])
    assert list(space.revisions().values()) == [1]
    assert len([event for event in space.history() if event.type == "ADDED"]) == 2


def test_apply_changes_versions_and_back(space: Workspace):
    policy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}
    started(space, strategy=policy)
    names = set(space.pods)
    old = cloneset(2, version="v1alpha1", strategy={"type": "InPlaceIfPossible", "maxUnavailable": 2})
    old["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:mainline"
    space.apply(old)
    space.settled(updatedReadyReplicas=2, readyReplicas=2)
    space.apply(cloneset(2, strategy=policy))
    space.settled(updatedReadyReplicas=2, readyReplicas=2)
    assert set(space.pods) == names
    assert {image(pod) for pod in space.pods.values()} == {"nginx:alpine"}


def test_scale_and_wait(space: Workspace):
    started(space)
    assert space.kubectl("scale", "clone/sample", "--replicas=4") == "cloneset.apps.kruise.io/sample scaled\n"
    told = space.kubectl("wait", "clone/sample", "--for=jsonpath={.status.readyReplicas}=4", "--timeout=20s")
    assert told == "cloneset.apps.kruise.io/sample condition met\n"
    refusal = space.refused("scale", "clone/sample", "--current-replicas=9", "--replicas=1")
    assert "Expected replicas to be 9, was 4" in refusal


def test_wait_for_the_condition(space: Workspace):
    space.apply(cloneset(2, progressDeadlineSeconds=60))
    space.kubectl("wait", "clone/sample", "--for=condition=Progressing", "--timeout=20s")
    reason = 'jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=CloneSetAvailable'
    space.kubectl("wait", "clone/sample", f"--for={reason}", "--timeout=20s")


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_scale_subresource(space: Workspace, version: str):
    started(space)
    scale = raw(space, version, "/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 2, "selector": "app=sample"}


def test_an_autoscaler_finds_its_target(space: Workspace):
    """Without metrics it can report that it is able to scale, and it corrects counts out of range."""
    started(space)
    target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "sample"}
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    ]
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "sample"},
        "spec": {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 5, "metrics": metrics},
    }
    space.apply(autoscaler)

    def able() -> bool:
        conditions = space.read("hpa", "sample").get("status", {}).get("conditions", [])
        return ("AbleToScale", "True") in {(found["type"], found["status"]) for found in conditions}

    space.until(able, 40)
    space.settled(replicas=3, readyReplicas=3, seconds=40)


def test_drain_of_a_node(space: Workspace):
    """Evicted pods come back elsewhere."""
    space.apply(cloneset(3, name="drained"))  # a drain selects pods in all namespaces
    space.settled("drained", readyReplicas=3)
    node = min(pod["spec"]["nodeName"] for pod in space.pods.values())
    try:
        space.kubectl("drain", node, "--pod-selector=app=drained", "--timeout=20s")
        space.until(lambda: sum(map(is_ready, space.pods.values())) == 3)
        assert node not in {pod["spec"]["nodeName"] for pod in space.pods.values()}
    finally:
        space.kubectl("uncordon", node)


def test_history_of_revisions(space: Workspace):
    strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}
    started(space, strategy=strategy)
    space.set_image("nginx:mainline")
    space.settled(updatedReadyReplicas=2)
    items = {item["revision"]: item for item in space.read("controllerrevisions")["items"]}
    assert {number: item["metadata"]["name"] for number, item in items.items()} == {
        1: "sample-d4d4fb5bd",
        2: "sample-56dfb978d4",
    }
    for number, tag in ((1, "nginx:alpine"), (2, "nginx:mainline")):
        item = items[number]
        short = item["metadata"]["name"].rpartition("-")[2]
        assert item["metadata"]["labels"] == {"app": "sample", "controller.kubernetes.io/hash": short}
        template = item["data"]["spec"]["template"]
        assert template["$patch"] == "replace"
        assert template["spec"]["containers"][0]["image"] == tag
        assert item["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "CloneSet",
                "name": "sample",
                "uid": space.clone()["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    assert items[1]["metadata"]["annotations"]["kruise.io/cloneset-volumeclaimtemplate-hash"] == ""


def test_explain(space: Workspace):
    text = space.kubectl("explain", "clone.spec")
    for field in ("replicas", "selector", "template", "scaleStrategy", "updateStrategy", "lifecycle"):
        assert f"  {field}\t" in text
    text = space.kubectl("explain", "clone.spec.updateStrategy.partition", "--api-version=apps.kruise.io/v1alpha1")
    assert "partition" in text


def test_dry_run_on_the_server(space: Workspace):
    document = json.loads(
        space.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(cloneset(2)))
    )
    assert document["spec"]["revisionHistoryLimit"] == 10
    assert document["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "20%"
    assert document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert space.clone() == {}
    assert space.kubectl("get", "clone,pods", "-o", "name") == ""
    bad = cloneset(-1)
    message = space.refused("create", "--dry-run=server", "-f", "-", stdin=json.dumps(bad))
    assert "spec.replicas" in message


def test_server_side_apply_by_two_owners(space: Workspace):
    """One owner has the set, the other the number of replicas."""
    manifest = cloneset(2)
    line = ("apply", "--server-side", "-f", "-")
    told = space.kubectl(*line, "--field-manager=team", stdin=json.dumps(manifest))
    assert told == "cloneset.apps.kruise.io/sample serverside-applied\n"
    other: Json = {field: manifest[field] for field in ("apiVersion", "kind", "metadata")} | {"spec": {"replicas": 3}}
    refusal = space.refused(*line, "--field-manager=scaler", stdin=json.dumps(other))
    assert 'conflict with "team": .spec.replicas' in refusal
    space.kubectl(*line, "--field-manager=scaler", "--force-conflicts", stdin=json.dumps(other))
    space.until(lambda: space.status().get("readyReplicas") == 3)
    del manifest["spec"]["replicas"]
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:mainline"
    space.kubectl(*line, "--field-manager=team", stdin=json.dumps(manifest))
    space.until(lambda: space.status().get("updatedReadyReplicas") == 3)
    assert len(space.pods) == 3


def test_edit_of_one_pod_image_by_hand_is_not_undone(space: Workspace):
    """The revision label of a pod decides, as users of in-place updates expect."""
    started(space)
    name = min(space.pods)
    space.kubectl("set", "image", f"pod/{name}", "nginx=nginx:debug")
    space.until(lambda: image(space.pod(name)) == "nginx:debug")
    space.scale(3)
    space.settled(replicas=3, readyReplicas=3, updatedReplicas=3)
    assert image(space.pod(name)) == "nginx:debug"


async def test_a_life_by_the_dynamic_client_of_python(space: Workspace, tmp_path: Path):
    """Created in the new version and read in the old, updated and scaled by patches, waited for by watches, deleted."""
    async with python_client(space.cluster, tmp_path) as client:
        old, new = [
            await client.resources.get(api_version=f"apps.kruise.io/{version}", kind="CloneSet")
            for version in ("v1alpha1", "v1beta1")
        ]
        at = {"name": "sample", "namespace": space.name}
        strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}
        made = await new.create(body=cloneset(3, strategy=strategy), namespace=space.name)
        assert made.spec.updateStrategy.rollingUpdate.maxUnavailable == 2
        await watched(new, space.name, "sample", lambda status: status.get("readyReplicas") == 3)
        names = set(space.pods)

        found = await old.get(**at)
        assert found.apiVersion == "apps.kruise.io/v1alpha1"
        assert (found.spec.updateStrategy.type, found.spec.updateStrategy.maxUnavailable) == ("InPlaceIfPossible", 2)

        spec = found.to_dict()["spec"]
        spec["template"]["spec"]["containers"][0]["image"] = "nginx:mainline"
        body = {"spec": {"template": spec["template"]}}
        patched = await new.patch(body=body, content_type="application/merge-patch+json", **at)
        seen = await watched(
            new,
            space.name,
            "sample",
            lambda status: (
                status["observedGeneration"] == patched.metadata.generation and status["updatedReadyReplicas"] == 3
            ),
        )
        assert seen["status"]["readyReplicas"] == 3
        space.until(lambda: {image(pod) for pod in space.pods.values()} == {"nginx:mainline"})
        assert set(space.pods) == names

        scale = await new.scale.patch(body={"spec": {"replicas": 1}}, content_type="application/merge-patch+json", **at)
        assert (scale.kind, scale.spec.replicas) == ("Scale", 1)
        await watched(old, space.name, "sample", lambda status: status["replicas"] == 1)

        await new.delete(**at)
        space.until(lambda: not space.pods and not space.clone())


def test_a_disruption_budget_counts_the_wanted_pods(space: Workspace):
    """Percentages need the scale subresource of the pods' owner.

    The budget's controller notices new kinds every half minute. So this comes last.
    """
    started(space, 4)
    space.kubectl("create", "pdb", "sample", "--selector=app=sample", "--min-available=50%")

    def numbers() -> tuple[int, int, int]:
        status = space.read("pdb", "sample").get("status", {})
        return status.get("expectedPods", 0), status.get("desiredHealthy", 0), status.get("disruptionsAllowed", 0)

    space.until(lambda: numbers() == (4, 2, 2), 50)
