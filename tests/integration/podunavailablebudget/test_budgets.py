"""Budgets as users see them with kubectl: what they count, and what they protect (podunavailablebudget.md §5 to §8)."""

import pytest

from flotilla_common.api.resources import CRD
from tests.support.spread import plain
from tests.support.workspace import Workspace, available
from tests.testkit.documents import Json, typed

PUB = "pub"
REFUSED = f'podunavailablebudget.policy.kruise.io "{PUB}" is forbidden: pub unavailable allowed is negative'
SELECTOR = {"matchLabels": {"app": "sample"}}
OURS = "apps.kruise.io/v1beta1"


def budget(version: str = "v1beta1", annotations: dict[str, str] | None = None, **spec: object) -> Json:
    if "targetRef" not in spec:
        spec["selector"] = SELECTOR
    return {
        "apiVersion": f"policy.kruise.io/{version}",
        "kind": "PodUnavailableBudget",
        "metadata": {"name": PUB, "annotations": annotations or {}},
        "spec": spec,
    }


def target(api_version: str, kind: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": "sample"}


def columns(space: Workspace) -> list[int]:
    """Return allowed, current, desired and total, as kubectl prints them."""
    line = space.kubectl("get", "pub", PUB, "--no-headers").split()
    return [int(word) for word in line[1:] if word.lstrip("-").isdigit()]


def shows(space: Workspace, *numbers: int) -> None:
    """Wait until the status has these counts; kubectl prints them."""
    fields = ("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas")
    space.until(lambda: [space.clone(PUB).get("status", {}).get(field) for field in fields] == list(numbers))
    space.until(lambda: columns(space) == list(numbers))  # of the new object, where it replaces one


def ready(space: Workspace) -> list[str]:
    return sorted(name for name, pod in space.pods.items() if available(pod))


def stamps(space: Workspace) -> set[tuple[str | None, ...]]:
    """Return the names of budgets that pods have, under both keys."""
    keys = ("pub.kruise.io/related-pub", "kruise.io/related-pub")
    found = [pod["metadata"].get("annotations", {}) for pod in space.pods.values()]
    return {tuple(one.get(key) for key in keys) for one in found}


KINDS = [
    pytest.param(OURS, "CloneSet", {}, (1, 3, 2, 3), id="CloneSet"),
    pytest.param("apps/v1", "Deployment", {}, (1, 3, 2, 3), id="Deployment"),
    pytest.param("v1", "ReplicationController", {"selector": {"app": "sample"}}, (1, 3, 2, 3), id="by its scale"),
    pytest.param("batch/v1", "Job", {}, (3, 3, 0, -1), id="Job, which has no scale"),
]


@pytest.mark.parametrize(("api_version", "kind", "spec", "shown"), KINDS)
def test_what_a_budget_counts(
    space: Workspace, api_version: str, kind: str, spec: Json, shown: tuple[int, int, int, int]
) -> None:
    """Selector and target both count; pods get the budget's name, also those that existed before it."""
    manifest = plain(api_version, kind, 3, **spec)
    if kind == "Job":
        template = manifest["spec"]["template"]
        template["spec"]["restartPolicy"] = "Never"
        manifest["spec"] = {"parallelism": 3, "template": template}
    space.apply(manifest)
    space.until(lambda: len(ready(space)) == 3)
    space.apply(budget(maxUnavailable=1))
    shows(space, *shown)
    space.until(lambda: stamps(space) == {(PUB, PUB)})
    space.kubectl("delete", "pub", PUB)
    space.apply(budget(maxUnavailable=1, targetRef=target(api_version, kind)))
    shows(space, *shown)


def test_a_budget_that_is_used_up(space: Workspace) -> None:
    """Follow examples 26 to 29 and 38: one pod may go, another may not until a new one is there."""
    space.apply(budget(maxUnavailable=1))
    space.event("NoPods", "No matching pods found")
    space.apply(plain(OURS, "CloneSet", 3))
    shows(space, 1, 3, 2, 3)
    space.until(lambda: len(ready(space)) == 3)
    first, second, _ = ready(space)
    space.set_finalizers(first, "test.example/stay")
    # Both at once: the CloneSet replaces the first pod within a second.
    said = space.refused("delete", "pod", first, second, "--wait=false")
    assert REFUSED in said
    assert f"pods are available and 2 must be; the budget is held by {first} (deletion" in said
    space.kubectl("delete", "pod", first, "--wait=false")
    space.set_finalizers(first)
    shows(space, 1, 3, 2, 3)
    space.until(lambda: "disruptedPods" not in space.clone(PUB)["status"])
    space.patch({"spec": {"maxUnavailable": 0}}, PUB)
    shows(space, 0, 3, 3, 3)
    assert REFUSED in space.refused("delete", "pod", second)
    space.annotate(second, "pub.kruise.io/no-protect=true")
    space.kubectl("delete", "pod", second)


def test_scaling_in_is_never_held_back(space: Workspace) -> None:
    """Let the workload's own deletions pass at once, and all of them when it is deleted (§9)."""
    space.apply(plain("apps/v1", "Deployment", 4))
    space.apply(budget(maxUnavailable=0))
    shows(space, 0, 4, 4, 4)
    space.kubectl("scale", "deployment/sample", "--replicas=2")
    space.until(lambda: len(space.pods) == 2)
    shows(space, 0, 2, 2, 2)
    space.kubectl("delete", "deployment", "sample")
    space.until(lambda: not space.pods)


def test_a_workload_that_nobody_knows_before(space: Workspace) -> None:
    """Count pods of a custom kind with a scale, without configuration (§5.3)."""
    plural, group = "games", f"{space.name}.example.com"
    properties = {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
    }
    names = {"plural": plural, "kind": "Game", "singular": "game"}
    definition = typed(
        CRD, f"{plural}.{group}", spec={"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    )
    space.apply(definition)
    try:
        space.kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{plural}.{group}")
        game = {"apiVersion": f"{group}/v1", "kind": "Game", "metadata": {"name": "sample"}, "spec": {"replicas": 2}}
        uid = space.apply(game)["metadata"]["uid"]
        reference = {"apiVersion": f"{group}/v1", "kind": "Game", "name": "sample", "uid": uid, "controller": True}
        for name in ("a", "b"):
            metadata = {"name": name, "labels": {"app": "sample"}, "ownerReferences": [reference]}
            containers = [{"name": "nginx", "image": "nginx:alpine"}]
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
            space.apply(pod)
        space.apply(budget(minAvailable="50%"))
        shows(space, 1, 2, 1, 2)
        space.apply(game | {"spec": {"replicas": 4}})
        shows(space, 0, 2, 2, 4)
    finally:
        space.kubectl("delete", "crd", f"{plural}.{group}", "--wait=false")


def test_both_versions(space: Workspace) -> None:
    """v1alpha1 has annotations for fields of v1beta1, and none of them is lost (§3)."""
    spec = {
        "protectOperations": ["EVICT"],
        "protectTotalReplicas": 9,
        "ignoredPodSelector": {"matchLabels": {"x": "y"}},
    }
    stored = space.apply(budget(maxUnavailable=1, **spec))["spec"]
    version = "podunavailablebudgets.v1alpha1.policy.kruise.io"
    old = space.write_back(version, PUB, lambda read: read["spec"].update(maxUnavailable=2))
    assert old["metadata"]["annotations"]["kruise.io/pub-protect-operations"] == "EVICT"
    assert old["metadata"]["annotations"]["pub.kruise.io/protect-total-replicas"] == "9"
    assert old["spec"].keys() == {"selector", "maxUnavailable"}
    assert space.read("pub", PUB)["spec"] == stored | {"maxUnavailable": 2}
    shows(space, 0, 0, 7, 9)


def test_refusals(space: Workspace) -> None:
    rows = [
        (budget(), "Required value: no maxUnavailable or minAvailable"),
        (budget(maxUnavailable="5"), 'spec.maxUnavailable: Invalid value: "5"'),
        (budget("v1alpha1", {"kruise.io/pub-protect-operations": "READ"}, maxUnavailable=1), "READ"),
    ]
    for document, message in rows:
        assert message in space.refuses(document)
    space.apply(budget(maxUnavailable=1))
    twin = budget(maxUnavailable=1) | {"metadata": {"name": "twin"}}
    said = space.refuses(twin)
    assert f"in conflict with other PodUnavailableBudget {PUB}" in said
    moved = {"spec": {"selector": {"matchLabels": {"app": "other"}}}}
    assert "cannot be modified" in space.refuses_patch("pub", PUB, moved)


def test_pods_of_a_budget_that_is_gone(space: Workspace) -> None:
    """Another budget protects the pods from then on, which is better than the specification requires (§5.2)."""
    space.apply(plain(OURS, "CloneSet", 2))
    space.apply(budget(maxUnavailable=0))
    shows(space, 0, 2, 2, 2)
    space.kubectl("delete", "pub", PUB)
    space.apply(budget(maxUnavailable=0) | {"metadata": {"name": "next"}})
    space.until(lambda: stamps(space) == {("next", "next")})
    assert 'podunavailablebudget.policy.kruise.io "next"' in space.refused("delete", "pod", ready(space)[0])
