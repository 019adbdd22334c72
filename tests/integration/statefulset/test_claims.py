"""Claims: created with their pods, kept or deleted by the policy (statefulset.md §8.5)."""

from collections.abc import Callable

from tests.support.stateful import claim_template, statefulset
from tests.support.workspace import Workspace
from tests.testkit.documents import Json


def claims(space: Workspace) -> dict[str, Json]:
    return {item["metadata"]["name"]: item for item in space.read("pvc")["items"]}


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


def test_claims_are_made_mounted_and_kept(space: Workspace):
    space.apply(statefulset(2, claims=["data", "log"]))
    space.settled("web", readyReplicas=2)
    assert claims(space).keys() == {"data-web-0", "data-web-1", "log-web-0", "log-web-1"}
    volumes = {one["name"]: one for one in space.pod("web-1")["spec"]["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == "data-web-1"
    space.event("SuccessfulCreate", "create Claim data-web-1 Pod web-1 in StatefulSet web success")
    status = space.settled("web")
    assert status["volumeClaims"] == [
        {"volumeClaimName": name, "compatibleReplicas": 2, "compatibleReadyReplicas": 2} for name in ("data", "log")
    ]
    before = {name: claim["metadata"]["uid"] for name, claim in claims(space).items()}
    space.scale(1, "web")
    space.settled("web", replicas=1)
    space.scale(2, "web")
    space.settled("web", readyReplicas=2, replicas=2)
    assert {name: claim["metadata"]["uid"] for name, claim in claims(space).items()} == before
    space.kubectl("delete", "asts", "web")
    until(space, lambda: len(space.pods), 0)
    assert claims(space).keys() == before.keys()


def test_claims_go_with_the_set(space: Workspace):
    space.apply(statefulset(2, claims=["data"], **retention("Delete", "Retain")))
    space.settled("web", readyReplicas=2)
    assert owners(space) == {"data-web-0": ["StatefulSet"], "data-web-1": ["StatefulSet"]}
    space.scale(1, "web")
    space.settled("web", replicas=1)
    assert claims(space).keys() == {"data-web-0", "data-web-1"}
    space.kubectl("delete", "asts", "web")
    until(space, lambda: claims(space), {})


def test_claims_go_with_pods_that_are_scaled_away(space: Workspace):
    space.apply(statefulset(3, claims=["data"], **retention("Retain", "Delete")))
    space.settled("web", readyReplicas=3)
    first = claims(space)["data-web-1"]["metadata"]["uid"]
    space.scale(1, "web")
    until(space, lambda: list(claims(space)), ["data-web-0"])
    space.scale(2, "web")
    space.settled("web", readyReplicas=2, replicas=2)
    assert claims(space)["data-web-1"]["metadata"]["uid"] != first
    assert owners(space) == {"data-web-0": [], "data-web-1": []}


def test_a_reserved_ordinal_takes_its_claim_along(space: Workspace):
    space.apply(statefulset(2, claims=["data"], **retention("Delete", "Delete")))
    space.settled("web", readyReplicas=2)
    space.patch({"spec": {"reserveOrdinals": [0]}}, "web")
    space.settled("web", readyReplicas=2, replicas=2)
    until(space, lambda: set(claims(space)), {"data-web-1", "data-web-2"})


def test_a_changed_policy_reaches_the_claims_of_running_pods(space: Workspace):
    space.apply(statefulset(2, claims=["data"], **retention("Retain", "Retain")))
    space.settled("web", readyReplicas=2)
    space.patch({"spec": retention("Delete", "Delete")}, "web")
    until(space, lambda: owners(space), {"data-web-0": ["StatefulSet"], "data-web-1": ["StatefulSet"]})
    space.patch({"spec": retention("Retain", "Retain")}, "web")
    until(space, lambda: owners(space), {"data-web-0": [], "data-web-1": []})


def test_an_added_template_reaches_the_pods_by_a_rolling_update(space: Workspace):
    space.apply(statefulset(2, claims=["data"]))
    space.settled("web", readyReplicas=2)
    before = {pod["metadata"]["uid"] for pod in space.pods.values()}
    templates = [claim_template("data"), claim_template("log")]
    space.patch({"spec": {"volumeClaimTemplates": templates}}, "web")
    until(space, lambda: claims(space).keys(), {"data-web-0", "data-web-1", "log-web-0", "log-web-1"})
    space.settled("web", readyReplicas=2, replicas=2)
    assert not before & {pod["metadata"]["uid"] for pod in space.pods.values()}
    assert space.warnings_so_far("FailedUpdate") == []
    assert "conditions" not in space.status("web")


def test_a_claim_stays_when_its_ordinal_is_wanted_again(space: Workspace):
    """Scaled in and out while the pod ends: garbage collection must not take the claim with the pod."""
    space.apply(statefulset(2, claims=["data"], **retention("Retain", "Delete")))
    space.settled("web", readyReplicas=2)
    before = claims(space)["data-web-1"]["metadata"]["uid"]
    space.kubectl("patch", "pod", "web-1", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    space.scale(1, "web")
    until(space, lambda: owners(space)["data-web-1"], ["Pod"])
    space.scale(2, "web")
    until(space, lambda: owners(space)["data-web-1"], [])
    space.kubectl("patch", "pod", "web-1", "-p", '{"metadata":{"finalizers":null}}')
    space.settled("web", readyReplicas=2)
    assert claims(space)["data-web-1"]["metadata"]["uid"] == before
