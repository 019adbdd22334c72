"""Pull secrets copied from a namespace to the one node that needs them (imagepull.md §6, examples 20 to 22)."""

import base64
import json

from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import SecretReference
from tests.integration.jobs.conftest import PullSpace
from tests.support.fake_agents import HANG
from tests.testkit.documents import Json, typed

COPIES = "kruise-daemon-config"


def job(image: str, name: str = "job", *, node: str, secrets: list[str]) -> Json:
    return typed(IMAGE_PULL_JOB, name, spec={"image": image, "pullSecrets": secrets, "selector": {"names": [node]}})


def login(password: str) -> Json:
    text = json.dumps({"auths": {"reg.example": {"username": "u", "password": password}}})
    data = {".dockerconfigjson": base64.b64encode(text.encode()).decode()}
    meta = {"name": "s1", "labels": {"team": "a"}, "annotations": {"note": "x"}}
    kind = "kubernetes.io/dockerconfigjson"
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind, "data": data}


def copies(space: PullSpace) -> list[Json]:
    """Return the copies of the namespace's secrets."""
    items = json.loads(space.cluster.kubectl("-n", COPIES, "get", "secrets", "-o", "json"))["items"]
    key = "imagepulljobs.kruise.io/source-key"
    return [item for item in items if item["metadata"].get("annotations", {}).get(key) == f"{space.name}/s1"]


def users(space: PullSpace) -> list[str]:
    annotations = copies(space)[0]["metadata"]["annotations"] if copies(space) else {}
    return [key for key in annotations.get("imagepulljobs.kruise.io/references", "").split(",") if key]


def references(space: PullSpace, node: str, image: str) -> list[SecretReference]:
    held = space.seen("NodeImage", node).get("spec", {}).get("images", {}).get(image, {})
    return [SecretReference(**one) for one in held.get("pullSecrets", [])]


def test_one_copy_for_all_jobs_gone_with_the_last(space: PullSpace):
    node, other = space.nodes[0], space.nodes[1]
    for image in ("reg.example/a:1", "reg.example/b:1"):
        space.agents.answers[node, image] = HANG
    space.apply(login("one"))
    space.apply(job("reg.example/a:1", "first", node=node, secrets=["s1"]))
    space.until(lambda: bool(references(space, node, "reg.example/a")))
    copy = copies(space)[0]
    assert copy["type"] == "kubernetes.io/dockerconfigjson"
    assert copy["metadata"]["labels"] == {"team": "a"}
    assert copy["metadata"]["annotations"]["imagepulljobs.kruise.io/mode"] == "batch"
    assert copy["metadata"]["annotations"]["note"] == "x"
    assert "last-applied" not in json.dumps(copy)
    reference = references(space, node, "reg.example/a")[0]
    assert (reference.namespace, reference.name, reference.mode) == (COPIES, copy["metadata"]["name"], "batch")

    space.apply(job("reg.example/b:1", "second", node=node, secrets=["s1"]))
    space.until(lambda: users(space) == [f"{space.name}/first", f"{space.name}/second"])
    assert len(copies(space)) == 1

    space.apply(login("two"))
    space.until(lambda: copies(space)[0]["data"] == login("two")["data"])

    answer, secrets = space.agents.ask_secrets(node, reference)
    assert answer.accepted
    assert [(one.namespace, one.name, one.data) for one in secrets] == [(COPIES, reference.name, login("two")["data"])]
    answer, secrets = space.agents.ask_secrets(other, reference)
    assert (answer.accepted, secrets) == (False, [])
    assert "does not refer" in answer.why
    answer, _ = space.agents.ask_secrets(other, reference, about=node)
    assert "may not ask" in answer.why
    source = SecretReference(namespace=space.name, name="s1")
    assert not space.agents.ask_secrets(node, source)[0].accepted

    space.agents.answers.pop((node, "reg.example/a:1"))
    space.done("first", succeeded=1)
    space.until(lambda: users(space) == [f"{space.name}/second"])
    assert space.seen("ImagePullJob", "second")["metadata"]["finalizers"] == ["apps.kruise.io/deletion-protection"]
    space.kubectl("delete", "imagepulljob", "second")
    space.until(lambda: not copies(space))


def test_a_secret_that_comes_later(space: PullSpace):
    node = space.nodes[2]
    space.agents.answers[node, "reg.example/late:1"] = HANG
    space.apply(job("reg.example/late:1", node=node, secrets=["s1"]) | {})
    space.done(active=1)
    assert references(space, node, "reg.example/late") == []
    assert "do not exist" in space.flotilla("explain", "imagepulljob", "job")
    space.patch({"spec": {"parallelism": 2}}, "job", "imagepulljob")
    space.apply(login("late"))
    space.until(lambda: bool(references(space, node, "reg.example/late")))
    assert space.tags(node)["reg.example/late:1"].get("version", 0) == 0
    refusal = space.refused("patch", "imagepulljob", "job", "--type=merge", "-p", '{"spec":{"pullSecrets":["s2"]}}')
    assert "spec.pullSecrets is immutable" in refusal
    space.kubectl("delete", "imagepulljob", "job")
    space.until(lambda: not copies(space))
