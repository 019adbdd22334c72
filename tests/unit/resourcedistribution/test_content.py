"""Comparison with existing objects, and their preserved parts (resourcedistribution.md §5.3)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.resourcedistribution.types import Source
from flotilla_common.api.resources import CONFIG_MAP, SECRET
from flotilla_sidecar.resourcedistribution.copies import Copy, change, content_of
from tests.testkit.documents import decoded

VALUE, TEXT = "c2VjcmV0", "secret"
META = {
    "name": "s",
    "namespace": "a",
    "uid": "u",
    "resourceVersion": "7",
    "labels": {"of": TEXT},
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": TEXT},
    "managedFields": [{"manager": TEXT}],
    "finalizers": ["f/x"],
}


def held(kind: str = "Secret", **members: Any) -> Copy:
    """Return a copy as the apiserver has it."""
    document = {"apiVersion": "v1", "kind": kind, "metadata": META, **members}
    return decoded(document, Copy)


def differs(source: dict[str, Any], copy: Copy) -> dict[str, Any]:
    """Return the patch for a copy of this source."""
    resource = CONFIG_MAP if source.get("kind") == "ConfigMap" else SECRET
    return change(copy, content_of(Source(resource, "s", source)))


def test_nothing_of_what_exists_is_kept_but_whose_it_is_and_digests() -> None:
    copy = held(type="Opaque", data={"k": VALUE}, binaryData={"b": VALUE})
    assert copy.metadata.finalizers == ["f/x"]
    assert (copy.metadata.namespace, copy.metadata.resource_version) == ("a", "7")
    kept = repr(copy) + repr(msgspec.to_builtins(copy))
    assert VALUE not in kept
    assert TEXT not in kept
    assert "last-applied" not in kept


def test_a_digest_is_not_digested_again() -> None:
    copy = held(type="Opaque", data={"k": VALUE})
    again = msgspec.structs.replace(copy, metadata=msgspec.structs.replace(copy.metadata, resource_version="8"))
    assert differs({"data": {"k": VALUE}}, again) == {}


EQUAL = [
    pytest.param({"data": {"k": VALUE}}, {"type": "Opaque", "data": {"k": VALUE}}, id="a type that is left out"),
    pytest.param({"stringData": {"k": TEXT}}, {"type": "Opaque", "data": {"k": VALUE}}, id="text"),
    pytest.param(
        {"data": {"k": "eA=="}, "stringData": {"k": TEXT}}, {"type": "Opaque", "data": {"k": VALUE}}, id="text wins"
    ),
    pytest.param({"data": {"k": "c2Vj\r\ncmV0\n"}}, {"type": "Opaque", "data": {"k": VALUE}}, id="base64 in lines"),
    pytest.param({"data": {"k": None}}, {"type": "Opaque", "data": {"k": ""}}, id="null"),
    pytest.param({"data": {"k": ""}}, {"type": "Opaque", "data": {"k": None}}, id="null as it is shown"),
    pytest.param({"data": {}, "immutable": False}, {"type": "Opaque"}, id="nothing"),
    pytest.param({"data": None, "immutable": None}, {"type": "Opaque", "immutable": False}, id="explicit nulls"),
    pytest.param({"type": "x/y", "immutable": True}, {"type": "x/y", "immutable": True}, id="type and immutable"),
    pytest.param({"status": {"a": 1}, "bogus": 1}, {"type": "Opaque"}, id="what no Secret has"),
    pytest.param({"binaryData": {"k": VALUE}}, {"type": "Opaque"}, id="what only a ConfigMap has"),
    pytest.param(
        {"kind": "ConfigMap", "data": {"k": TEXT, "n": None}, "binaryData": {"b": VALUE}},
        {"kind": "ConfigMap", "data": {"n": "", "k": TEXT}, "binaryData": {"b": VALUE}},
        id="a ConfigMap",
    ),
    pytest.param({"kind": "ConfigMap", "type": "x", "stringData": {"a": "b"}}, {"kind": "ConfigMap"}, id="of a Secret"),
    pytest.param(
        {"kind": "ConfigMap", "data": {"k": "a\r\nb\n"}}, {"kind": "ConfigMap", "data": {"k": "a\r\nb\n"}}, id="lines"
    ),
]


@pytest.mark.parametrize(("source", "copy"), EQUAL)
def test_what_the_apiserver_would_store_as_the_same(source: dict[str, Any], copy: dict[str, Any]) -> None:
    assert differs(source, held(**copy)) == {}


DIFFERENT = [
    pytest.param({"data": {"k": VALUE}}, {"data": {"k": "eA=="}}, {"data": {"k": VALUE}}, id="another value"),
    pytest.param({"data": {"k": VALUE}}, {"data": {"k": VALUE, "x": ""}}, {"data": {"x": None}}, id="one more"),
    pytest.param({"data": {"k": VALUE}}, {}, {"data": {"k": VALUE}}, id="one less"),
    pytest.param({}, {"data": {"k": VALUE}}, {"data": {"k": None}}, id="none wanted"),
    pytest.param({"stringData": {"k": "x"}}, {"data": {"k": VALUE}}, {"data": {"k": "eA=="}}, id="text"),
    pytest.param({"data": {"k": "c2Vj\ncmV0"}}, {}, {"data": {"k": VALUE}}, id="base64 as the apiserver writes it"),
    pytest.param({"data": {"k": "no base64"}}, {"data": {"k": ""}}, {"data": {"k": "no base64"}}, id="no base64"),
    pytest.param({"data": {"k": 5}}, {"data": {"k": "5"}}, {"data": {"k": 5}}, id="no text"),
    pytest.param({"type": "x/y"}, {}, {"type": "x/y"}, id="another type"),
    pytest.param({"immutable": True}, {}, {"immutable": True}, id="to be immutable"),
    pytest.param({}, {"immutable": True}, {"immutable": None}, id="no longer immutable"),
]


@pytest.mark.parametrize(("source", "copy", "patch"), DIFFERENT)
def test_the_patch_that_makes_a_secret_equal(
    source: dict[str, Any], copy: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert differs(source, held(**{"type": "Opaque"} | copy)) == patch


def test_the_patch_that_makes_a_config_map_equal() -> None:
    source = {"kind": "ConfigMap", "data": {"k": "c2Vj\ncmV0"}, "binaryData": {"b": "c2Vj\ncmV0"}}
    copy = held("ConfigMap", data={"x": "y"}, binaryData={"c": VALUE})
    assert differs(source, copy) == {"data": {"k": "c2Vj\ncmV0", "x": None}, "binaryData": {"b": VALUE, "c": None}}
