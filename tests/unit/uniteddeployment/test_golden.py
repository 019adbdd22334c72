"""UnitedDeployments as OpenKruise left them: the names of revisions, and that nothing is written to them."""

from datetime import UTC, datetime

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset import api as cloneset
from flotilla_common.api.kinds.statefulset import api as statefulset
from flotilla_common.api.kinds.uniteddeployment.types import UnitedDeployment
from flotilla_common.api.workload import Workload
from flotilla_common.control.plan import Plan
from flotilla_common.workload.hashing import revision_hash
from flotilla_topology.uniteddeployment import revisions as recipe
from flotilla_topology.uniteddeployment.plan import plan
from flotilla_topology.uniteddeployment.snapshot import UnitedDeploymentSnapshot
from tests.testkit.documents import Json, decoded
from tests.testkit.plans import code_list
from tests.unit.uniteddeployment.build import intents
from tests.unit.workload.openkruise import encoded, owned, revisions, stored, stored_revisions

NOW = datetime(2026, 11, 23, 8, 0, 0, tzinfo=UTC)
CHILDREN = {"CloneSet": "clonesets", "AdvancedStatefulSet": "statefulsets"}


def planned(document: Json) -> Plan:
    name = document["metadata"]["name"]
    workloads = {kind: owned(file, name, Workload) for kind, file in CHILDREN.items()}
    children = [child.metadata for found in workloads.values() for child in found]
    return plan(
        UnitedDeploymentSnapshot(
            owner=decoded(document, UnitedDeployment),
            workloads=workloads,
            pods={child.uid: owned("pods", child.name, Pod) for child in children},
            revisions=stored_revisions("UnitedDeployment", name),
        ),
        NOW,
    )


@pytest.mark.parametrize("revision", revisions("UnitedDeployment"), ids=lambda one: one["metadata"]["name"])
def test_names_of_revisions(revision: Json) -> None:
    data = recipe.canonical(encoded(revision["data"]))
    assert msgspec.json.decode(data) == revision["data"]
    owner, _, found = revision["metadata"]["name"].rpartition("-")
    assert (owner, revision_hash(data, 0)) == (revision["metadata"]["ownerReferences"][0]["name"], found)


@pytest.mark.parametrize("name", ["ud", "ud-asts"])
def test_nothing_is_written_when_they_are_taken_over(name: str) -> None:
    made = planned(stored("uniteddeployments", name))
    assert (intents(made), made.status, code_list(made)) == ([], None, [])


def test_a_rollback_after_the_take_over_finds_the_unlabelled_revision() -> None:
    document = stored("uniteddeployments", "ud")
    template = document["spec"]["template"]["cloneSetTemplate"]["spec"]["template"]
    template["spec"]["containers"][0]["image"] = "nginx:1.21"
    made = planned(document)
    assert intents(made)[:1] == ["revision ControllerRevision"]
    (written,) = [action for action in made.actions if action.resource.kind == "ControllerRevision"]
    assert (written.verb, written.name) == ("patch", "ud-79849fd8bc")


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("CloneSetSpec", cloneset.version("v1beta1").spec),
        ("AdvancedStatefulSetSpec", statefulset.version("v1beta1").spec),
    ],
)
def test_the_types_of_our_own_kinds_have_all_their_fields(name: str, schema: Json) -> None:
    """A field that is missing there would be left out of revisions, and its change would roll nothing."""
    missing = [path for path in paths(schema) if not has(name, path)]
    assert missing == []


def paths(schema: Json) -> list[tuple[str, ...]]:
    """Return the paths of all fields that the schema names; pod templates and claims are the apiserver's."""
    inner = schema.get("items", schema)
    found: list[tuple[str, ...]] = []
    for key, part in inner.get("properties", {}).items():
        found += [(key,), *((key, *path) for path in paths(part))]
    return found


def has(name: str, path: tuple[str, ...]) -> bool:
    """Report whether the path is in the types."""
    types = recipe.types()
    members = {member: kind for member, _, kind in types.get(name, [])}
    first, *rest = path
    if first not in members:
        return False
    return not rest or has(members[first].removeprefix("[]"), tuple(rest))
