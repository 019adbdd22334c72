"""Claims of StatefulSets: we never delete one (statefulset.md §4.9).

Owner references tie claims to a pod before it is deleted, and only to a pod that is not wanted.
"""

from collections.abc import Iterator

from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Json
from tests.simulation.oracles.terms import Numbered
from tests.simulation.oracles.view import Commit, View, Workload


def never_deleted(view: View, commit: Commit) -> Iterator[str]:
    """Check that only garbage collection deletes claims."""
    del view
    if commit.ours and commit.version.resource == CLAIM and commit.marked_deleted:
        yield f"deletes {commit.version.name}"


def wanted_ones_stay(view: View, commit: Commit) -> Iterator[str]:
    """Check that no claim is tied to a pod that is wanted."""
    workload, version = commit.workload, commit.version
    if workload is None or not commit.ours or version.resource != CLAIM or version.after is None:
        return
    tied = _pods(version.after) - _pods(version.before or {})
    lately = workload.recent_numbered(view.since)
    if tied and all(one.of_claim(version.name) in one.ordinals for one in lately):
        yield f"ties {version.name} to a pod that is wanted"


def tied_before_they_go(view: View, commit: Commit) -> Iterator[str]:
    """Check that, when we delete an unwanted pod, its claims are tied to their owner."""
    workload, before = commit.workload, commit.before
    if workload is None or before is None or not commit.ours or not commit.marked_deleted:
        return
    texts: list[str] = []
    for one in workload.recent_numbered(view.since):
        wrong = [] if one.of(commit.version.name) in one.ordinals else list(_untied(view, workload, one, commit))
        if not wrong:
            return
        texts.append(f"deletes {commit.version.name}, whose claims are not tied as the policy says: {wrong}")
    yield from texts[-1:]


def not_of_earlier_pods(view: View, commit: Commit) -> Iterator[str]:
    """Check that no pod is created on a claim that is tied to an earlier pod of its name."""
    workload = commit.workload
    if workload is None or not commit.makes_a_pod:
        return
    for one in workload.recent_numbered(view.since):
        if not waits_for_claims(view, workload, one, one.of(commit.version.name), commit.version.uid):
            return
    yield f"makes {commit.version.name} on claims that are to go with an earlier pod"


def waits_for_claims(view: View, workload: Workload, one: Numbered, ordinal: int, uid: str = "") -> bool:
    """Report whether claims of the ordinal are tied to an earlier pod than that of the uid."""
    return one.with_pod and any(_pods(claim) - {uid} for claim in _claims_of(view, workload, one, ordinal))


def _untied(view: View, workload: Workload, one: Numbered, commit: Commit) -> Iterator[str]:
    wanted = {commit.version.uid} if one.with_pod else {workload.uid} if one.with_set else set[str]()
    for claim in _claims_of(view, workload, one, one.of(commit.version.name)):
        owners = {str(owner["uid"]) for owner in claim["metadata"].get("ownerReferences", ())}
        if owners & {commit.version.uid, workload.uid} != wanted:
            yield claim["metadata"]["name"]


def _claims_of(view: View, workload: Workload, one: Numbered, ordinal: int) -> list[Json]:
    claims = (claim for claim in view.claims.values() if claim["metadata"]["namespace"] == workload.namespace)
    return [claim for claim in claims if one.of_claim(claim["metadata"]["name"]) == ordinal]


def _pods(claim: Json) -> set[str]:
    owners: list[Json] = claim.get("metadata", {}).get("ownerReferences") or []
    return {str(owner["uid"]) for owner in owners if owner["kind"] == POD.kind}
