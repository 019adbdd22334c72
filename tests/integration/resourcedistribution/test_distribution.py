"""ResourceDistributions end to end, with kubectl: copies come, follow, come back and go."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flotilla_common.api.kinds.resourcedistribution.types import CONDITIONS, RESOURCE_DISTRIBUTION
from flotilla_common.bus.interface import Message
from flotilla_common.bus.subjects import ACT_STREAM, WHY_STREAM, kube_stream
from tests.integration.resourcedistribution.conftest import VERSIONS, Place
from tests.support.broker import environment
from tests.testkit.documents import Json
from tests.testkit.manifests import article

pytestmark = pytest.mark.timeout(300)  # the first one waits for the control plane, too

MARK = "kruise.io/resourcedistribution.resource."
ARTICLE = article("resourcedistribution/secrets")
"""The users' article, with its last line, which is invalid YAML there, indented correctly."""


def check_columns(place: Place) -> None:
    """Check the header that kubectl prints, by all names of the kind."""
    for name in ("resourcedistribution", "resourcedistributions", "distributor"):
        lines = place.cluster.kubectl("get", name, place.name).splitlines()
        assert lines[0].split() == ["NAME", "TOTAL", "SUCCEED", "FAILED"]


async def test_copies_come_follow_and_come_back(place: Place):
    a, _ = place.namespace("a"), place.namespace("b", team="one")
    selector = {"matchLabels": {"team": "one"}}
    place.apply(
        place.distribution(place.secret(), includedNamespaces=place.names("a", "x"), namespaceSelector=selector)
    )
    status = await place.counted(3, 2)
    assert [one["type"] for one in status["conditions"]] == list(CONDITIONS)
    assert status["conditions"][5]["failedNamespaces"] == [place.at("x")]
    check_columns(place)
    assert place.held("a") == place.held("b") == "v1"
    meta = place.copy("a")["metadata"]
    assert (meta["labels"], meta["annotations"][f"{MARK}from"]) == ({"source": "yes"}, place.name)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:.]+ \+0000 UTC", meta["annotations"][f"{MARK}distributed.timestamp"])

    place.namespace("x")  # waited for by name
    place.namespace("y", team="one")  # selected
    await place.counted(4, 4)
    assert place.held("x") == place.held("y") == "v1"

    place.patch("a", {"data": {"k": "eA==", "more": "eQ=="}, "metadata": {"labels": {"mine": "yes"}}})
    await place.until(lambda: place.copy("a")["data"] == {"k": "djE="})
    place.cluster.kubectl("delete", "secret", place.name, "-n", a)
    await place.until(lambda: place.held("a") == "v1")
    place.patch("b", {"metadata": {"labels": {"mine": "yes"}}})

    place.change({"spec": {"resource": {"data": {"k": "djI="}, "metadata": {"labels": {"new": "yes"}}}}})
    await place.until(lambda: all(place.held(letter) == "v2" for letter in "abxy"))
    labels = place.copy("b")["metadata"]["labels"]
    assert labels == {"source": "yes", "mine": "yes", "new": "yes"}

    place.cluster.kubectl("label", "namespace", place.at("b"), "team-")
    await place.until(lambda: place.copy("b") == {})
    place.change({"spec": {"targets": {"includedNamespaces": place.names("a")}}})
    await place.counted(2, 2)
    assert place.copy("x") == {}
    place.cluster.kubectl("delete", "distributor", place.name)
    await place.until_gone("a", "y")


async def test_nobody_elses_object_is_touched(place: Place):
    kind = "ConfigMap"
    a, _ = place.namespace("a"), place.namespace("b")
    resource = {"apiVersion": "v1", "kind": kind, "metadata": {"name": place.name}, "data": {"k": "djE="}}
    theirs = {**resource, "metadata": {"name": place.name, "namespace": a}, "data": {"k": "dGhlaXJz"}}
    place.apply(theirs)
    before = place.copy("a", kind)
    place.apply(place.distribution(resource, includedNamespaces=place.names("a", "b")))
    status = await place.counted(2, 1)
    assert (status["conditions"][4]["status"], status["conditions"][4]["failedNamespaces"]) == ("True", [a])
    assert place.read("v1alpha1")["status"]["conditions"][4]["failedNamespace"] == [a]
    place.change({"spec": {"targets": {"includedNamespaces": place.names("b")}}})
    await place.counted(1, 1)
    assert place.copy("a", kind) == before
    place.change({"spec": {"targets": {"includedNamespaces": place.names("a", "b")}}})
    await place.counted(2, 1)
    place.cluster.kubectl("delete", kind, place.name, "-n", a)
    await place.counted(2, 2)
    assert place.copy("a", kind)["data"] == {"k": "djE="}


async def test_a_quota_in_one_namespace(place: Place):
    for letter in "abc":
        place.namespace(letter)
    b = place.at("b")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": b}}
    place.apply({**quota, "spec": {"hard": {"count/secrets": "0"}}})
    await place.until(lambda: "used" in place.cluster.read("resourcequota", "none", "-n", b).get("status", {}))
    place.apply(place.distribution(place.secret(), includedNamespaces=place.names("a", "b", "c")))
    status = await place.counted(3, 2)
    failed = status["conditions"][1]
    assert (failed["status"], failed["failedNamespaces"]) == ("True", [b])
    assert "exceeded quota" in failed["reason"]
    versions = {letter: place.copy(letter)["metadata"]["resourceVersion"] for letter in "ac"}
    place.cluster.kubectl("delete", "resourcequota", "none", "-n", b)
    place.cluster.kubectl("annotate", "namespace", b, "again=now")
    status = await place.counted(3, 3)
    assert {one["status"] for one in status["conditions"]} == {"False"}
    assert {letter: place.copy(letter)["metadata"]["resourceVersion"] for letter in "ac"} == versions


async def test_a_namespace_that_goes_does_not_come_back_by_us(place: Place):
    for letter in "ab":
        place.namespace(letter)
    place.apply(place.distribution(place.secret(), includedNamespaces=place.names("a", "b")))
    await place.counted(2, 2)
    place.cluster.kubectl("delete", "namespace", place.at("a"))
    status = await place.counted(2, 1)
    assert status["conditions"][5]["failedNamespaces"] == [place.at("a")]


async def test_both_versions_and_the_hash_of_what_they_show(place: Place):
    place.namespace("a", team=place.name)  # its own: the tests of a file run side by side
    resource = place.secret() | {"metadata": {"name": place.name, "annotations": {"odd": "<&>\u2028"}}}
    query = {"matchLabels": {"team": place.name}}
    excluded = place.names("z")
    place.apply(
        place.distribution(resource, version="v1alpha1", namespaceLabelSelector=query, excludedNamespaces=excluded)
    )
    await place.counted(1, 1)
    shown: dict[str, Json] = {one: place.read(one)["spec"]["targets"] for one in VERSIONS}
    assert shown["v1alpha1"]["namespaceLabelSelector"] == shown["v1beta1"]["namespaceSelector"] == query
    hashes = {_hash(place.cluster.kubectl("get", "--raw", _path(one, place.name))) for one in VERSIONS}
    assert hashes == {place.copy("a")["metadata"]["annotations"][f"{MARK}hashcode"]}


async def test_text_and_a_type_that_is_left_out_are_written_once(place: Place):
    for letter in "ab":
        place.namespace(letter)
    source = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": place.name}, "stringData": {"k": "text"}}
    place.apply(place.distribution(source, includedNamespaces=place.names("a")))
    await place.counted(1, 1)
    version = place.copy("a")["metadata"]["resourceVersion"]
    place.change({"spec": {"targets": {"includedNamespaces": place.names("a", "b")}}})
    await place.counted(2, 2)
    assert (place.held("a"), place.copy("a")["metadata"]["resourceVersion"]) == ("text", version)


async def test_another_type_reaches_the_copies(place: Place):
    place.namespace("a")
    place.apply(place.distribution(place.secret(), includedNamespaces=place.names("a")))
    await place.counted(1, 1)
    typed = place.secret("v2", type="example.com/other")
    place.apply(place.distribution(typed, includedNamespaces=place.names("a")))
    await place.until(lambda: place.held("a") == "v2")
    assert place.copy("a")["type"] == "example.com/other"
    await place.counted(1, 1)


async def test_an_immutable_copy_is_told(place: Place):
    place.namespace("a")
    place.apply(place.distribution(place.secret(immutable=True), includedNamespaces=place.names("a")))
    await place.counted(1, 1)
    place.change({"spec": {"resource": {"data": {"k": "djI="}}}})
    status = await place.counted(1, 0)
    assert status["conditions"][2]["status"] == "True"
    assert "immutable" in status["conditions"][2]["reason"]
    assert place.held("a") == "v1"


async def test_a_copy_that_lost_its_owner_is_left_alone(place: Place):
    place.namespace("a")
    place.apply(place.distribution(place.secret(), includedNamespaces=place.names("a")))
    await place.counted(1, 1)
    place.patch("a", {"metadata": {"ownerReferences": None}, "data": {"k": "eA=="}})
    status = await place.counted(1, 0)
    assert status["conditions"][4]["status"] == "True"
    assert place.held("a") == "x"


def test_what_is_refused(place: Place):
    good = place.secret()
    place.apply(place.distribution(good))
    both = place.distribution(good, includedNamespaces=place.names("a"), excludedNamespaces=place.names("a"))
    for manifest, told in [
        (place.distribution(good | {"kind": "Service"}), "unsupported resource"),
        (place.distribution(good | {"metadata": {"name": "other"}}), "apiVersion, kind, metadata.name are immutable"),
        (place.distribution(good | {"data": {"k": "no base64"}}), "spec.resource"),
        (place.distribution(good | {"data": {"a b": "djE="}}), "a valid config key"),
        (both, "ambiguous targets"),
        (place.distribution(good, includedNamespaces={"list": [{"name": "ABC"}]}), "spec.targets.includedNamespaces"),
    ]:
        refusal = place.refused(manifest).partition("denied the request: ")[2]
        assert told in refusal
        assert "djE=" not in refusal
    place.apply(place.distribution(good | {"metadata": {"name": place.name, "namespace": "nowhere"}}))


async def test_the_manifest_of_the_article(place: Place):
    """ns-1 by its name, ns-2 by its label; ns-3 has the label and is excluded; ns-4 does not exist."""
    cluster = place.cluster
    for name in ("ns-1", "ns-2", "ns-3"):
        cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", "ns-2", "ns-3", "group=test")
    try:
        place.apply(ARTICLE)

        def copies() -> list[str]:
            found = cluster.read("configmap", "-A", "--field-selector=metadata.name=game-demo")["items"]
            return sorted(one["metadata"]["namespace"] for one in found)

        await place.until_any(lambda: copies() == ["ns-1", "ns-2"])
        await place.until_any(lambda: cluster.read("distributor", "sample").get("status", {}).get("failed") == 1)
        (found, _) = cluster.read("configmap", "-A", "--field-selector=metadata.name=game-demo")["items"]
        assert found["metadata"]["annotations"].keys() >= {
            f"{MARK}from",
            f"{MARK}distributed.timestamp",
            f"{MARK}hashcode",
        }
        cluster.kubectl("delete", "distributor", "sample")
        await place.until_any(lambda: copies() == [])
    finally:
        cluster.kubectl("delete", "distributor", "sample", "--ignore-not-found")
        cluster.kubectl("delete", "namespace", "ns-1", "ns-2", "ns-3", "--wait=false")


async def test_no_secret_on_the_bus_in_logs_or_in_what_commands_show(place: Place, tmp_path: Path):
    place.namespace("a")
    value = "the-password-is-hunter2"
    encoded = place.secret(value)["data"]["k"]
    place.apply(place.distribution(place.secret(value), includedNamespaces=place.names("a")))
    await place.counted(1, 1)
    place.change({"metadata": {"labels": {"touched": "yes"}}})
    told: list[Message] = []
    async with place.fleet.bus() as bus:
        for stream in (kube_stream(RESOURCE_DISTRIBUTION), ACT_STREAM, WHY_STREAM):
            await bus.history(stream.name, ">", told.append)
    about = [message for message in told if place.name.encode() in message.data]
    assert {message.subject.partition(".")[0] for message in about} == {"kube", "act", "why"}
    assert {message.headers.get("withheld") for message in about if message.subject.startswith("kube")} == {"true"}
    everything = b"".join(message.data for message in told).decode()
    everything += "".join(member.log() for member in place.fleet.members.values())
    card = _said(place, "get", "distributor", place.name)
    assert f"Secret {place.name} to namespaces {place.at('a')}: 1 of 1 have it" in card
    reasons = _said(place, "explain", "distributor", place.name)
    assert f"the copy is up to date in {place.at('a')}" in reasons
    bundle = tmp_path / "bundle.jsonl"
    _said(place, "bundle", "distributor", place.name, "-o", str(bundle))
    recorded = bundle.read_text()
    assert f"act.v1.sidecar.secrets.{place.at('a')}.{place.name}" in recorded
    assert f"why.v1.resourcedistributions._.{place.name}" in recorded
    for secret in (value, encoded):
        assert secret not in everything + card + reasons + recorded


def _said(place: Place, *words: str) -> str:
    command = [sys.executable, "-m", "flotilla_cli", *words, f"--nats={place.fleet.nats.url}"]
    env = {**environment(place.fleet.nats), "KUBECONFIG": str(place.cluster.kubeconfig)}
    reply = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert reply.returncode == 0, reply.stderr
    return reply.stdout


def _path(version: str, name: str) -> str:
    return f"/apis/apps.kruise.io/{version}/resourcedistributions/{name}"


def _hash(body: str) -> str:
    """Compute the hash as a user does: of the bytes of `spec.resource` in the response."""
    resource = json.loads(body)["spec"]["resource"]
    start = body.index('"spec":{"resource":', body.index('"managedFields"')) + len('"spec":{"resource":')
    length = json.JSONDecoder().raw_decode(body[start:])[1]
    assert json.loads(body[start : start + length]) == resource
    return hashlib.sha256(body[start : start + length].encode()).hexdigest()
