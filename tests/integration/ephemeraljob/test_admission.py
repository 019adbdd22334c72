"""EphemeralJobs as kubectl writes and reads them: refusals with their texts (ephemeraljob.md §1 to §3)."""

from tests.support.ephemeral import NAME, container, ephemeraljob, reached
from tests.support.workspace import Workspace
from tests.testkit.documents import Json


def test_refusals(space: Workspace):
    """Row 23: fields that are missing, and fields that an ephemeral container cannot have."""
    named, path = container(NAME), "ephemeralContainers[0]"
    rows: list[tuple[list[Json], str]] = [
        ([named, named], "ephemeralContainers[1].name: Duplicate value"),
        ([named | {"imagePullPolicy": "Often"}], f"{path}.imagePullPolicy: Unsupported value"),
        ([named | {"ports": [{"containerPort": 80}]}], f"{path}.ports: Forbidden"),
    ]
    for containers, message in rows:
        said = space.refuses(ephemeraljob(containers=containers))
        assert message in said


def test_nothing_is_defaulted(space: Workspace):
    """And it has one version only."""
    document = ephemeraljob(paused=True)
    assert space.apply(document)["spec"] == document["spec"]
    reached(space, phase="Paused")
    assert space.read("ejob", NAME)["spec"] == document["spec"]
    beta = document | {"apiVersion": "apps.kruise.io/v1beta1"}
    assert "no matches for kind" in space.refuses(beta)
    assert "ephemeralContainers" in space.kubectl("explain", "ejob.spec.template")
