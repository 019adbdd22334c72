"""Requests that the apiserver refuses, in the words that kubectl shows (containerrecreaterequest.md §4)."""

import json
from typing import Any

import pytest

from tests.integration.recreate.conftest import Space, request

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"containers": ()}, "containers list can not be null", id="no containers"),
        pytest.param({"pod": "nobody"}, "no found Pod named nobody", id="no pod"),
        pytest.param({"containers": ("db",)}, "container db not found in Pod", id="unknown container"),
        pytest.param({"containers": ("app", "app")}, "can not recreate app multi times", id="twice"),
        pytest.param({"activeDeadlineSeconds": 2}, "activeDeadlineSeconds can not be less than 3s", id="deadline"),
        pytest.param(
            {"strategy": {"terminationGracePeriodSeconds": -1}},
            "terminationGracePeriodSeconds must be non-negative integer",
            id="negative grace",
        ),
        pytest.param({"strategy": {"failurePolicy": "Retry"}}, "unknown failurePolicy Retry", id="policy"),
    ],
)
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_creations(space: Space, version: str, fields: dict[str, Any], message: str):
    await space.pod()
    containers = fields.get("containers", ("app",))
    rest = {name: value for name, value in fields.items() if name != "containers"}
    document = json.dumps(request(*containers, version=version, **rest))
    assert f"denied the request: {message}" in space.refuses(document)


async def test_pods_that_cannot_restart_anything(space: Space):
    spec = {"containers": [{"name": "app", "image": "nginx"}], "nodeSelector": {"no": "node"}}
    pending = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pending"}, "spec": spec}
    space.create(pending)
    document = json.dumps(request("app", pod="pending"))
    said = space.refuses(document)
    assert "not allowed to recreate containers in a pending Pod" in said
    await space.pod()
    finished = json.dumps({"status": {"phase": "Succeeded"}})
    space.kubectl("patch", "pod", "web", "--subresource=status", "--type=merge", "-p", finished)
    said = space.refuses(request("app"))
    assert "not allowed to recreate containers in an inactive Pod" in said


async def test_only_the_newer_version_has_limits_in_its_schema(space: Space):
    await space.pod()
    strategy = {"minStartedSeconds": -5}
    document = json.dumps(request("app", strategy=strategy))
    assert "should be greater than or equal to 0" in space.refuses(document)


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
