"""Existing clients work with CloneSets: both API versions, scale, wait, budgets, apply in all its forms."""

import json
from pathlib import Path

from tests.support.python_client import python_client, watched
from tests.support.workspace import Workspace, cloneset, image
from tests.testkit.documents import Json

ALPHA = "clonesets.v1alpha1.apps.kruise.io"
BETA = "clonesets.v1beta1.apps.kruise.io"


def test_one_set_in_both_versions(space: Workspace):
    """Written in one version and read in the other, applied in the other version and back, replaced by what was read.

    An image is updated in place; what means the same makes no revision.
    """
    policy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}
    space.apply(cloneset(2, strategy=policy))
    space.settled(replicas=2, readyReplicas=2)
    names = set(space.pods)
    old, new = space.read(ALPHA, "sample"), space.read(BETA, "sample")
    assert old["spec"]["updateStrategy"] == {
        "type": "InPlaceIfPossible", "partition": 0, "maxUnavailable": 2, "maxSurge": 0,
    }  # fmt: skip
    assert old["status"] == new["status"]
    applied = cloneset(2, version="v1alpha1", strategy={"type": "InPlaceIfPossible", "maxUnavailable": 2})
    applied["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:mainline"
    space.apply(applied)
    space.settled(updatedReadyReplicas=2, readyReplicas=2)
    assert sorted(space.revisions().values()) == [1, 2]
    space.apply(cloneset(2, strategy=policy))
    space.settled(updatedReadyReplicas=2, readyReplicas=2)
    assert set(space.pods) == names
    assert {image(pod) for pod in space.pods.values()} == {"nginx:alpine"}

    for version in (ALPHA, BETA):
        before, text = space.read(version, "sample")["spec"], space.kubectl("get", version, "sample", "-o", "yaml")
        assert space.kubectl("replace", "-f", "-", stdin=text) == "cloneset.apps.kruise.io/sample replaced\n"
        assert space.read(version, "sample")["spec"] == before
    space.until(lambda: space.status().get("observedGeneration") == space.clone()["metadata"]["generation"])
    assert sorted(space.revisions().values()) == [2, 3]


def test_scale_wait_and_a_disruption_budget(space: Workspace):
    """A percentage of a budget needs the scale subresource of the pods' owner; it is noticed every half minute."""
    space.apply(cloneset(2, progressDeadlineSeconds=60))
    space.kubectl("wait", "clone/sample", "--for=condition=Progressing", "--timeout=20s")
    reason = 'jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=CloneSetAvailable'
    space.kubectl("wait", "clone/sample", f"--for={reason}", "--timeout=20s")
    space.kubectl("create", "pdb", "sample", "--selector=app=sample", "--min-available=50%")
    assert space.kubectl("scale", "clone/sample", "--replicas=4") == "cloneset.apps.kruise.io/sample scaled\n"
    told = space.kubectl("wait", "clone/sample", "--for=jsonpath={.status.readyReplicas}=4", "--timeout=20s")
    assert told == "cloneset.apps.kruise.io/sample condition met\n"
    refusal = space.refused("scale", "clone/sample", "--current-replicas=9", "--replicas=1")
    assert "Expected replicas to be 9, was 4" in refusal

    def numbers() -> tuple[int, int, int]:
        status = space.read("pdb", "sample").get("status", {})
        return status.get("expectedPods", 0), status.get("desiredHealthy", 0), status.get("disruptionsAllowed", 0)

    space.until(lambda: numbers() == (4, 2, 2), 50)


def test_explain_and_dry_run(space: Workspace):
    text = space.kubectl("explain", "clone.spec")
    for field in ("replicas", "selector", "template", "scaleStrategy", "updateStrategy", "lifecycle"):
        assert f"  {field}\t" in text
    text = space.kubectl("explain", "clone.spec.updateStrategy.partition", "--api-version=apps.kruise.io/v1alpha1")
    assert "partition" in text
    line = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    document = json.loads(space.kubectl(*line, stdin=json.dumps(cloneset(2))))
    assert document["spec"]["revisionHistoryLimit"] == 10
    assert document["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "20%"
    assert document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert space.kubectl("get", "clone,pods", "-o", "name") == ""
    assert "spec.replicas" in space.refused(*line, stdin=json.dumps(cloneset(-1)))


def test_server_side_apply_by_two_owners(space: Workspace):
    """One owner has the set, the other the number of replicas."""
    manifest = cloneset(1)
    line = ("apply", "--server-side", "-f", "-")
    told = space.kubectl(*line, "--field-manager=team", stdin=json.dumps(manifest))
    assert told == "cloneset.apps.kruise.io/sample serverside-applied\n"
    other: Json = {field: manifest[field] for field in ("apiVersion", "kind", "metadata")} | {"spec": {"replicas": 2}}
    refusal = space.refused(*line, "--field-manager=scaler", stdin=json.dumps(other))
    assert 'conflict with "team": .spec.replicas' in refusal
    space.kubectl(*line, "--field-manager=scaler", "--force-conflicts", stdin=json.dumps(other))
    space.until(lambda: space.status().get("readyReplicas") == 2)
    del manifest["spec"]["replicas"]
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:mainline"
    space.kubectl(*line, "--field-manager=team", stdin=json.dumps(manifest))
    space.until(lambda: space.status().get("updatedReadyReplicas") == 2)
    assert len(space.pods) == 2


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
