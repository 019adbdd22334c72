"""Choosing and forgetting revisions (common.md §7.4, §7.5, §7.7; worked examples 22-24 and 27 of §16)."""

from typing import Any

import pytest

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.meta import LabelSelector, ObjectMeta
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Create, Patch
from flotilla_common.workload.revision_codec import RevisionOwner, belongs, short_hash, template_data
from flotilla_common.workload.revisions import (
    RevisionChoice,
    choose_revisions,
    live_revisions,
    own_revisions,
    surplus_revisions,
)
from tests.testkit.documents import decoded
from tests.testkit.workloads import raw
from tests.unit.workload.build import CODEC, container, template

OWNER = ObjectMeta(name="sample", namespace="default", uid="uid-owner", annotations={"note": "x"})
HASH = "kruise.io/cloneset-volumeclaimtemplate-hash"
ALPINE, MAINLINE = template(), template(container(image="nginx:mainline"))
EVERYTHING = Selector.compile(LabelSelector())


def stored(
    name: str, content: Any, number: int, *, controller: str = "uid-owner", data: Any = None, **metadata: Any
) -> ControllerRevision:
    references = [{"uid": controller, "controller": True}] if controller else []
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "4",
            "labels": {"app": "sample"},
            "annotations": {HASH: ""},
            "ownerReferences": references,
            **metadata,
        },
        "revision": number,
        "data": data if data is not None else {"spec": {"template": {**content, "$patch": "replace"}}},
    }
    return decoded(document, ControllerRevision)


def choose(content: Any, *held: ControllerRevision, **members: Any) -> RevisionChoice:
    values: dict[str, Any] = {"selector": EVERYTHING, "annotations": {HASH: ""}, **members}
    owner = RevisionOwner(resource=CLONE_SET, metadata=OWNER, **values)
    return choose_revisions(CODEC, owner, template_data(raw(content)), held)


def surplus(held: list[ControllerRevision], live: set[str], limit: int) -> list[str]:
    """Return the names of the revisions that are deleted where live ones do not count."""
    own = own_revisions(held, "uid-owner")
    spared = live_revisions(CODEC, own, live)
    return [one.name for one in surplus_revisions([one for one in own if one.metadata.name not in spared], limit)]


def test_the_first_revision() -> None:
    choice = choose(ALPINE)
    (create,) = choice.writes
    assert isinstance(create, Create)
    assert create.name == "sample-d4d4fb5bd"
    assert create.body["revision"] == 1
    metadata = create.body["metadata"]
    assert metadata["labels"] == {"app": "sample", "controller.kubernetes.io/hash": "d4d4fb5bd"}
    assert metadata["annotations"] == {"note": "x", HASH: ""}
    assert metadata["ownerReferences"][0]["blockOwnerDeletion"] is True
    assert create.body["data"]["spec"]["template"]["$patch"] == "replace"
    assert choice.update.metadata.name == "sample-d4d4fb5bd"
    assert choice.current == choice.update
    assert choice.collision_count == 0


def test_a_new_template_gets_the_next_number() -> None:
    held = stored("sample-d4d4fb5bd", ALPINE, 3)
    choice = choose(MAINLINE, held, current_name=held.metadata.name)
    assert choice.update.metadata.name == "sample-56dfb978d4"
    assert choice.update.revision == 4
    assert choice.current == held


def test_nothing_is_written_when_the_newest_equals() -> None:
    held = (stored("sample-x", MAINLINE, 1), stored("sample-y", ALPINE, 2))
    choice = choose(ALPINE, *held, current_name="sample-x")
    assert (choice.writes, choice.update, choice.current) == ((), held[1], held[0])


def test_22_rollback_raises_the_number() -> None:
    held = (stored("sample-x", ALPINE, 1), stored("sample-y", MAINLINE, 2))
    choice = choose(ALPINE, *held, current_name="sample-x")
    (patch,) = choice.writes
    assert isinstance(patch, Patch)
    assert (patch.name, patch.uid, patch.resource_version, patch.body) == (
        "sample-x",
        "uid-sample-x",
        "4",
        {"revision": 3},
    )
    assert choice.update.revision == 3
    assert choice.current == choice.update


@pytest.mark.parametrize("annotations", [None, {}, {HASH: "1"}])
def test_rollback_renews_the_claim_hash(annotations: Any) -> None:
    metadata = {} if annotations is None else {"annotations": annotations}
    held = stored("sample-x", ALPINE, 1, **metadata)
    choice = choose(ALPINE, held, stored("sample-y", MAINLINE, 2), annotations={HASH: "16312009"})
    (patch,) = choice.writes
    assert isinstance(patch, Patch)
    assert patch.body["metadata"] == {"annotations": {HASH: "16312009"}}
    assert choice.update.metadata.annotations[HASH] == "16312009"


def test_23_data_of_another_writer_is_recognised() -> None:
    noisy = template(container(env=None, stdin=False), nodeName="", volumes=None, unknownMember=1)
    held = stored("sample-z", noisy, 1)
    assert choose(ALPINE, held).writes == ()


def test_24_a_taken_name_counts_a_collision() -> None:
    choice = choose(ALPINE, stored("sample-d4d4fb5bd", MAINLINE, 1, controller="uid-else"))
    (create,) = choice.writes
    assert create.name == "sample-d4d4fb5bf"
    assert choice.collision_count == 1
    assert isinstance(create, Create)
    assert create.body["metadata"]["labels"]["controller.kubernetes.io/hash"] == "d4d4fb5bd"


def test_a_collision_is_counted_again_if_the_status_never_said_it() -> None:
    """The revision is made first, and the status may come much later, or never."""
    foreign = stored("sample-d4d4fb5bd", MAINLINE, 1, controller="uid-else")
    mine = stored("sample-d4d4fb5bf", ALPINE, 1)
    assert (choose(ALPINE, foreign, mine).writes, choose(ALPINE, foreign, mine).collision_count) == ((), 1)
    assert choose(ALPINE, mine).collision_count == 0  # no collision: another release named it


def test_a_taken_name_with_equal_data_is_used() -> None:
    held = stored("sample-d4d4fb5bd", ALPINE, 1, controller="uid-else")
    choice = choose(ALPINE, held)
    assert (choice.writes, choice.update, choice.collision_count) == ((), held, 0)


def test_revisions_of_others_and_outside_the_selector_do_not_count() -> None:
    selector = Selector.compile(LabelSelector(match_labels={"app": "sample"}))
    held = (
        stored("other-a", ALPINE, 9, controller="uid-else"),
        stored("sample-b", ALPINE, 8, labels={"app": "x"}),
        stored("orphan", MAINLINE, 2, controller=""),
    )
    choice = choose(ALPINE, *held, selector=selector)
    assert choice.update.revision == 3


def test_unreadable_revisions_equal_nothing() -> None:
    held = [stored(f"sample-{index}", None, index, data=data) for index, data in enumerate((1, {}, {"spec": []}), 1)]
    assert [CODEC.data_of(item) for item in held[::2]] == [b"", b""]
    assert choose(ALPINE, *held).update.revision == 4


def test_equal_revisions_go_by_number_then_time_then_name() -> None:
    held = (
        stored("sample-b", ALPINE, 2, creationTimestamp="2024-01-01T00:00:00Z"),
        stored("sample-a", ALPINE, 2, creationTimestamp="2024-01-02T00:00:00Z"),
        stored("sample-c", ALPINE, 1),
    )
    assert choose(ALPINE, *held).update.metadata.name == "sample-a"


def test_a_template_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="should be of type"):
        choose({"spec": {"containers": "none"}})


@pytest.mark.parametrize(
    ("live", "limit", "deleted"),
    [
        ({"sample-c"}, 10, []),
        ({"sample-c"}, 1, ["sample-a"]),
        ({"sample-c"}, 0, ["sample-a", "sample-b"]),
        ({"sample-c", "sample-a"}, 0, ["sample-b"]),
        ({"c", "a"}, 0, ["sample-b"]),
    ],
    ids=["few", "oldest first", "none kept", "27 live stays", "short labels"],
)
def test_history_limit(live: set[str], limit: int, deleted: list[str]) -> None:
    held = [
        stored("sample-b", MAINLINE, 2),
        stored("sample-a", MAINLINE, 1),
        stored("sample-c", ALPINE, 3),
        stored("foreign", ALPINE, 0, controller="uid-else"),
    ]
    assert surplus(held, live, limit) == deleted


@pytest.mark.parametrize(
    ("label", "expected"),
    [("sample-d4d4fb5bd", True), ("d4d4fb5bd", True), ("other-d4d4fb5bd", True), ("sample-x", False), ("", False)],
)
def test_belongs(label: str, expected: bool) -> None:
    assert belongs(label, "sample-d4d4fb5bd") is expected


def test_short_hash() -> None:
    assert [short_hash(name) for name in ("a-b-c", "c", "")] == ["c", "c", ""]
