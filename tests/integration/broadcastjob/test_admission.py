"""BroadcastJobs as kubectl writes and reads them, none of them for any node (broadcastjob.md §1 to §3).

Covers the words of refusals, defaults, both versions, and columns.
"""

import json

import pytest

from tests.support.broadcast import NAME, broadcastjob, reached
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

NOWHERE: Json = {"nodeSelector": {"nobody": "has-it"}}
NEVER: Json = {"type": "Never"}


def idle(name: str = NAME, *, pod: Json | None = None, **arguments: object) -> Json:
    """Return a BroadcastJob without pods."""
    return broadcastjob(name, pod=NOWHERE | (pod or {}), **arguments)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_refusals(space: Workspace, version: str):
    """Rows 25 and 34 to 36."""
    without = idle(version=version)
    without["spec"]["template"]["spec"].pop("restartPolicy")
    preset = {"metadata": {"labels": {"broadcastjob-name": "mine"}}}
    rows: list[tuple[Json, str]] = [
        (without, "pod restartPolicy can only be Never or OnFailure"),
        (idle("my.job", version=version), "must consist of alphanumeric characters or '-'"),
        (idle("a" * 64, version=version), "must be no more than 63 characters"),
        (idle(version=version, template=preset), "are not allowed to preset in pod labels"),
        (
            idle(version=version, completionPolicy=NEVER | {"ttlSecondsAfterFinished": 1}),
            "ttlSecondsAfterFinished: Invalid value: 1: can just work with Always CompletionPolicyType",
        ),
        (
            idle(version=version, completionPolicy=NEVER | {"activeDeadlineSeconds": 1}),
            "activeDeadlineSeconds: Invalid value: 1: can just work with Always CompletionPolicyType",
        ),
        (idle(version=version, pod={"containers": [{"name": "main"}]}), "containers[0].image: Required value"),
    ]
    for document, message in rows:
        said = space.refuses(document)
        assert 'admission webhook "vbroadcastjob.kb.io" denied the request' in said
        assert message in said


def test_defaults_in_both_versions(space: Workspace):
    """Fields of old documents are dropped silently where kubectl lets them through."""
    of_old = json.dumps(idle(version="v1alpha1", completionPolicy={"backoffLimit": 4}))
    assert "unknown field" in space.refuses(of_old, "apply")
    space.kubectl("apply", "--validate=false", "-f", "-", stdin=of_old)
    reached(space, phase="running", desired=0)
    old, new = (space.read(f"broadcastjobs.{version}.apps.kruise.io", NAME) for version in ("v1alpha1", "v1beta1"))
    assert old["spec"] == new["spec"]
    assert old["status"] == new["status"]
    spec = new["spec"]
    assert (spec["parallelism"], spec["completionPolicy"], spec["failurePolicy"]) == (
        2147483647,
        {"type": "Always"},
        {"type": "FailFast"},
    )
    pod = spec["template"]["spec"]
    assert (pod["dnsPolicy"], pod["containers"][0]["imagePullPolicy"]) == ("ClusterFirst", "Always")
    assert new["metadata"]["generation"] == space.apply(idle(version="v1beta1"))["metadata"]["generation"] == 1


def test_statuses_are_not_for_users(space: Workspace):
    document = idle(paused=True) | {"status": {"phase": "completed", "succeeded": 9}}
    space.apply(document)
    assert reached(space, phase="paused")["succeeded"] == 0


def test_columns_and_words(space: Workspace):
    space.apply(idle())
    reached(space, phase="running", desired=0)
    for word in ("bcj", "broadcastjob", "broadcastjobs.v1alpha1.apps.kruise.io"):
        header, line = space.kubectl("get", word).splitlines()
        assert header.split() == ["NAME", "DESIRED", "ACTIVE", "SUCCEEDED", "FAILED", "AGE"]
        assert line.split()[:5] == [NAME, "0", "0", "0", "0"]
    assert "restart" in space.kubectl("explain", "bcj.spec.failurePolicy.restartLimit").lower()
