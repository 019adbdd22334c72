"""BroadcastJobs as kubectl writes and reads them, none of them for any node (broadcastjob.md §1 to §3).

Covers the words of refusals, defaults, both versions, and columns.
"""

import json

from tests.support.broadcast import NAME, broadcastjob, reached
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

NOWHERE: Json = {"nodeSelector": {"nobody": "has-it"}}


def idle(name: str = NAME, *, pod: Json | None = None, **arguments: object) -> Json:
    """Return a BroadcastJob without pods."""
    return broadcastjob(name, pod=NOWHERE | (pod or {}), **arguments)


def test_refusals(space: Workspace):
    """Rows 25, 34 and 35."""
    without = idle(version="v1alpha1")
    without["spec"]["template"]["spec"].pop("restartPolicy")
    policy: Json = {"type": "Never", "ttlSecondsAfterFinished": 1}
    rows: list[tuple[Json, str]] = [
        (without, "pod restartPolicy can only be Never or OnFailure"),
        (idle("my.job"), "must consist of alphanumeric characters or '-'"),
        (
            idle(completionPolicy=policy),
            "ttlSecondsAfterFinished: Invalid value: 1: can just work with Always CompletionPolicyType",
        ),
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


def test_columns_and_words(space: Workspace):
    space.apply(idle())
    reached(space, phase="running", desired=0)
    for word in ("bcj", "broadcastjob", "broadcastjobs.v1alpha1.apps.kruise.io"):
        header, line = space.kubectl("get", word).splitlines()
        assert header.split() == ["NAME", "DESIRED", "ACTIVE", "SUCCEEDED", "FAILED", "AGE"]
        assert line.split()[:5] == [NAME, "0", "0", "0", "0"]
    assert "restart" in space.kubectl("explain", "bcj.spec.failurePolicy.restartLimit").lower()
