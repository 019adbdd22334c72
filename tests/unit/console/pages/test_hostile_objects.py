"""Pages of hostile objects: each object is shown or set aside, and harms no other one.

`OBJECTS` by default; FLOTILLA_HOSTILE sets the number.
"""

import random
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mapping
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import DEPLOYMENT, JOB, POD, REVISION, Resource
from flotilla_console.model.kinds import KINDS
from flotilla_console.model.kinds.kind import ConsoleKind
from flotilla_console.pages import fleet, pod, workload
from tests.support.hostile.amount import amount
from tests.support.hostile.documents import Documents
from tests.support.hostile.reviews import schema_of
from tests.support.hostile.stored import Typed
from tests.support.hostile.values import Values
from tests.support.timing import measured
from tests.unit.console.model.worlds import World, column, owned_by, table

OBJECTS = 150
MOST_SECONDS = 1.0
_OURS = [kind for kind in catalogue.KINDS if not kind.made_by_us]


def _documents(dice: random.Random) -> Documents:
    return Documents(Values(dice, dice.choice((0.0, 0.01, 0.05, 0.3)), 20_000), dice.choice((0.1, 0.3, 0.7)))


def _drawn(dice: random.Random, number: int) -> tuple[Resource, Json]:
    """Return an object of one of our kinds, or of Kubernetes with a spec and status of ours."""
    kind = dice.choice(_OURS)
    drawn = _documents(dice).of_schema(schema_of(kind, kind.resource.version))
    document = mapping(drawn)
    resource = dice.choice((kind.resource, kind.resource, DEPLOYMENT, JOB))
    namespace = "shop" if resource.namespaced else ""
    meta = {"name": f"web-{number}", "namespace": namespace, "uid": f"uid-{number}"}
    return resource, {"spec": document.get("spec"), "status": document.get("status"), "metadata": meta}


@pytest.mark.timeout(7200)
def test_hostile_workloads_have_pages() -> None:
    dice = random.Random(0)
    for number in range(amount(OBJECTS)):
        world = World()
        resource, document = _drawn(dice, number)
        world.clone_set("fine")
        world.add(resource, document)
        place = {"group": resource.group, "plural": resource.plural, "name": f"web-{number}"}
        with measured() as seconds:
            shown = workload.build(world.request(namespace="shop" if resource.namespaced else "-", **place))
            found = fleet.build(world.request(query={"kind": resource.id}))
            spent = seconds()
        assert shown is not None or world.sight().unreadable(), document
        assert spent < MOST_SECONDS, document
        msgspec.json.encode([shown, found])
        assert "fine" in column(table(fleet.build(world.request()), "workloads"), "name")


@pytest.mark.timeout(7200)
def test_hostile_pods_and_revisions_have_pages() -> None:
    dice = random.Random(1)
    for number in range(amount(OBJECTS)):
        world = World()
        world.clone_set()
        drawn = Typed(_documents(dice)).of(inspect.type_info(Pod))
        document = mapping(drawn)
        meta = {
            "name": "web-1",
            "namespace": "shop",
            "uid": f"uid-{number}",
            "ownerReferences": [owned_by(CLONE_SET, "web")],
        }
        world.add(POD, {"spec": document.get("spec"), "status": document.get("status"), "metadata": meta})
        for name in ("web-1", "web-2"):
            data = {"spec": {"template": document}}
            world.add(REVISION, {"metadata": meta | {"name": name, "uid": name}, "data": data})
        shown = workload.build(world.request(group="apps.kruise.io", plural="clonesets", namespace="shop", name="web"))
        assert shown is not None
        found = pod.build(world.request(namespace="shop", name="web-1"))
        assert found is not None or world.sight().unreadable(), document
        msgspec.json.encode([shown, found])


WRONG: tuple[Any, ...] = (None, 7, "x", [], {}, [None], {"a": None}, 10**30, True)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.resource.id)
def test_members_of_wrong_types_read_as_empty(kind: ConsoleKind) -> None:
    members = (
        *("replicas", "template", "updateStrategy", "selector", "conditions", "subsetStatuses", "failedNodes"),
        *("active", "containers", "images", "probes", "failedImageStatuses", "podStates", "targetRef", "schedule"),
    )
    for wrong in WRONG:
        document = dict.fromkeys(members, wrong)
        assert kind.read(document, document).images is not None
        nested = {member: {"rollingUpdate": document, "spec": document, "a": document} for member in members}
        assert kind.read(nested, document).images is not None
