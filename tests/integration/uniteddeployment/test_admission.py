"""UnitedDeployments through a real apiserver and the webhook: both versions, refusals in words, protection."""

import json

from tests.support.united import NAME, children, replicas_of, settled, united
from tests.support.workspace import Workspace
from tests.testkit.documents import Json


def test_the_first_version_shows_its_own_status(space: Workspace) -> None:
    """§2.2: scripts read `subsetReplicas` and `updateStatus`."""
    space.apply(united(4, "ab", version="v1alpha1", partitions={"a": 1}))
    settled(space, 4)
    status = space.read("uniteddeployments.v1alpha1.apps.kruise.io", NAME)["status"]
    assert status["subsetReplicas"] == {"a": 2, "b": 2}
    assert status["updateStatus"] == {
        "currentPartitions": {"a": 1, "b": 0},
        "updatedRevision": status["currentRevision"],
    }
    line = space.kubectl("get", "ud", NAME, "--no-headers").split()
    assert line[:5] == [NAME, "4", "4", "4", "4"]


def test_the_flat_layout_of_clone_sets_in_the_first_version(space: Workspace) -> None:
    """§2: manifests for OpenKruise 1.8 keep their update strategy."""
    manifest = united(2, "ab", version="v1alpha1")
    flat = {"type": "InPlaceIfPossible", "maxUnavailable": 1, "partition": 0}
    manifest["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] = flat
    space.apply(manifest)
    settled(space, 2)
    strategy = children(space)["a"]["spec"]["updateStrategy"]
    assert strategy["rollingUpdate"]["podUpdatePolicy"] == "InPlaceIfPossible"
    assert strategy["rollingUpdate"]["maxUnavailable"] == 1
    stored: Json = space.clone(NAME)["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"]
    assert "maxUnavailable" not in stored


def test_refusals_name_the_field(space: Workspace) -> None:
    """Refuse new objects, and changes to a subset that are not allowed."""
    twice: Json = {"topology": {"subsets": [{"name": "a"}, {"name": "a"}]}}
    nobody: Json = {"updateStrategy": {"manualUpdate": {"partitions": {"z": 1}}}}
    changes = [
        ({"template": {}}, "spec.template"),
        (twice, "spec.topology.subsets[1]"),
        (nobody, "subset z does not exist"),
    ]
    for change, text in changes:
        manifest = united(4, "ab")
        manifest["spec"] |= change
        assert text in space.refuses(manifest)
    manifest = united(2, [{"name": "a", "tolerations": [{"key": "spot", "operator": "Exists"}]}, "b"])
    space.apply(manifest)
    manifest["spec"]["topology"]["subsets"][0]["tolerations"] = []
    assert "may not be changed in an update" in space.refuses(manifest, "apply")


def test_a_dry_run_of_everything_leaves_nothing(space: Workspace) -> None:
    space.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(united()))
    assert replicas_of(space) == {}
