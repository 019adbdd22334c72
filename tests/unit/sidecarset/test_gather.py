"""A snapshot's parts from the mirror, and the changes that wake a SidecarSet (sidecarset.md §7.1)."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.control.keystate import Memory
from flotilla_common.control.watches import owner_keys
from flotilla_common.settings import Settings
from flotilla_sidecar.app import PARTS
from flotilla_sidecar.sidecarset.controller import (
    CONTROLLER,
    NAMESPACES,
    PODS,
    REVISIONS,
    SIDECAR_SETS,
    Gatherer,
    options,
)
from flotilla_sidecar.sidecarset.snapshot import Options
from tests.support.controller_context import FakeContext
from tests.unit.sidecarset.build import INJECTED, Builder, namespace, pod, revision, side, state

KEY = ("", "side")


def with_version(obj: Any, version: int) -> Any:
    metadata = msgspec.structs.replace(obj.metadata, resource_version=str(version))
    return msgspec.structs.replace(obj, metadata=metadata)


def wired(*builders: Builder) -> tuple[FakeContext, Gatherer]:
    context = FakeContext()
    gatherer = context.build(CONTROLLER, Options(system_namespace="flotilla"))
    context.put(SIDECAR_SETS, *(builder.build() for builder in builders))
    context.woken.clear()
    return context, gatherer


def test_what_a_snapshot_holds() -> None:
    context, gatherer = wired(side())
    context.put(PODS, pod("one"), pod("two", namespace="b"), pod("other", annotations={INJECTED: "another"}))
    context.put(NAMESPACES, namespace("b"))
    context.put(REVISIONS, revision(side(), 1), revision(side("C"), 2, "side-x", owned=False))
    context.put(REVISIONS, with_version(revision(side(), 1, "web-1", **{"kruise.io/sidecarset-name": "web"}), 1))
    found = gatherer.gather(KEY, Memory())
    assert found is not None
    assert [one.metadata.name for one in found.pods] == ["one", "two"]
    assert [one.metadata.name for one in found.revisions] == [revision(side(), 1).metadata.name, "side-x"]
    assert found.options == Options(system_namespace="flotilla")
    assert found.namespaces == (), "no selector asks for them"
    assert (found.subject.key, found.subject.generation) == ("side", 3)
    assert gatherer.gather(("", "gone"), Memory()) is None


def test_namespaces_are_given_where_they_are_selected() -> None:
    context, gatherer = wired(side().set(namespaceSelector={"matchLabels": {"a": "b"}}))
    context.put(NAMESPACES, namespace("b"))
    found = gatherer.gather(KEY, Memory())
    assert found is not None
    assert [one.metadata.name for one in found.namespaces] == ["b"]


def test_a_foreign_revision_may_occupy_a_name() -> None:
    context, gatherer = wired(side())
    context.put(REVISIONS, revision(side(), 1, "side-77", **{"kruise.io/sidecarset-name": "other"}))
    found = gatherer.gather(KEY, Memory())
    assert found is not None
    assert [one.metadata.name for one in found.revisions] == ["side-77"]


# -- what wakes


def woken_by(old: Any, new: Any, builder: Builder | None = None) -> bool:
    """Report whether this change of a pod wakes the SidecarSet."""
    context, _ = wired(builder or side())
    table = context.table(PODS)
    if old is not None:
        table.apply(old)
    context.woken.clear()
    if new is None:
        table.remove(old.metadata.namespace, old.metadata.name, old.metadata.uid)
    else:
        table.apply(with_version(new, 9))
    assert set(context.woken) <= {KEY}
    return bool(context.woken)


NO_UPDATES = side().strategy(type="NotUpdate")
CHOOSING = side().strategy(selector={"matchLabels": {"canary": "yes"}})
LATE, DONE = pod(flags="~!"), pod(flags="!", annotations=state("proxy", "id-before"))


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, pod(), True, id="created"),
        pytest.param(None, pod(annotations={INJECTED: "other"}), False, id="created, of another"),
        pytest.param(None, pod(labels={"app": "x"}), False, id="created, and not selected"),
        pytest.param(pod(), None, True, id="gone at once"),
        pytest.param(pod(flags="T"), None, False, id="gone at last"),
        pytest.param(pod(), pod(flags="T"), True, id="terminating"),
        pytest.param(pod(), pod(flags="!"), True, id="not ready any more"),
        pytest.param(pod(flags="!"), pod(), True, id="ready"),
        pytest.param(LATE, DONE, True, id="its sidecar runs the new image"),
        pytest.param(pod(letter="A"), pod(letter="B"), True, id="updated"),
        pytest.param(pod(), pod(annotations={INJECTED: ""}), True, id="it says no longer that it was injected"),
        pytest.param(pod(), pod(labels={"app": "x"}), True, id="its labels left the selector"),
        pytest.param(pod(), pod(labels={"other": "label"}), False, id="another label"),
        pytest.param(pod(), pod(annotations={"other": "annotation"}), False, id="another annotation"),
        pytest.param(pod(flags="T"), pod(flags="T!"), False, id="changed on its way out"),
        pytest.param(pod(), pod(), False, id="nothing that matters"),
    ],
)
def test_which_changes_of_pods_wake(old: Any, new: Any, wakes: bool) -> None:
    assert woken_by(old, new) is wakes


def test_labels_that_choose_wake() -> None:
    assert woken_by(pod(letter="A"), pod(letter="A", labels={"canary": "yes"}), CHOOSING)
    assert not woken_by(pod(), pod(labels={"canary": "yes"}), side())


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, pod(), True, id="created"),
        pytest.param(pod(flags="!"), pod(), True, id="ready"),
        pytest.param(pod(), pod(flags="!"), True, id="not ready any more"),
        pytest.param(pod(), pod(flags="T"), True, id="terminating"),
        pytest.param(pod(), None, True, id="gone"),
        pytest.param(pod(), pod(annotations={"other": "annotation"}), False, id="nothing that matters"),
    ],
)
def test_one_that_updates_nobody_counts_its_pods_all_the_same(old: Any, new: Any, wakes: bool) -> None:
    assert woken_by(old, new, NO_UPDATES) is wakes


def test_one_that_cannot_be_read_is_woken_by_new_pods_alone() -> None:
    broken = side().set(selector={})
    assert woken_by(None, pod(), broken)
    assert not woken_by(pod(), pod(flags="!"), broken)


def test_a_pod_that_names_a_sidecarset_which_is_not_there_wakes_nobody() -> None:
    context, _ = wired()
    context.put(PODS, pod())
    assert context.woken == []


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        pytest.param(lambda builder: builder.meta(generation=4), True, id="spec"),
        pytest.param(lambda builder: builder.meta(annotations={"kruise.io/sidecarset-hash": "x"}), True, id="hash"),
        pytest.param(lambda builder: builder.meta(deletionTimestamp="2026-03-01T12:00:00Z"), True, id="being deleted"),
        pytest.param(lambda builder: builder.stored(matchedPods=7), False, id="status"),
        pytest.param(lambda builder: builder.meta(annotations={"note": "x"}), False, id="metadata"),
    ],
)
def test_which_changes_of_itself_wake(change: Callable[[Builder], Builder], wakes: bool) -> None:
    context, _ = wired(side())
    context.put(SIDECAR_SETS, with_version(change(side()).build(), 99))
    assert context.woken == ([KEY] if wakes else [])


def test_it_is_planned_when_it_comes_and_when_it_is_gone() -> None:
    context, _ = wired()
    context.put(SIDECAR_SETS, side().build())
    context.table(SIDECAR_SETS).remove("", "side", "uid-side")
    assert context.woken == [KEY, KEY]


def test_a_new_namespace_wakes_those_that_select_some() -> None:
    """Its pods may have come before it. Changes of its labels wake no SidecarSet."""
    context, _ = wired(side().set(namespaceSelector={"matchLabels": {"a": "b"}}), side().meta(name="all", uid="u2"))
    context.put(NAMESPACES, namespace("x"))
    assert context.woken == [KEY]
    context.put(NAMESPACES, with_version(namespace("x", a="b"), 9))
    context.table(NAMESPACES).remove("", "x")
    assert context.woken == [KEY]


def test_a_change_of_a_revision_wakes_its_owner() -> None:
    """The SidecarSet has no namespace, though the revision has one."""
    assert owner_keys(SIDECAR_SET, revision(side(), 1), None) == {KEY}


# -- the declaration


def test_pods_are_read_before_the_first_plan_and_after_a_doubtful_write() -> None:
    """Each patch holds for one version, but how many pods may be updated hangs on all of them."""
    assert PODS.consistent
    assert REVISIONS.consistent
    assert not NAMESPACES.consistent
    assert (PODS.writes, PODS.subresources) == (("patch",), ("status",))


def test_revisions_are_read_and_written_in_our_own_namespace_only() -> None:
    assert REVISIONS.private == "namespace"
    assert options(Settings(namespace="flotilla"), "").system_namespace == "flotilla"


@pytest.mark.parametrize(("keep", "drop"), [(False, True), (True, False)])
def test_settings_that_change_plans(keep: bool, drop: bool) -> None:
    assert options(Settings(keep_managed_fields=keep), "v1.36.0").drop_field_owners is drop


def test_the_service_has_it() -> None:
    assert CONTROLLER in PARTS
    assert (CONTROLLER.name, CONTROLLER.wakes_itself) == ("sidecarset-controller", False)
    assert CONTROLLER.why_off(Settings(custom_resource_enable="CloneSet"), FakeContext().gates)


@pytest.mark.parametrize(("names", "matters"), [("a,side", True), ("aside", False), ("", False)])
def test_what_a_recording_takes(names: str, matters: bool) -> None:
    assert PODS.concerns is not None
    there = {"metadata": {"name": "p", "annotations": {INJECTED: names}}}
    assert PODS.concerns({"metadata": {"name": "side"}}, there) is matters
