"""The form of an object on the bus."""

import json
from typing import Any

import msgspec
import pytest

from flotilla_common.api.resources import POD
from flotilla_common.kube.reflector import decode_head
from flotilla_common.tracing.context import change
from flotilla_watcher.encoder import Encoder

UID = "0b4a1f5e-7d32-4d6a-9f3e-2f1f3c5b7a90"


def raw(document: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(document).encode())


def pod(**spec: object) -> dict[str, Any]:
    meta = {"name": "a", "namespace": "b", "uid": UID, "resourceVersion": "12", "managedFields": [{"manager": "x"}]}
    return {"metadata": meta, "spec": spec}


def test_managed_fields_go_and_the_type_comes() -> None:
    document = pod(text='a "quoted" {brace', managedFields="elsewhere", number=1e3)
    body = json.loads(Encoder(POD, 1 << 20).body(raw(document)))
    del document["metadata"]["managedFields"]
    assert body == {"apiVersion": "v1", "kind": "Pod", **document}


def test_the_objects_own_type_wins() -> None:
    assert json.loads(Encoder(POD, 1 << 20).body(raw({"apiVersion": "v9", **pod()})))["apiVersion"] == "v9"


def test_headers() -> None:
    item = raw(pod())
    _, headers = Encoder(POD, 1 << 20).message("ADDED", "e1", decode_head(item).metadata, item)
    assert headers == {
        "op": "ADDED",
        "rv": "12",
        "uid": UID,
        "epoch": "e1",
        "traceparent": change(UID, 0).version("12").traceparent,
    }


@pytest.mark.parametrize(("size", "oversize"), [(100, False), (5000, True)])
def test_what_is_too_large_is_named_only(size: int, oversize: bool) -> None:
    item = raw(pod(text="x" * size))
    body, headers = Encoder(POD, 2000).message("MODIFIED", "e1", decode_head(item).metadata, item)
    assert ("oversize" in headers) is oversize
    assert len(body) < 2000
    assert json.loads(body)["metadata"]["uid"] == UID


def test_what_may_hold_secrets_is_named_only() -> None:
    item = raw(pod(text="secret"))
    body, headers = Encoder(POD, 1 << 20, withheld=True).message("MODIFIED", "e1", decode_head(item).metadata, item)
    assert (headers["withheld"], headers["op"]) == ("true", "MODIFIED")
    assert b"secret" not in body
    assert json.loads(body)["metadata"] == {"name": "a", "namespace": "b", "uid": UID, "resourceVersion": "12"}


def test_of_what_is_deleted_the_identity_is_left() -> None:
    item = raw(pod(text="x" * 5000))
    body, headers = Encoder(POD, 1 << 20).message("DELETED", "e1", decode_head(item).metadata, item)
    assert json.loads(body) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "b", "uid": UID, "resourceVersion": "12"},
    }
    assert "oversize" not in headers


def test_who_applied_server_side_is_kept_without_the_fields() -> None:
    owners = [
        {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}},
        {"manager": "me", "operation": "Apply", "fieldsV1": {"f:metadata": {}}},
    ]
    item = msgspec.Raw(msgspec.json.encode({"metadata": {"name": "a", "managedFields": owners}}))
    body = msgspec.json.decode(Encoder(POD, 1 << 20).body(item))
    assert body["metadata"]["managedFields"] == [
        {"manager": "kubelet", "operation": "Update"},
        {"manager": "me", "operation": "Apply"},
    ]
