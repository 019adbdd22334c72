"""One engine for the revisions of all kinds: it reproduces OpenKruise's names, and other recipes work."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.jsontext import go_json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.sidecarset.revisions import canonical_revision
from flotilla_common.api.meta import LabelSelector, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Create, Patch
from flotilla_common.workload.hashing import revision_hash
from flotilla_common.workload.inplace import calculate
from flotilla_common.workload.revision_codec import (
    RevisionCodec,
    RevisionOwner,
    canonical_template_data,
    template_data,
    template_labels,
)
from flotilla_common.workload.revisions import (
    RevisionChoice,
    choose_revisions,
    live_revisions,
    own_revisions,
    surplus_revisions,
)
from tests.testkit.documents import decoded
from tests.testkit.workloads import raw
from tests.unit.workload import openkruise
from tests.unit.workload.build import CODEC, GATES, container, template

HASH_LABEL, POD_LABEL = "controller.kubernetes.io/hash", "controller-revision-hash"
ANYTHING = Selector.compile(LabelSelector())


def united_data(data: bytes) -> bytes:
    """Return a UnitedDeployment stores its whole template, for some kind of child."""
    return go_json({"spec": {"template": {**member(msgspec.json.decode(data), "spec", "template")}}}, sort=True)


def united_labels(data: Json) -> dict[str, str]:
    (child,) = (value for value in member(data, "spec", "template").values() if isinstance(value, dict))
    return strings(member(child, "metadata").get("labels"))


def hash_label(revision: ControllerRevision) -> str:
    return revision.metadata.labels.get(POD_LABEL, revision.metadata.name)


STATEFUL = RevisionCodec(canonical=canonical_template_data, labels=template_labels)
DAEMON = RevisionCodec(
    canonical=canonical_template_data,
    labels=template_labels,
    label=hash_label,
    hash_label=POD_LABEL,
    hash_label_follows_name=True,
)
SIDECAR = RevisionCodec(canonical=canonical_revision, namespace="kruise-system")
UNITED = RevisionCodec(
    canonical=united_data, labels=united_labels, hash_label_follows_name=True, copies_annotations=False
)
RECIPES = {"CloneSet": CODEC, "StatefulSet": STATEFUL, "SidecarSet": SIDECAR, "UnitedDeployment": UNITED}


def rows(*kinds: str) -> list[Any]:
    """Return one test row per revision of these kinds."""
    return [pytest.param(kind, row, id=row["metadata"]["name"]) for kind in kinds for row in openkruise.revisions(kind)]


def choose(codec: RevisionCodec, source: bytes, *stored: ControllerRevision, **members: Any) -> RevisionChoice:
    values: dict[str, Any] = {"resource": CLONE_SET, "selector": ANYTHING, "metadata": ObjectMeta(name="web", uid="u")}
    return choose_revisions(codec, RevisionOwner(**(values | members)), source, stored)


def created(choice: RevisionChoice) -> Json:
    (create,) = choice.writes
    assert isinstance(create, Create)
    return create.body


@pytest.mark.parametrize(("kind", "row"), rows(*RECIPES))
def test_names_are_those_that_openkruise_gave(kind: str, row: Json) -> None:
    (reference,) = row["metadata"]["ownerReferences"]
    owner = ObjectMeta(name=reference["name"], namespace=row["metadata"]["namespace"], uid=reference["uid"])
    resource = Resource("apps.kruise.io", "v1beta1", "any", kind)
    body = created(choose(RECIPES[kind], msgspec.json.encode(row["data"]), metadata=owner, resource=resource))
    assert body["metadata"]["name"] == row["metadata"]["name"]
    assert body["metadata"]["labels"][HASH_LABEL] == row["metadata"]["labels"][HASH_LABEL]
    assert body["metadata"]["namespace"] == row["metadata"]["namespace"]
    assert body["metadata"]["ownerReferences"] == row["metadata"]["ownerReferences"]
    assert body["data"] == row["data"]


@pytest.mark.parametrize(("kind", "row"), rows("CloneSet", "StatefulSet", "SidecarSet", "UnitedDeployment"))
def test_revisions_that_openkruise_wrote_are_found_again(kind: str, row: Json) -> None:
    held = decoded(row, ControllerRevision)
    (reference,) = row["metadata"]["ownerReferences"]
    owner = ObjectMeta(name=reference["name"], uid=reference["uid"])
    choice = choose(RECIPES[kind], msgspec.json.encode(row["data"]), held, metadata=owner)
    assert (choice.update, choice.writes) == (held, ())


@pytest.mark.parametrize(("kind", "row"), rows("DaemonSet"))
def test_daemon_sets_know_revisions_by_their_data_alone(kind: str, row: Json) -> None:
    held = decoded(row, ControllerRevision)
    (reference,) = row["metadata"]["ownerReferences"]
    owner = ObjectMeta(name=reference["name"], uid=reference["uid"])
    choice = choose(DAEMON, msgspec.json.encode(row["data"]), held, metadata=owner)
    assert (choice.update, choice.writes) == (held, ())
    assert revision_hash(DAEMON.data_of(held), 0) not in held.metadata.name, f"{kind}s are named by another hash"
    assert DAEMON.belongs(row["metadata"]["labels"][POD_LABEL], DAEMON.label(held))
    assert not DAEMON.belongs(held.metadata.name, DAEMON.label(held))


def test_daemon_sets_put_the_hash_under_their_own_label() -> None:
    body = created(choose(DAEMON, template_data(raw(template()))))
    assert body["metadata"]["labels"] == {"app": "sample", POD_LABEL: "d4d4fb5bd"}


def test_stateful_sets_compare_whole_names() -> None:
    assert STATEFUL.belongs("web-abc", "web-abc")
    assert not STATEFUL.belongs("abc", "web-abc")
    assert not STATEFUL.belongs("other-abc", "web-abc")


def test_sidecar_sets_have_their_revisions_elsewhere_and_their_labels_from_themselves() -> None:
    owner = ObjectMeta(name="side", uid="u", annotations={"kruise.io/sidecarset-hash": "h"})
    labels = {"team": "mesh", "kruise.io/sidecarset-name": "side"}
    source = msgspec.json.encode({"spec": {"containers": [{"name": "proxy"}], "volumes": []}})
    metadata = created(choose(SIDECAR, source, metadata=owner, labels=labels))["metadata"]
    assert metadata["namespace"] == "kruise-system"
    assert metadata["labels"] == {**labels, HASH_LABEL: metadata["name"].removeprefix("side-")}
    assert metadata["annotations"] == {"kruise.io/sidecarset-hash": "h"}


def test_united_deployments_copy_no_annotations_and_label_the_name_found_at_last() -> None:
    row = openkruise.revisions("UnitedDeployment", "ud")[0]
    source, taken = msgspec.json.encode(row["data"]), decoded(row, ControllerRevision)
    taken = msgspec.structs.replace(taken, data=msgspec.Raw(b'{"spec":{"template":{}}}'))
    owner = ObjectMeta(name="ud", uid="another", annotations={"note": "x"})
    choice = choose(UNITED, source, taken, metadata=owner)
    metadata = created(choice)["metadata"]
    assert choice.collision_count == 1
    assert metadata["annotations"] == {}
    assert metadata["labels"] == {"app": "ud", HASH_LABEL: metadata["name"].removeprefix("ud-")}
    assert metadata["name"] != taken.metadata.name


def test_names_of_owners_are_cut() -> None:
    codec = RevisionCodec(canonical=canonical_template_data, name_limit=3)
    name = created(choose(codec, template_data(raw(template()))))["metadata"]["name"]
    assert name == "web-d4d4fb5bd"
    long = ObjectMeta(name="website", uid="u")
    assert created(choose(codec, template_data(raw(template())), metadata=long))["metadata"]["name"] == name


def test_in_place_updates_name_a_revision_as_its_kind_does() -> None:
    old, new = (
        decoded({"metadata": {"name": f"web-{name}", "labels": {POD_LABEL: name}}, "data": data}, ControllerRevision)
        for name, data in (
            ("a", msgspec.json.decode(template_data(raw(template())))),
            ("b", msgspec.json.decode(template_data(raw(template(container(image="nginx:mainline")))))),
        )
    )
    specs = [calculate(codec, old, new, gates=GATES) for codec in (STATEFUL, DAEMON)]
    assert [spec and (spec.revision, spec.images) for spec in specs] == [
        ("web-b", {"nginx": "nginx:mainline"}),
        ("b", {"nginx": "nginx:mainline"}),
    ]


def test_live_ones_may_count_against_the_limit_and_are_spared_all_the_same() -> None:
    """DaemonSets and SidecarSets delete the oldest until the limit is kept, but none that is in use."""
    held = openkruise.stored_revisions("CloneSet", "clone")
    own = own_revisions(held, held[0].metadata.owner_references[0].uid)
    assert [one.revision for one in own] == [2, 3, 4]
    spared = live_revisions(CODEC, own, {"6f8df7fdd7"})
    assert spared == {"clone-6f8df7fdd7"}
    assert [one.name for one in surplus_revisions(own, 2, spared=spared)] == ["clone-76df79d685"]
    assert [one.name for one in surplus_revisions(own, 3, spared=spared)] == []


def test_a_raised_revision_gets_the_annotations_that_speak_of_the_owner_now() -> None:
    first, second = openkruise.stored_revisions("StatefulSet", "ordered")
    older, newer = sorted((first, second), key=lambda one: one.revision)
    owner = ObjectMeta(name="ordered", uid=first.metadata.owner_references[0].uid)
    choice = choose(STATEFUL, bytes(older.data), older, newer, metadata=owner, annotations={"a": "1"})
    (patch,) = choice.writes
    assert isinstance(patch, Patch)
    assert patch.body == {"revision": newer.revision + 1, "metadata": {"annotations": {"a": "1"}}}
    assert choice.update.metadata.annotations.items() >= {"a": "1"}.items()
