"""Deletion protection on a real apiserver: every kind, and deletions without a named object.

The single rules are in tests/unit/webhook/test_protection.py; here it counts that the apiserver calls, for which kinds,
and the text that users see. Numbers are those of the worked examples in deletionprotection.md §7.
"""

import json
from pathlib import Path
from typing import Any

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from tests.support.fleet import Fleet
from tests.support.stateful import statefulset
from tests.support.workspace import Workspace, cloneset
from tests.testkit.documents import Json

WATCHED = (CLONE_SET,)
LABEL = "policy.kruise.io/delete-protection"
FORBIDDEN = "denied the request: forbidden by ResourcesProtectionDeletion for"
ALWAYS = f"{FORBIDDEN} {LABEL}=Always"
CASCADING = f"{FORBIDDEN} {LABEL}=Cascading and"
WEBHOOKS = {
    "Deployment": "vbuiltindeployment.kb.io",
    "ReplicaSet": "vbuiltinreplicaset.kb.io",
    "StatefulSet": "vbuiltinstatefulset.kb.io",
    "Service": "vservice.kb.io",
    "Ingress": "vingress.kb.io",
}


def labelled(kind: str, name: str, label: str, **spec: Any) -> Json:
    """Return an object of a native kind that carries the label."""
    match kind:
        case "Service":
            version, fields = "v1", {"ports": [{"port": 80}]}
        case "Ingress":
            backend = {"service": {"name": "web", "port": {"number": 80}}}
            version, fields = "networking.k8s.io/v1", {"defaultBackend": backend}
        case _:
            containers = [{"name": "main", "image": "nginx:alpine"}]
            template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
            version, fields = "apps/v1", {"selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "labels": {LABEL: label}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": fields | spec}


def protected(document: Json, label: str, **labels: str) -> Json:
    """Return the object with the label."""
    return document | {"metadata": document["metadata"] | {"labels": {LABEL: label, **labels}}}


def set_label(space: Workspace, kind: str, name: str, label: str | None) -> None:
    space.send_patch(kind, name, {"metadata": {"labels": {LABEL: label}}})


def lines(log: Path, kind: str) -> list[Json]:
    """Return the recorded refusals of deletions of a kind."""
    recorded = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [line for line in recorded if line.get("Kind") == kind]


def test_always(space: Workspace):
    """In whatever way one of them is deleted."""
    for kind, webhook in WEBHOOKS.items():
        space.create(labelled(kind, "always", "Always"))
        assert f'admission webhook "{webhook}" {ALWAYS}' in space.refused("delete", kind, "always")
    for argument in ("--cascade=orphan", "--cascade=foreground", "--force", "--dry-run=server"):
        assert ALWAYS in space.refused("delete", "deployment", "always", argument)
    set_label(space, "deployment", "always", None)
    space.kubectl("delete", "deployment", "always")


def test_12_sets_of_ours_are_kept_while_they_want_pods(space: Workspace, protection_log: Path):
    """A refusal is recorded."""
    space.create(protected(cloneset(2), "Cascading"), protected(statefulset(1), "Cascading"))
    assert f"{CASCADING} replicas 2>0" in space.refused("delete", "clone", "sample")
    assert f"{CASCADING} replicas 1>0" in space.refused("delete", "asts", "web")
    line = lines(protection_log, "CloneSet")[-1]
    assert line.pop("UserAgent")
    assert line == {"Event": "DeletionProtection", "Kind": "CloneSet", "Namespace": space.name, "Name": "sample"}
    space.scale(0)
    space.kubectl("delete", "clone", "sample")


def test_22_a_deletion_of_all_asks_for_each(space: Workspace):
    space.create(
        protected(cloneset(1, name="first"), "Cascading", together="yes"),
        protected(cloneset(0, name="second"), "Always", together="yes"),
    )
    collection = f"/apis/apps.kruise.io/v1alpha1/namespaces/{space.name}/clonesets?labelSelector=together%3Dyes"
    assert FORBIDDEN in space.refused("delete", "--raw", collection)
    left = space.read("clone", "-l", "together=yes")["items"]
    assert [item["metadata"]["name"] for item in left] == ["first", "second"]
    for name in ("first", "second"):
        set_label(space, "clone", name, None)
    space.kubectl("delete", "--raw", collection)
    space.until(lambda: space.read("clone")["items"] == [])


def test_16_the_garbage_collector_is_refused_as_well(space: Workspace, protection_log: Path):
    deployment = labelled("Deployment", "owner", "Cascading", replicas=1)
    space.create(deployment | {"metadata": {"name": "owner"}})

    def owned() -> list[str]:
        return [item["metadata"]["name"] for item in space.read("replicaset")["items"]]

    space.until(lambda: bool(owned()))
    (replica_set,) = owned()
    set_label(space, "replicaset", replica_set, "Always")
    space.kubectl("delete", "deployment", "owner")
    space.until(lambda: [line["Name"] for line in lines(protection_log, "ReplicaSet")].count(replica_set) >= 2)
    assert owned() == [replica_set]
    set_label(space, "replicaset", replica_set, None)
    space.until(lambda: not owned())


def test_2_a_namespace_with_active_pods(space: Workspace):
    set_label(space, "namespace", space.name, "Cascading")
    space.kubectl("run", "alive", "--image=nginx:alpine")
    delete = ("delete", "namespace", space.name)
    assert f"{CASCADING} active pods 1>0" in space.refused(*delete, "--dry-run=server")
    space.kubectl("delete", "pod", "alive", "--now")
    space.kubectl(*delete, "--wait=false")


def test_8_a_definition_with_objects(space: Workspace, flotilla: Fleet):
    space.create(cloneset(0))
    crd = "clonesets.apps.kruise.io"
    flotilla.cluster.send_patch("crd", crd, {"metadata": {"labels": {LABEL: "Cascading"}}})
    assert f"{CASCADING} active CRs" in space.refused("delete", "crd", crd)
    flotilla.cluster.send_patch("crd", crd, {"metadata": {"labels": {LABEL: None}}})
