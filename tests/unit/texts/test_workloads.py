"""Texts of CloneSet, StatefulSet and DaemonSet that the specification fixes word for word.

Events and conditions: clients compare them, and scripts search for them. A text that is changed in the code fails here.
cloneset.md §5.3, §5.4, §6; statefulset.md §5.3, §6; daemonset.md §6; common.md §9.10, §12.
"""

from collections.abc import Callable

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Create, Plan
from tests.unit.cloneset import build as cs
from tests.unit.daemonset import build as ads
from tests.unit.statefulset import build as asts
from tests.unit.texts.told import actions, conditions, events


def growing(**claim: list[str]) -> Plan:
    """Plan a StatefulSet whose claim template has become larger."""
    builder = asts.sts(1).claims("data", size="2Gi").set(volumeClaimUpdateStrategy={"type": "OnPodRollingUpdate"})
    claims = [asts.claim("data-w-0", modes=claim.get("modes", ["ReadWriteOnce"]))]
    gate = "StatefulSetAutoResizePVCGate=true"
    return asts.planned(builder, asts.pods("0A", claims=["data"]), claims=claims, gates=gate)


def claimed(*pods: Pod, claims: tuple[str, ...]) -> Plan:
    """Plan a CloneSet of one replica, with claims."""
    builder = cs.cloneset().replicas(1).claims("data")
    return cs.planned(builder, list(pods), claims=[cs.claim(one) for one in claims])


EVENTS: list[tuple[str, Callable[[], Plan], list[str]]] = [
    (
        "cloneset: delete",
        lambda: claimed(cs.pod("n1"), cs.pod("n2"), claims=("n1", "n2")),
        [
            "Normal SuccessfulDelete: succeed to delete pod sample-n1",
            "Warning FailedDelete: failed to delete pod sample-n1: ERR",
            "Warning FailedDelete: failed to delete pvc data-sample-n1: ERR",
        ],
    ),
    (
        "cloneset: clean up",
        lambda: claimed(cs.pod("n1"), claims=("n1", "x")),
        ["Warning FailedDelete: failed to clean up PVC data-sample-x: ERR"],
    ),
    (
        "cloneset: hand over",
        lambda: claimed(cs.pod("n1"), cs.pod("x", deleting=True), claims=("n1", "x")),
        ["Warning FailedUpdate: failed to update PVC data-sample-x: ERR"],
    ),
    (
        "cloneset: scale up limited",
        lambda: cs.planned(cs.cloneset().replicas(4).scale(maxUnavailable=2), "2n!"),
        ["Warning ScaleUpLimited: scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 0"],
    ),
    (
        "cloneset: in place",
        lambda: cs.planned(cs.cloneset().in_place(), "3o"),
        [
            "Normal SuccessfulUpdatePodInPlace: successfully update pod sample-o1 in-place(revision sample-new)",
            "Warning FailedUpdatePodInPlace: failed to update pod sample-o1 in-place(revision sample-new): ERR",
        ],
    ),
    (
        "cloneset: recreate",
        lambda: cs.planned(cs.cloneset(), "3o"),
        [
            (
                "Normal SuccessfulUpdatePodReCreate: "
                "successfully patch pod sample-o1 specified-delete for update(revision sample-new)"
            ),
            (
                "Warning FailedUpdatePodReCreate: "
                "failed to patch pod specified-delete sample-o1 for update(revision sample-new): ERR"
            ),
        ],
    ),
    (
        "cloneset: pull ahead",
        lambda: cs.planned(cs.cloneset().replicas(5).in_place().paused(), "5o", pull_jobs=[]),
        [
            "Normal CreatedImagePullJob: created ImagePullJob sample-new-nginx for image: nginx:2",
            "Normal FailedCreateImagePullJob: failed to create ImagePullJob sample-new-nginx: ERR",
        ],
    ),
    (
        "statefulset: create",
        lambda: asts.planned(asts.sts(1).claims("data"), ""),
        [
            "Normal SuccessfulCreate: create Pod w-0 in StatefulSet w successful",
            "Warning FailedCreate: create Pod w-0 in StatefulSet w failed error: ERR",
            "Normal SuccessfulCreate: create Claim data-w-0 Pod w-0 in StatefulSet w success",
            "Warning FailedCreate: create Claim data-w-0 for Pod w-0 in StatefulSet w failed error: ERR",
            "Warning FailedCreate: create Pod w-0 in StatefulSet w failed error: failed to create PVC data-w-0: ERR",
        ],
    ),
    (
        "statefulset: claim of a pod that is there",
        lambda: asts.planned(asts.sts(1).claims("data"), asts.pods("0BP", claims=["data"])),
        [
            "Normal SuccessfulCreate: create Claim data-w-0 Pod w-0 in StatefulSet w success",
            "Warning FailedCreate: create Claim data-w-0 for Pod w-0 in StatefulSet w failed error: ERR",
        ],
    ),
    (
        "statefulset: claim on its way out",
        lambda: asts.planned(asts.sts(1).claims("data"), "", claims=[asts.claim("data-w-0", deleting=True)]),
        ["Warning FailedCreate: create Pod w-0 in StatefulSet w failed error: pvc data-w-0 is to be deleted"],
    ),
    (
        "statefulset: repair",
        lambda: asts.planned(asts.sts(1), [asts.pod(0, labels={"statefulset.kubernetes.io/pod-name": "x"})]),
        [
            "Normal SuccessfulUpdate: update Pod w-0 in StatefulSet w successful",
            "Warning FailedUpdate: update Pod w-0 in StatefulSet w failed error: ERR",
        ],
    ),
    (
        "statefulset: delete",
        lambda: asts.planned(asts.sts(1), "0B 1B"),
        [
            "Normal SuccessfulDelete: delete Pod w-1 in StatefulSet w successful",
            "Warning FailedDelete: delete Pod w-1 in StatefulSet w failed error: ERR",
            "Warning FailedDelete: failed to delete pod w-1: ERR",
        ],
    ),
    (
        "statefulset: resize",
        growing,
        [
            "Normal SuccessfulResize: resize Claim data-w-0 Pod w-0 in StatefulSet w success",
            "Warning FailedResize: resize Claim data-w-0 for Pod w-0 in StatefulSet w failed error: ERR",
        ],
    ),
    (
        "statefulset: resize impossible",
        lambda: growing(modes=["ReadWriteMany"]),
        [
            (
                "Warning FailedUpdatePVC: failed to update pvc data-w-0: "
                "contains diff other than spec resource, wait pvc to be deleted"
            )
        ],
    ),
    (
        "statefulset: in place, pulled ahead",
        lambda: asts.planned(
            asts.sts(4).in_place(), "0A 1A 2A 3A", gates="PreDownloadImageForInPlaceUpdate=true", pull_jobs=[]
        ),
        [
            "Normal SuccessfulUpdatePodInPlace: successfully update pod w-3 in-place(revision w-B)",
            "Warning FailedUpdatePodInPlace: failed to update pod w-3 in-place(revision w-B): ERR",
            "Normal CreatedImagePullJob: created ImagePullJob w-B-main for image: shop:B",
            "Normal FailedCreateImagePullJob: failed to create ImagePullJob w-B-main: ERR",
        ],
    ),
    (
        "daemonset: delete",
        lambda: ads.planned(ads.ds(), "1B 2B 2B", on=2),
        ["Normal SuccessfulDelete: Deleted pod: d-2B2", "Warning FailedDelete: Error deleting: ERR"],
    ),
    (
        "daemonset: failed pod",
        lambda: ads.planned(ads.ds(), "1BF", on=1),
        [
            "Warning FailedDaemonPod: Found failed daemon pod default/d-1B0 on node n1, will try to kill it",
            "Normal SuccessfulDelete: Deleted pod: d-1B0",
            "Warning FailedDelete: Error deleting: ERR",
        ],
    ),
    (
        "daemonset: in place, pulled ahead",
        lambda: ads.planned(ads.ds().in_place(), "1A 2A 3A 4A", on=4, pull_jobs=[]),
        [
            "Normal SuccessfulUpdatePodInPlace: successfully update pod d-4A3 in-place",
            "Warning FailedUpdatePodInPlace: failed to update pod d-4A3 in-place(revision d-B): ERR",
            "Normal CreatedImagePullJob: created ImagePullJob d-B-main for image: agent:B",
            "Normal FailedCreateImagePullJob: failed to create ImagePullJob d-B-main: ERR",
        ],
    ),
    (
        "daemonset: selector",
        lambda: ads.planned(ads.ds().set(selector={}), ""),
        ["Warning SelectingAll: This DaemonSet is selecting all pods. A non-empty selector is required."],
    ),
]


@pytest.mark.parametrize(("plan", "expected"), [pytest.param(plan, rows, id=name) for name, plan, rows in EVENTS])
def test_events(plan: Callable[[], Plan], expected: list[str]) -> None:
    assert events(plan()) == set(expected)


def test_events_of_creates_that_hold_names_and_bodies() -> None:
    plan = cs.planned(cs.cloneset().replicas(1).claims("data"), "")
    claim, pod = (one for one in actions(plan) if isinstance(one, Create))
    bodies = [msgspec.json.encode(one.body).decode() for one in (claim, pod)]
    assert events(plan) == {
        f"Normal SuccessfulCreate: succeed to create pod {pod.name}",
        f"Warning FailedCreate: failed to create pvc: ERR, pvc: {bodies[0]}",
        f"Warning FailedCreate: failed to create pod: ERR, pod: {bodies[1]}",
    }
    plan = ads.planned(ads.ds(), "", on=1)
    (pod,) = (one for one in actions(plan) if isinstance(one, Create))
    assert events(plan) == {
        f"Normal SuccessfulCreate: Created pod: {pod.name}",
        "Warning FailedCreate: Error creating: ERR",
    }


def overdue(found: list[Pod]) -> Plan:
    """Plan a CloneSet that has exceeded its progress deadline."""
    stored = [cs.condition("CloneSetUpdated", cs.LONG_AGO)]
    builder = cs.cloneset().replicas(1).deadline(60).stored(currentRevision="sample-new", conditions=stored)
    return cs.planned(builder, found)


def unpullable() -> Pod:
    """Return a pod with an error that users have to fix."""
    document = msgspec.to_builtins(cs.pod("n1", ready=False))
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    document["status"]["containerStatuses"][0]["state"] = {"waiting": waiting}
    return msgspec.convert(document, Pod)


CONDITIONS: list[tuple[str, Callable[[], Plan], str, list[str]]] = [
    (
        "available",
        lambda: cs.planned(cs.cloneset().deadline(60).stored(currentRevision="sample-new"), "3n"),
        "CloneSet",
        ["Progressing True CloneSetAvailable: CloneSet is available"],
    ),
    (
        "paused",
        lambda: cs.planned(cs.cloneset().deadline(60).paused(), "3o"),
        "CloneSet",
        ["Progressing True CloneSetPaused: CloneSet is paused"],
    ),
    (
        "partition",
        lambda: cs.planned(cs.cloneset().deadline(60).partition(3), "3o"),
        "CloneSet",
        ["Progressing True ProgressPartitionAvailable: CloneSet has been paused due to partition ready"],
    ),
    (
        "at work",
        lambda: cs.planned(cs.cloneset().deadline(60), "3o"),
        "CloneSet",
        ["Progressing True CloneSetUpdated: CloneSet is progressing"],
    ),
    (
        "timed out, for a reason",
        lambda: overdue([unpullable()]),
        "CloneSet",
        ["Progressing False ProgressDeadlineExceeded: CloneSet revision sample-new has timed out progressing"],
    ),
    (
        "failures of a CloneSet",
        lambda: cs.planned(cs.cloneset(), "3o", failures={"scale": "no room", "update": "no way"}),
        "CloneSet",
        ["FailedScale True: no room", "FailedUpdate True: no way"],
    ),
    (
        "failures of a StatefulSet",
        lambda: asts.planned(asts.sts(1), "0B", failures={"create": "no room", "repair": "no way"}),
        "StatefulSet",
        [
            "FailedCreatePod True: StatefulPodControl failed to create Pod error: no room",
            "FailedUpdatePod True: StatefulPodControl failed to update Pod error: no way",
        ],
    ),
    (
        "failure of a claim",
        lambda: asts.planned(asts.sts(1), "0B", failures={"claim data-w-0": "no room"}),
        "StatefulSet",
        ["FailedCreatePod True: StatefulPodControl failed to create Pod error: failed to create PVC data-w-0: no room"],
    ),
    (
        "claim on its way out",
        lambda: asts.planned(asts.sts(1).claims("data"), "", claims=[asts.claim("data-w-0", deleting=True)]),
        "StatefulSet",
        ["FailedCreatePod True: StatefulPodControl failed to create Pod error: pvc data-w-0 is to be deleted"],
    ),
]


@pytest.mark.parametrize(
    ("plan", "kind", "expected"), [pytest.param(plan, kind, rows, id=name) for name, plan, kind, rows in CONDITIONS]
)
def test_conditions(plan: Callable[[], Plan], kind: str, expected: list[str]) -> None:
    assert conditions(plan(), kind) == set(expected)


def test_the_cause_of_a_rollout_that_takes_too_long_is_told_beside_its_condition() -> None:
    plan = overdue([unpullable()])
    cause = "sample-n1: image nginx:2 of container nginx cannot be pulled (ErrImagePull): not found"
    told = f"CloneSet revision sample-new has timed out progressing: {cause}"
    assert f"Warning ProgressDeadlineExceeded: {told}" in events(plan)
    assert ("ProgressDeadlineExceeded", told) in {(one.code, one.message) for one in plan.reasons}


def test_what_cannot_be_updated_in_place_fails_with_the_text_that_is_fixed() -> None:
    """It becomes condition FailedUpdate of a CloneSet."""
    other = cs.template(dnsPolicy="Default")
    builder = cs.cloneset().in_place(only=True).template(other)
    plan = cs.planned(builder, "3o", revisions=cs.revisions(new=other))
    text = "find Pod sample-o1 update strategy is InPlaceOnly but can not update in-place"
    assert plan.errors == (("update", text),)
    revisions = [asts.revision("A", 1), asts.revision("B", 2, asts.template("B", dnsPolicy="Default"))]
    stateful = asts.sts(1).in_place(only=True).set(template=asts.template("B", dnsPolicy="Default"))
    failed = asts.planned(stateful, "0A", revisions=revisions)
    assert failed.errors == (("update", "find strategy is InPlaceOnly but Pod w-0 can not update in-place"),)
    strange = cs.planned(cs.cloneset().replicas(1).in_place(), "1o:Strange")
    assert strange.errors == (("update", "not allowed to in-place update pod sample-o1 in state Strange"),)
