"""Claims: created with their pods, kept or deleted by the policy (statefulset.md §8.5)."""

from collections.abc import Callable

from tests.support.stateful import statefulset
from tests.support.workspace import Workspace
from tests.testkit.documents import Json

OF_THE_SET = {"data-web-0": ["StatefulSet"], "data-web-1": ["StatefulSet"]}


def claims(space: Workspace) -> dict[str, Json]:
    return {item["metadata"]["name"]: item for item in space.read("pvc")["items"]}


def uids(space: Workspace) -> dict[str, str]:
    return {name: claim["metadata"]["uid"] for name, claim in claims(space).items()}


def owners(space: Workspace) -> dict[str, list[str]]:
    """Return the kinds of the owners of each claim."""
    return {
        name: [one["kind"] for one in claim["metadata"].get("ownerReferences", [])]
        for name, claim in claims(space).items()
    }


def until(space: Workspace, look: Callable[[], object], wanted: object) -> None:
    space.until(lambda: look() == wanted)


def retention(deleted: str, scaled: str) -> Json:
    return {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}


def test_claims_are_made_kept_and_go_with_the_set(space: Workspace):
    """By default they outlive their pods; a changed policy reaches the claims of running pods."""
    space.apply(statefulset(2, claims=["data"]))
    status = space.settled("web", readyReplicas=2)
    assert claims(space).keys() == {"data-web-0", "data-web-1"}
    volumes = {one["name"]: one for one in space.pod("web-1")["spec"]["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == "data-web-1"
    space.event("SuccessfulCreate", "create Claim data-web-1 Pod web-1 in StatefulSet web success")
    assert status["volumeClaims"] == [
        {"volumeClaimName": "data", "compatibleReplicas": 2, "compatibleReadyReplicas": 2}
    ]
    before = uids(space)
    space.scale(1, "web")
    space.settled("web", replicas=1)
    space.scale(2, "web")
    space.settled("web", readyReplicas=2, replicas=2)
    assert uids(space) == before

    space.patch({"spec": retention("Delete", "Delete")}, "web")
    until(space, lambda: owners(space), OF_THE_SET)
    space.patch({"spec": retention("Retain", "Retain")}, "web")
    until(space, lambda: owners(space), {name: [] for name in OF_THE_SET})
    space.patch({"spec": retention("Delete", "Retain")}, "web")
    until(space, lambda: owners(space), OF_THE_SET)
    space.kubectl("delete", "asts", "web")
    until(space, lambda: claims(space), {})


def test_a_claim_stays_when_its_ordinal_is_wanted_again(space: Workspace):
    """Scaled in and out while the pod ends: garbage collection must not take the claim with the pod.

    It does when the pod is scaled away for good.
    """
    space.apply(statefulset(2, claims=["data"], **retention("Retain", "Delete")))
    space.settled("web", readyReplicas=2)
    before = uids(space)
    space.set_finalizers("web-1", "example.com/hold")
    space.scale(1, "web")
    until(space, lambda: owners(space)["data-web-1"], ["Pod"])
    space.scale(2, "web")
    until(space, lambda: owners(space)["data-web-1"], [])
    space.set_finalizers("web-1")
    space.settled("web", readyReplicas=2)
    assert uids(space) == before
    space.scale(1, "web")
    until(space, lambda: list(claims(space)), ["data-web-0"])
