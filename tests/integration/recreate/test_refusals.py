"""Requests that the apiserver refuses, in the words that kubectl shows (containerrecreaterequest.md §4)."""

import json
from typing import Any

import pytest

from tests.integration.recreate.conftest import Space, request

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_creations(space: Space):
    """Requests for a running pod, a pending one, and one that has finished."""
    await space.pod()
    for version, document, message in [
        ("v1alpha1", {"containers": ["db"]}, "container db not found in Pod"),
        ("v1beta1", {"containers": ["db"]}, "container db not found in Pod"),
        ("v1beta1", {"pod": "nobody"}, "no found Pod named nobody"),
        ("v1beta1", {"activeDeadlineSeconds": 2}, "activeDeadlineSeconds can not be less than 3s"),
    ]:
        fields: dict[str, Any] = {"containers": ["app"]} | document
        said = space.refuses(request(*fields.pop("containers"), version=version, **fields))
        assert f"denied the request: {message}" in said
    # Only the newer version has limits in its schema.
    assert "should be greater than or equal to 0" in space.refuses(request("app", strategy={"minStartedSeconds": -5}))
    spec = {"containers": [{"name": "app", "image": "nginx"}], "nodeSelector": {"no": "node"}}
    space.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pending"}, "spec": spec})
    said = space.refuses(request("app", pod="pending"))
    assert "not allowed to recreate containers in a pending Pod" in said
    space.send_patch("pod", "web", {"status": {"phase": "Succeeded"}}, subresource="status")
    assert "not allowed to recreate containers in an inactive Pod" in space.refuses(request("app"))


async def test_changes(space: Space):
    await space.pod()
    original = json.dumps(request("app"))
    space.create(original)

    def patched(body: dict[str, Any]) -> str:
        return space.refuses_patch("crr", "restart", body)

    assert "spec of ContainerRecreateRequest is immutable" in patched({"spec": {"podName": "other"}})
    label = "crr.apps.kruise.io/node-name"
    assert f"not allowed to update immutable label {label}" in patched({"metadata": {"labels": {label: "node-1"}}})
    space.kubectl("label", "crr", "restart", "mine=x")
    again = space.refuses(original, "replace")
    assert "spec of ContainerRecreateRequest is immutable" in again
