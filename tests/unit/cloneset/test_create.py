"""The pods and claims that a CloneSet creates, and under which ids (cloneset.md §4.5)."""

from itertools import islice
from typing import Any

import msgspec
import pytest

from flotilla_cloneset.cloneset.create import new_instance_ids
from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.plan import Create, Patch
from flotilla_common.workload.claims import claim_record
from flotilla_common.workload.pod_creation import ALPHABET
from tests.unit.cloneset.build import OWNER, CloneSetBuilder, claim, cloneset, planned, pod, revisions, template


def created(builder: CloneSetBuilder, **members: Any) -> list[Create]:
    return [action for action in planned(builder, **members).actions if isinstance(action, Create)]


def test_a_new_pod() -> None:
    content = template(volumes=[{"name": "tmp", "emptyDir": {}}])
    content["metadata"] |= {"annotations": {"note": "x"}, "finalizers": ["example.com/wait"]}
    revision, create = created(cloneset().replicas(1).template(content))
    identity = create.name.removeprefix("sample-")
    assert create.body["metadata"] == {
        "name": create.name,
        "generateName": "sample-",
        "namespace": "default",
        "labels": {
            "app": "sample",
            "controller-revision-hash": revision.name,
            "pod-template-hash": revision.name.removeprefix("sample-"),
            "apps.kruise.io/cloneset-instance-id": identity,
            "lifecycle.apps.kruise.io/state": "PreparingNormal",
        },
        "annotations": {"note": "x", "lifecycle.apps.kruise.io/timestamp": "2026-03-01T12:00:00Z"},
        "ownerReferences": [OWNER],
        "finalizers": ["example.com/wait"],
    }
    assert create.body["spec"] == {
        **content["spec"],
        "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}],
    }


@pytest.mark.parametrize(
    ("gates", "namespace", "expected"),
    [
        pytest.param("", "default", ["InPlaceUpdateReady", "KruisePodReady"], id="both"),
        pytest.param("PodWebhook=false", "default", ["InPlaceUpdateReady"], id="no pod webhook"),
        pytest.param("", "kube-system", ["InPlaceUpdateReady"], id="kube-system"),
        pytest.param("", "flotilla", ["InPlaceUpdateReady"], id="own namespace"),
    ],
)
def test_readiness_gates(gates: str, namespace: str, expected: list[str]) -> None:
    builder = cloneset().replicas(1)
    builder.metadata["namespace"] = namespace
    *_, create = created(builder, gates=gates, options=Options(system_namespace="flotilla"))
    assert [gate["conditionType"] for gate in create.body["spec"]["readinessGates"]] == expected


def test_gates_of_the_template_come_first_and_once() -> None:
    content = template(readinessGates=[{"conditionType": "www"}, {"conditionType": "InPlaceUpdateReady"}])
    *_, create = created(cloneset().replicas(1).template(content))
    gates = [gate["conditionType"] for gate in create.body["spec"]["readinessGates"]]
    assert gates == ["www", "InPlaceUpdateReady", "KruisePodReady"]


def test_short_hash_label() -> None:
    (create,) = created(cloneset().replicas(1), gates="CloneSetShortHash=true")
    assert create.body["metadata"]["labels"]["controller-revision-hash"] == "new"


def test_an_old_pod_comes_from_its_revision() -> None:
    (create,) = created(cloneset().replicas(1).partition(1))
    assert create.body["spec"]["containers"][0]["image"] == "nginx:1"
    assert "$patch" not in create.body["spec"]
    assert create.body["metadata"]["labels"]["controller-revision-hash"] == "sample-old"


def test_claims_come_before_their_pod() -> None:
    content = template(volumes=[{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}])
    builder = cloneset().replicas(1).template(content).claims("data", "logs").stored(currentRevision="")
    plan = planned(builder)
    (chain,) = plan.stages[1].chains
    data, logs, pod_create = chain
    assert isinstance(data, Create)
    assert isinstance(pod_create, Create)
    identity = pod_create.name.removeprefix("sample-")
    assert (data.name, logs.name) == (f"data-sample-{identity}", f"logs-sample-{identity}")
    assert data.body["metadata"]["labels"] == {"app": "sample", "apps.kruise.io/cloneset-instance-id": identity}
    assert data.body["metadata"]["ownerReferences"][0]["uid"] == "uid-sample"
    assert data.body["spec"] == {"resources": {"requests": {"storage": "1Gi"}}}
    assert [volume["name"] for volume in pod_create.body["spec"]["volumes"]] == ["data", "logs", "tmp"]
    assert data.on_failure is not None
    assert data.on_failure.text("no").startswith("failed to create pvc: no, pvc: {")


def recorded(*names: str) -> tuple[ControllerRevision, ...]:
    """Return the revisions, the old one with these claim templates."""
    before, after = revisions(template("nginx:1"), template())
    before.metadata.annotations.update(claim_record(cloneset().claims(*names).build().spec.volume_claim_templates, {}))
    return before, after


@pytest.mark.parametrize(
    ("partition", "before", "today", "made"),
    [
        pytest.param(3, ["data", "logs"], ["data"], ["data", "logs"], id="lost-one"),
        pytest.param(3, ["data"], [], ["data"], id="lost-all"),
        pytest.param(3, ["data"], ["data", "logs"], ["data"], id="got-one"),
        pytest.param(3, ["data"], ["disk"], ["data"], id="renamed"),
        pytest.param(0, ["data", "logs"], ["data"], ["data"], id="updated"),
    ],
)
def test_pods_of_a_kept_revision_get_its_claims(
    partition: int, before: list[str], today: list[str], made: list[str]
) -> None:
    builder = cloneset().replicas(1).partition(partition).claims(*today)
    *claims, pod_create = planned(builder, revisions=recorded(*before)).actions
    assert isinstance(pod_create, Create)
    assert [one.name.partition("-")[0] for one in claims] == made
    assert [volume["name"] for volume in pod_create.body["spec"].get("volumes", [])] == made


def test_a_revision_records_its_claim_templates() -> None:
    (created_revision, *_) = planned(cloneset().replicas(0).claims("data"), revisions=[]).actions
    assert isinstance(created_revision, Create)
    record = created_revision.body["metadata"]["annotations"]["apps.kruise.io/volume-claim-templates"]
    assert [one["metadata"]["name"] for one in msgspec.json.decode(record)] == ["data"]
    (newest,) = recorded("data")[:1]
    builder = cloneset().replicas(0).template(template("nginx:1"))
    assert planned(builder.claims("data"), revisions=[newest]).actions == []
    (renewed,) = planned(builder.claims("data", "logs"), revisions=[newest]).actions
    assert isinstance(renewed, Patch)
    assert renewed.body["metadata"]["annotations"].keys() == {"apps.kruise.io/volume-claim-templates"}


FREE = [claim("aaaaa"), claim("bbbbb")]


@pytest.mark.parametrize(
    ("pods", "claims", "taken", "expected"),
    [
        pytest.param([], FREE, (), ["sample-aaaaa", "sample-bbbbb"], id="free claims are taken in order"),
        pytest.param([pod("aaaaa", phase="Failed")], FREE, (), ["sample-bbbbb"], id="a finished pod keeps its name"),
        pytest.param([], FREE, ("sample-aaaaa",), ["sample-bbbbb"], id="a foreign pod keeps its name"),
        pytest.param([pod("aaaaa", deleting=True)], FREE, ("sample-aaaaa",), ["sample-bbbbb"], id="a leaving pod"),
    ],
)
def test_ids_of_free_claims(
    pods: list[Pod], claims: list[PersistentVolumeClaim], taken: tuple[str, ...], expected: list[str]
) -> None:
    builder = cloneset().replicas(3).claims("data").scale(enablePVCReuse=True)
    names = [create.name for create in created(builder, notation=pods, claims=claims, taken_names=taken)]
    assert [name for name in names if name in ("sample-aaaaa", "sample-bbbbb")] == expected


def test_fresh_ids() -> None:
    owner = ObjectMeta(uid="uid", resource_version="7")
    ids = list(islice(new_instance_ids(owner, ["a", "b"], ()), 200))
    assert len(set(ids)) == 200
    assert all(len(identity) == 5 and set(identity) <= set(ALPHABET) for identity in ids)
    assert ids == list(islice(new_instance_ids(owner, ["b", "a"], ()), 200))
    assert ids != list(islice(new_instance_ids(ObjectMeta(uid="other", resource_version="7"), ["a", "b"], ()), 200))
    assert ids[0] not in list(islice(new_instance_ids(owner, ["a", "b"], {ids[0]}), 200))


def test_a_set_that_is_empty_again_makes_other_names() -> None:
    """The same view gives the same names; a later one does not give the names of the dead."""
    first = [create.name for create in created(cloneset().replicas(2), notation="")]
    assert first == [create.name for create in created(cloneset().replicas(2), notation="")]
    later = cloneset().replicas(2)
    later.metadata["resourceVersion"] = "8"
    assert not set(first) & {create.name for create in created(later, notation="")}
