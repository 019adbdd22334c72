"""Claims of numbered pods: we never delete one. Who goes with a pod is said before the pod goes, and only of pods that
are not wanted (statefulset.md §4.9)."""

from collections.abc import Iterator

from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Json
from tests.simulation.oracles.scene import Scene, Step, Workload
from tests.simulation.oracles.terms import Numbered


def never_deleted(scene: Scene, step: Step) -> Iterator[str]:
    """Only garbage collection deletes claims."""
    del scene
    if step.ours and step.version.resource == CLAIM and step.marked_deleted:
        yield f"deletes {step.version.name}"


def wanted_ones_stay(scene: Scene, step: Step) -> Iterator[str]:
    """No claim is tied to a pod that is wanted."""
    workload, version = step.workload, step.version
    if workload is None or not step.ours or version.resource != CLAIM or version.after is None:
        return
    tied = _pods(version.after) - _pods(version.before or {})
    lately = workload.numbered_lately(scene.since)
    if tied and all(one.of_claim(version.name) in one.ordinals for one in lately):
        yield f"ties {version.name} to a pod that is wanted"


def tied_before_they_go(scene: Scene, step: Step) -> Iterator[str]:
    """When we delete a pod that is not wanted, its claims say whom they go with."""
    workload, before = step.workload, step.before
    if workload is None or before is None or not step.ours or not step.marked_deleted:
        return
    texts: list[str] = []
    for one in workload.numbered_lately(scene.since):
        wrong = [] if one.of(step.version.name) in one.ordinals else list(_untied(scene, workload, one, step))
        if not wrong:
            return
        texts.append(f"deletes {step.version.name}, whose claims are not tied as the policy says: {wrong}")
    yield from texts[-1:]


def not_of_earlier_pods(scene: Scene, step: Step) -> Iterator[str]:
    """No pod is made on a claim that is to go with an earlier pod of its name."""
    workload = step.workload
    if workload is None or not step.makes_a_pod:
        return
    for one in workload.numbered_lately(scene.since):
        if not waits_for_claims(scene, workload, one, one.of(step.version.name), step.version.uid):
            return
    yield f"makes {step.version.name} on claims that are to go with an earlier pod"


def waits_for_claims(scene: Scene, workload: Workload, one: Numbered, ordinal: int, uid: str = "") -> bool:
    """Claims of the ordinal are to go with an earlier pod than that of the uid."""
    return one.with_pod and any(_pods(claim) - {uid} for claim in _claims_of(scene, workload, one, ordinal))


def _untied(scene: Scene, workload: Workload, one: Numbered, step: Step) -> Iterator[str]:
    wanted = {step.version.uid} if one.with_pod else {workload.uid} if one.with_set else set[str]()
    for claim in _claims_of(scene, workload, one, one.of(step.version.name)):
        owners = {str(owner["uid"]) for owner in claim["metadata"].get("ownerReferences", ())}
        if owners & {step.version.uid, workload.uid} != wanted:
            yield claim["metadata"]["name"]


def _claims_of(scene: Scene, workload: Workload, one: Numbered, ordinal: int) -> list[Json]:
    claims = (claim for claim in scene.claims.values() if claim["metadata"]["namespace"] == workload.namespace)
    return [claim for claim in claims if one.of_claim(claim["metadata"]["name"]) == ordinal]


def _pods(claim: Json) -> set[str]:
    owners: list[Json] = claim.get("metadata", {}).get("ownerReferences") or []
    return {str(owner["uid"]) for owner in owners if owner["kind"] == POD.kind}
