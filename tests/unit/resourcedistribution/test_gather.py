"""The gatherer's reads, the keys that changes wake, and the rights of the service."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Namespace
from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION, ResourceDistribution
from flotilla_common.api.resources import CONFIG_MAP, NAMESPACE, SECRET
from flotilla_common.control.keystate import Memory
from flotilla_common.control.spec import access_of
from flotilla_common.installed import mirrored, published
from flotilla_common.kube.interface import Unreachable
from flotilla_common.mirror.feed import Followed
from flotilla_sidecar.app import PARTS
from flotilla_sidecar.resourcedistribution.controller import (
    CONTROLLER,
    DISTRIBUTIONS,
    NAMESPACES,
    Gatherer,
    read_copies,
)
from tests.support.controller_context import FakeContext
from tests.testkit.documents import decoded
from tests.unit.resourcedistribution.world import World, group, names, secret

KEY = ("", "r")


def distribution(name: str, source: str, kind: str = "Secret", **targets: Any) -> ResourceDistribution:
    resource = {"apiVersion": "v1", "kind": kind, "metadata": {"name": source}}
    document = {
        "metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": "1"},
        "spec": {"resource": resource, "targets": targets},
    }
    return decoded(document, ResourceDistribution)


def test_only_names_of_sources_are_followed() -> None:
    context = FakeContext()
    gatherer = context.build(CONTROLLER)
    mine = [distribution("r", "s"), distribution("q", "s"), distribution("p", "c", "ConfigMap"), distribution("x", "")]
    context.put(DISTRIBUTIONS, *mine)
    for one in mine:
        gatherer.gather(("", one.metadata.name), Memory())
    assert context.by_name[SECRET].asked == ["s", "s"]
    assert context.by_name[CONFIG_MAP].asked == ["c"]
    assert (context.by_name[SECRET].wanted(), context.by_name[CONFIG_MAP].wanted()) == ({"s"}, {"c"})
    context.mine = False
    assert context.by_name[SECRET].wanted() == set()


def test_who_is_told_when_a_name_is_known() -> None:
    context = FakeContext()
    context.build(CONTROLLER)
    context.put(DISTRIBUTIONS, distribution("r", "s"), distribution("q", "s"), distribution("p", "s", "ConfigMap"))
    context.by_name[SECRET].changed("s")
    assert sorted(context.replanned) == [("", "q"), ("", "r")]
    context.by_name[SECRET].changed("nobody")
    assert len(context.replanned) == 2


def test_who_hears_of_an_object() -> None:
    world = World()
    world.distribute()
    world.context.woken.clear()
    world.store("a", secret())
    world.store("a", secret(data={"k": "eA=="}))
    world.remove_copy("a")
    assert world.context.woken == [KEY] * 3
    world.store("a", secret(kind="ConfigMap"))
    assert world.context.woken == [KEY] * 3


NAMESPACE_CHANGES = [
    pytest.param({"includedNamespaces": names("x")}, True, id="named"),
    pytest.param({"allNamespaces": True}, True, id="all"),
    pytest.param({"allNamespaces": True, "excludedNamespaces": names("x")}, False, id="excluded"),
    pytest.param({"namespaceSelector": group("one")}, True, id="selected"),
    pytest.param({"namespaceSelector": group("two")}, False, id="not selected"),
    pytest.param({}, False, id="nothing chosen"),
    pytest.param(
        {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, False, id="no selector"
    ),
]


@pytest.mark.parametrize(("targets", "concerned"), NAMESPACE_CHANGES)
def test_whom_a_namespace_concerns(targets: dict[str, Any], concerned: bool) -> None:
    world = World()
    world.distribute(**targets)
    changes = (
        lambda: world.add_namespace("x", group="one"),
        lambda: world.add_namespace("x", group="one", other="label"),
        lambda: world.add_namespace("x", group="one", terminating=True),
        lambda: world.remove_namespace("x"),
    )
    for change in changes:
        world.context.woken.clear()
        change()
        assert world.context.woken == ([KEY] if concerned else [])


def test_who_lost_a_namespace_is_told_too() -> None:
    world = World()
    world.distribute(namespaceSelector=group("one"))
    world.context.woken.clear()
    world.add_namespace("a", group="two")
    assert world.context.woken == [KEY]


def test_what_does_not_matter_of_a_namespace_wakes_nobody() -> None:
    world = World()
    world.distribute(allNamespaces=True)
    world.context.woken.clear()
    held = world.context.table(NAMESPACES).get("", "a")
    assert held is not None
    newer = msgspec.structs.replace(held.metadata, resource_version="1000", annotations={"a": "b"})
    world.context.put(NAMESPACES, Namespace(metadata=newer))
    assert world.context.woken == []


def test_nothing_is_gathered_of_what_is_gone() -> None:
    assert Gatherer(FakeContext()).gather(KEY, Memory()) is None


async def test_after_a_doubtful_write_all_objects_of_the_name_are_read() -> None:
    context = FakeContext()
    context.put(DISTRIBUTIONS, distribution("r", "s"), distribution("x", ""))
    for key in (KEY, ("", "x"), ("", "gone")):
        await read_copies(context, key)
    assert context.read_names == [(SECRET, "s")]
    context.trouble = Unreachable("away")
    with pytest.raises(Unreachable):
        await read_copies(context, KEY)


def test_no_secret_and_no_config_map_goes_over_the_bus() -> None:
    assert {NAMESPACE, RESOURCE_DISTRIBUTION} <= set(mirrored([CONTROLLER]))
    assert not {SECRET, CONFIG_MAP} & {*mirrored(PARTS), *published()}


def test_the_rights_that_it_needs() -> None:
    everywhere = {
        (access.resource.plural, access.subresource, verb)
        for access in access_of([CONTROLLER])
        for verb in access.verbs
        if not access.namespace and access.resource.plural != "events"
    }
    reads = ("get", "list", "watch")
    assert everywhere == {
        *((plural, "", verb) for plural in ("secrets", "configmaps") for verb in (*reads, "create", "delete", "patch")),
        *(("namespaces", "", verb) for verb in reads),
        *(("resourcedistributions", "", verb) for verb in reads),
        ("resourcedistributions", "status", "patch"),
        ("resourcedistributions", "finalizers", "update"),
    }


def test_a_recording_has_nothing_to_plan_with() -> None:
    context = FakeContext()
    gatherer = context.build(CONTROLLER)
    context.put(DISTRIBUTIONS, distribution("r", "s"))
    context.by_name[SECRET].known = Followed(trouble="a recording does not hold it")
    snapshot = gatherer.gather(KEY, Memory())
    assert snapshot is not None
    assert (snapshot.copies, snapshot.trouble) == (None, "a recording does not hold it")
