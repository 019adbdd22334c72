"""A snapshot's parts from the mirror and from the pass before, and the keys that a change concerns."""

from typing import Any

import msgspec
import pytest

from flotilla_cloneset.cloneset.controller import (
    CLAIMS,
    CLONE_SETS,
    CONTROLLER,
    NODES,
    PODS,
    PULL_JOBS,
    REVISIONS,
    Gatherer,
    NodeLabels,
)
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot, Options
from flotilla_common.api.core import Node
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.resources import CLAIM, POD, REVISION
from flotilla_common.control.keystate import Memory
from flotilla_common.control.watches import owner_keys
from tests.support.controller_context import FakeContext
from tests.testkit.documents import decoded
from tests.unit.cloneset.build import OWNER as REFERENCE
from tests.unit.cloneset.build import claim, cloneset, pod, revisions

GATES = "KruisePodReadinessGate=true"
OTHER = {**REFERENCE, "name": "other", "uid": "uid-other"}


def changed(obj: Any, **metadata: Any) -> Any:
    """Return the same object with other metadata."""
    document = msgspec.json.decode(msgspec.json.encode(obj))
    document["metadata"] |= metadata
    return decoded(document, type(obj))


def job(name: str, *owners: dict[str, Any], **metadata: Any) -> ImagePullJob:
    document = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": owners, **metadata}
    return msgspec.convert({"metadata": document}, ImagePullJob)


def gatherer_of(context: FakeContext, options: Options) -> Gatherer:
    """Build a gatherer over two namespaces, and two owners in each table."""
    gatherer = Gatherer(context, options)
    old, new = revisions()
    context.put(CLONE_SETS, cloneset().build(), changed(cloneset().build(), name="other", uid="u2"))
    context.put(
        PODS,
        pod("a"),
        changed(pod("b"), ownerReferences=[OTHER]),
        changed(pod("c"), namespace="elsewhere", ownerReferences=[]),
    )
    context.put(CLAIMS, claim("a"), changed(claim("b"), ownerReferences=[OTHER]))
    context.put(
        REVISIONS,
        old,
        changed(new, ownerReferences=[]),
        changed(new, name="theirs", uid="u3", ownerReferences=[OTHER]),
        changed(new, name="far", uid="u4", namespace="elsewhere", ownerReferences=[]),
    )
    context.put(NODES, msgspec.convert({"metadata": {"name": "n1", "uid": "1", "labels": {"zone": "a"}}}, Node))
    context.put(
        PULL_JOBS,
        job("mine", REFERENCE),
        job("going", REFERENCE, deletionTimestamp="2026-03-01T12:00:00Z"),
        job("guest", {**REFERENCE, "controller": False}),
        job("theirs", {**REFERENCE, "controller": False}, OTHER),
    )
    return gatherer


def gathered(memory: Memory | None = None, *, pull_ahead: bool = False) -> CloneSetSnapshot:
    context = FakeContext(gates=GATES, unwatched=() if pull_ahead else (IMAGE_PULL_JOB,))
    gatherer = gatherer_of(context, Options(system_namespace="flotilla"))
    snapshot = gatherer.gather(("default", "sample"), memory or Memory())
    assert snapshot is not None
    assert snapshot.gates is context.gates
    return snapshot


def names(objects: Any) -> list[str]:
    return [one.metadata.name for one in objects]


def test_only_what_refers_to_the_cloneset_or_may_become_its_own() -> None:
    snapshot = gathered()
    assert snapshot.cloneset.metadata.name == "sample"
    assert names(snapshot.pods) == ["sample-a"]
    assert names(snapshot.claims) == ["data-sample-a"]
    assert names(snapshot.revisions) == ["sample-old", "sample-new"]
    assert (snapshot.gates.changes(), snapshot.options.system_namespace) == (GATES, "flotilla")
    assert snapshot.pull_jobs is None


def test_names_are_taken_by_all_pods_of_the_namespace() -> None:
    taken = gathered().taken_names
    assert ["sample-a" in taken, "sample-b" in taken, "sample-c" in taken, 1 in taken] == [True, True, False, False]


def test_labels_of_nodes() -> None:
    labels = gathered().node_labels
    assert isinstance(labels, NodeLabels)
    assert (dict(labels), len(labels)) == ({"n1": {"zone": "a"}}, 1)
    with pytest.raises(KeyError, match="n2"):
        labels["n2"]


def test_image_pulls_are_those_that_it_controls_and_that_stay() -> None:
    jobs = gathered(pull_ahead=True).pull_jobs
    assert jobs is not None
    assert names(jobs) == ["mine"]


def test_only_pods_of_unknown_outcome_lend_their_ids() -> None:
    unconfirmed = ((REVISION, "sample-d4d4fb5bd"), (CLAIM, "sample-sample-x2k9d"), (POD, "sample-x2k9d"), (POD, "x-y"))
    snapshot = gathered(Memory(failures={"scale": "quota"}, unconfirmed=unconfirmed))
    assert snapshot.pending_ids == ("x2k9d",)
    assert snapshot.failures == {"scale": "quota"}


def test_nothing_is_planned_for_what_is_gone() -> None:
    gatherer = gatherer_of(FakeContext(), Options())
    assert gatherer.gather(("default", "gone"), Memory()) is None
    assert gatherer.gather(("elsewhere", "sample"), Memory()) is None


@pytest.mark.parametrize(
    ("owners", "concerned"),
    [
        ([], set[str]()),
        ([REFERENCE], {"sample"}),
        ([{**REFERENCE, "apiVersion": "apps.kruise.io/v1alpha1"}], {"sample"}),
        ([{**REFERENCE, "apiVersion": "apps/v1"}], set[str]()),
        ([{**REFERENCE, "kind": "StatefulSet"}], set[str]()),
        ([{**REFERENCE, "controller": False}, OTHER], {"sample", "other"}),
    ],
    ids=["nobody", "its CloneSet", "in another version", "another group", "another kind", "two"],
)
def test_a_change_of_a_dependent_concerns_its_owners(owners: list[Any], concerned: set[str]) -> None:
    one = changed(pod("a"), ownerReferences=owners)
    expected = {("default", name) for name in concerned}
    assert owner_keys(CLONE_SET, None, one) == owner_keys(CLONE_SET, one, None) == expected
    before = changed(pod("a"), ownerReferences=[OTHER])
    assert owner_keys(CLONE_SET, before, one) == expected | {("default", "other")}


def test_changes_of_all_that_it_makes_wake_their_owners() -> None:
    owners = {watch.resource: watch.owner for watch in CONTROLLER.watches}
    assert {resource for resource, owner in owners.items() if owner == CLONE_SET} == {
        POD,
        CLAIM,
        REVISION,
        IMAGE_PULL_JOB,
    }
