"""The comparison of the bus with the apiserver, object by object."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import Affiliation
from flotilla_common.bus.nats import NatsBus
from flotilla_insight.doctor.gather.bus import Listed, compared
from tests.support.fake_bus import FakeBus
from tests.testkit.apiserver import FakeApi

FREE = Affiliation("-", "-", "-")
OWNED = Affiliation("CloneSet_apps_kruise_io", "17", "-")


class Held(NamedTuple):
    """A message that the stream holds."""

    subject: str
    rv: str = "5"
    op: str = "ADDED"
    to: str = ""


def pod(name: str, affiliation: Affiliation = OWNED) -> str:
    return subjects.pod("shop", name, affiliation)


def moved(name: str, to: str, rv: str = "5", former: Affiliation = FREE) -> Held:
    return Held(pod(name, former), rv, subjects.MOVED, to)


async def differences(resource: Resource, held: list[Held], listed: Listed) -> dict[str, Sequence[str]]:
    """Return what differs between these messages and the objects of the apiserver."""
    bus = FakeBus()
    await bus.ensure_stream(subjects.kube_stream(resource))
    await bus.publish(subjects.kube_marker(resource), b"{}")
    for one in held:
        headers = {subjects.OP: one.op, subjects.RV: one.rv} | ({subjects.TO: one.to} if one.to else {})
        await bus.publish(one.subject, b"{}", headers)
    found = (await compared(FakeApi().api, cast("NatsBus", bus), {resource: listed}))[resource.id]
    assert found.compared == len(listed.objects)
    parts = {"missing": found.missing, "stale": found.stale, "ghosts": found.ghosts}
    return {name: part for name, part in parts.items() if part}


def listed(*names: str, namespace: str = "shop", complete: bool = True) -> Listed:
    """Return a LIST of version 9 with these objects in version 5."""
    objects = [ObjectMeta(name=name, namespace=namespace, resource_version="5") for name in names]
    return Listed(objects, "9", complete)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        pytest.param([Held(pod("a"))], {}, id="equal"),
        pytest.param([Held(pod("a"), "7")], {}, id="newer on the bus"),
        pytest.param([Held(pod("a"), "4")], {"stale": ["shop/a"]}, id="older on the bus"),
        pytest.param([Held(pod("ab"), "20")], {"missing": ["shop/a"]}, id="missing"),
        pytest.param([moved("a", pod("a")), Held(pod("a"))], {}, id="moved long ago"),
        pytest.param([Held(pod("a")), moved("a", pod("a"))], {}, id="just moved"),
        pytest.param(
            [Held(pod("a"), "4"), moved("a", pod("a"), "6")],
            {"stale": ["shop/a"]},
            id="moved, and older on its new subject",
        ),
        pytest.param([moved("a", pod("a"))], {"missing": ["shop/a"]}, id="moved to a subject that holds nothing"),
        pytest.param([Held(pod("a")), Held(pod("gone.x"))], {"ghosts": ["shop/gone.x"]}, id="deleted at the apiserver"),
        pytest.param([Held(pod("a")), Held(pod("gone"), "8", subjects.DELETED)], {}, id="a tombstone"),
        pytest.param([Held(pod("a")), Held(pod("new"), "12")], {}, id="created after the LIST"),
        pytest.param(
            [Held(pod("a")), Held(pod("gone")), moved("gone", pod("gone"))],
            {"ghosts": ["shop/gone"]},
            id="moved, then deleted at the apiserver",
        ),
        pytest.param(
            [Held(pod("a")), moved("gone", pod("gone")), Held(pod("gone"), "8", subjects.DELETED)],
            {},
            id="moved, then deleted",
        ),
    ],
)
async def test_pods(held: list[Held], wanted: dict[str, list[str]]) -> None:
    assert await differences(POD, held, listed("a")) == wanted


async def test_of_a_part_of_the_objects_nothing_is_said_about_others() -> None:
    assert await differences(POD, [Held(pod("a")), Held(pod("b"))], listed("a", complete=False)) == {}


@pytest.mark.parametrize(
    ("resource", "namespace", "wanted"),
    [(CLONE_SET, "shop", "shop/gone"), (NODE, "", "gone")],
    ids=["namespaced", "of the cluster"],
)
async def test_other_objects_have_one_subject(resource: Resource, namespace: str, wanted: str) -> None:
    held = [Held(subjects.kube(resource, namespace, name)) for name in ("a", "gone")]
    found = await differences(resource, held, listed("a", "b", namespace=namespace))
    assert found == {"missing": [wanted.replace("gone", "b")], "ghosts": [wanted]}
