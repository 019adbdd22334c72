"""EphemeralJobs as kubectl writes and reads them: refusals with their texts (ephemeraljob.md §1 to §3)."""

from tests.support.ephemeral import NAME, container, ephemeraljob, reached
from tests.support.workspace import Workspace
from tests.testkit.documents import Json


def without(field: str) -> Json:
    """Return a container that lacks a field."""
    return {key: value for key, value in container(NAME).items() if key != field}


def test_refusals(space: Workspace):
    """Row 23, and every field that an ephemeral container cannot have."""
    named = container(NAME)
    path = "ephemeralContainers[0]"
    rows: list[tuple[list[Json], str]] = [
        ([without("name")], f"{path}.name: Required value"),
        ([named | {"name": "No"}], f"{path}.name: Invalid value"),
        ([named, named], "ephemeralContainers[1].name: Duplicate value"),
        ([without("image")], f"{path}.image: Required value"),
        ([named | {"image": " a"}], "must not have leading or trailing whitespace"),
        ([without("terminationMessagePolicy")], f"{path}.terminationMessagePolicy: Required value"),
        ([named | {"terminationMessagePolicy": "Log"}], f"{path}.terminationMessagePolicy: Unsupported value"),
        ([without("imagePullPolicy")], f"{path}.imagePullPolicy: Required value"),
        ([named | {"imagePullPolicy": "Often"}], f"{path}.imagePullPolicy: Unsupported value"),
        ([named | {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}], "cannot be set for an Ephemeral Container"),
        ([named | {"resources": {"limits": {"cpu": "1"}}}], f"{path}.resources: Forbidden"),
        ([named | {"ports": [{"containerPort": 80}]}], f"{path}.ports: Forbidden"),
        (
            [named | {"volumeMounts": [{"name": "a", "mountPath": "/a", "subPath": "b"}]}],
            "cannot be set for an Ephemeral Container",
        ),
    ]
    for containers, message in rows:
        said = space.refuses(ephemeraljob(containers=containers))
        assert message in said


def test_an_empty_template_is_taken_and_told_of(space: Workspace):
    space.apply(ephemeraljob(containers=[]))
    told = {one["type"]: one.get("message") for one in reached(space, phase="Error")["conditions"]}
    assert told["JobError"] == "job spec invalid fields."


def test_nothing_is_defaulted(space: Workspace):
    """And it has one version only."""
    document = ephemeraljob(paused=True)
    assert space.apply(document)["spec"] == document["spec"]
    reached(space, phase="Paused")
    assert space.read("ejob", NAME)["spec"] == document["spec"]
    beta = document | {"apiVersion": "apps.kruise.io/v1beta1"}
    assert "no matches for kind" in space.refuses(beta)
    assert "ephemeralContainers" in space.kubectl("explain", "ejob.spec.template")
