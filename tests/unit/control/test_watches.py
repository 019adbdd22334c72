"""The way from dependents to their owners, and the meaning of a declared resource."""

from typing import Any

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.meta import Model, ObjectMeta, OwnerReference
from flotilla_common.api.resources import POD, SECRET
from flotilla_common.control.watches import Watch, controlled, owned, owner_index, owner_keys
from flotilla_common.mirror.table import Table


class Thing(Model, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


def reference(name: str, api: str = "apps.kruise.io/v1beta1", kind: str = "CloneSet", **more: Any) -> OwnerReference:
    return OwnerReference(api_version=api, kind=kind, name=name, uid=f"u-{name}", **more)


def thing(*owners: OwnerReference, version: int = 1, namespace: str = "ns") -> Thing:
    meta = ObjectMeta(
        name="a", namespace=namespace, uid="u", resource_version=str(version), owner_references=list(owners)
    )
    return Thing(metadata=meta)


def identity(uid: str) -> ObjectMeta:
    return ObjectMeta(name="web", namespace="ns", uid=uid)


PODS = Watch(POD, Thing, owner=CLONE_SET)

OWNERS = [
    pytest.param(reference("web"), True, id="in the stored version"),
    pytest.param(reference("web", "apps.kruise.io/v1alpha1"), True, id="in an older version"),
    pytest.param(reference("web", "apps.kruise.io/v9"), True, id="in a version that is to come"),
    pytest.param(reference("web", controller=True), True, id="as its controller"),
    pytest.param(reference("web", "apps/v1"), False, id="of another group"),
    pytest.param(reference("web", kind="StatefulSet"), False, id="of another kind"),
]


@pytest.mark.parametrize(("owner", "ours"), OWNERS)
def test_objects_are_found_by_the_uids_of_their_owners(owner: OwnerReference, ours: bool) -> None:
    table = Table[Thing](PODS.all_indexes)
    table.apply(thing(owner))
    assert list(owned(table, CLONE_SET, identity("u-web"))) == ([thing(owner)] if ours else [])
    assert list(owned(table, CLONE_SET, identity("u-other"))) == []


def test_an_owner_with_a_namespace_has_dependents_of_that_namespace_only() -> None:
    """A backup that was restored in another namespace keeps its owner references."""
    table = Table[Thing](PODS.all_indexes)
    table.apply(thing(reference("web", controller=True), namespace="restored"))
    assert list(owned(table, CLONE_SET, identity("u-web"))) == controlled(table, CLONE_SET, identity("u-web")) == []


def test_an_owner_without_a_namespace_has_dependents_in_all() -> None:
    table = Table[Thing](Watch(SECRET, Thing, owner=NODE_IMAGE).all_indexes)
    dependent = thing(reference("n", kind="NodeImage"))
    table.apply(dependent)
    assert list(owned(table, NODE_IMAGE, ObjectMeta(name="n", uid="u-n"))) == [dependent]


@pytest.mark.parametrize(("owner", "ours"), OWNERS)
def test_a_change_concerns_the_owners_by_name(owner: OwnerReference, ours: bool) -> None:
    expected = {("ns", "web")} if ours else set[tuple[str, str]]()
    assert owner_keys(CLONE_SET, None, thing(owner)) == owner_keys(CLONE_SET, thing(owner), None) == expected
    assert owner_keys(CLONE_SET, thing(owner), thing(owner, version=2)) == expected


def test_who_owned_it_before_is_concerned_too() -> None:
    before, after = thing(reference("one")), thing(reference("two"), reference("three"), version=2)
    assert owner_keys(CLONE_SET, before, after) == {("ns", "one"), ("ns", "two"), ("ns", "three")}
    assert owner_keys(CLONE_SET, before, thing(version=2)) == {("ns", "one")}
    assert owner_keys(CLONE_SET, None, None) == set()


def test_an_owner_without_a_namespace() -> None:
    assert owner_keys(NODE_IMAGE, None, thing(reference("n", kind="NodeImage"))) == {("", "n")}


def test_what_the_bus_never_carries() -> None:
    assert not PODS.direct
    assert Watch(SECRET, Thing, private="namespace").direct
    assert Watch(SECRET, Thing, named=True).direct


def test_the_index_of_a_kind_is_one_for_all_who_ask() -> None:
    """Else two controllers of a service could not share a table."""
    other = Watch(POD, Thing, owner=CLONE_SET, indexes={"all": lambda obj: [""]})
    name = owner_index(CLONE_SET)
    assert PODS.all_indexes[name] is other.all_indexes[name]
    assert list(other.all_indexes) == [name, "all"]
    lists = Watch(POD, Thing, owner=IMAGE_LIST_PULL_JOB).all_indexes
    assert owner_index(IMAGE_LIST_PULL_JOB) in lists
    assert name not in lists
    assert Watch(POD, Thing).all_indexes == {}


@pytest.mark.parametrize(
    ("members", "consistent"),
    [
        ({}, False),
        ({"writes": ("patch",)}, True),
        ({"subresources": ("status",)}, True),
        ({"writes": ("patch",), "conditional": True}, False),
    ],
    ids=["only read", "written", "its status is written", "written under conditions"],
)
def test_what_is_written_blindly_must_be_known(members: dict[str, Any], consistent: bool) -> None:
    assert Watch(POD, Thing, **members).consistent is consistent
