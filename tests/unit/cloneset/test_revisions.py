"""A CloneSet's own revisions: those of a set that is taken over, claim templates, and their deletion."""

from typing import Any

import msgspec
import pytest

from flotilla_cloneset.cloneset.revisions import find_revisions, in_place_spec
from flotilla_cloneset.cloneset.snapshot import CloneSetSnapshot
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.resources import REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.gates import Gates
from tests.testkit.documents import decoded
from tests.unit.cloneset.build import cloneset, planned, revision, template
from tests.unit.workload import openkruise

HASH = "kruise.io/cloneset-volumeclaimtemplate-hash"
CLAIMS = Gates.parse("RecreatePodWhenChangeVCTInCloneSetGate=true")


@pytest.mark.parametrize("name", ["clone", "meshed", "spread", "ud-a-pc24b", "ud-b-slkv2"])
def test_a_taken_over_set_keeps_its_revisions(name: str) -> None:
    document = openkruise.cloneset(name)
    owned = decoded(document, CloneSet)
    stored = openkruise.stored_revisions("CloneSet", name)
    snapshot = CloneSetSnapshot(cloneset=owned, revisions=stored)
    choice = find_revisions(snapshot, Selector.compile(owned.spec.selector))
    assert choice.writes == ()
    assert choice.update.metadata.name == document["status"]["updateRevision"]
    assert choice.current.metadata.name == document["status"]["currentRevision"]


def test_the_claim_templates_of_a_taken_over_set_have_the_hash_that_its_revisions_say() -> None:
    owned = decoded(openkruise.cloneset("clone"), CloneSet)
    choice = find_revisions(CloneSetSnapshot(cloneset=owned), Selector.compile(owned.spec.selector))
    assert choice.update.metadata.name == "clone-54465bc649"
    assert choice.update.metadata.annotations[HASH] == "679419538"


@pytest.mark.parametrize(
    ("gates", "ignored", "possible"),
    [(Gates.parse(""), False, True), (CLAIMS, False, False), (CLAIMS, True, True)],
    ids=["gate off", "gate on", "InPlaceOnly"],
)
def test_other_claim_templates_mean_recreation_where_the_gate_says_so(
    gates: Gates, ignored: bool, possible: bool
) -> None:
    old, new = (revision(value, template(), 1, **{HASH: value}) for value in ("1", "2"))
    assert (in_place_spec(old, new, gates, ignore_claims=ignored) is not None) is possible


def test_only_revisions_of_the_selector_are_forgotten() -> None:
    """The snapshot contains all orphaned revisions of the namespace, also those of other workloads."""
    old, new = revision("old", template("nginx:1"), 1), revision("new", template(), 2)
    strangers: list[Any] = []
    for number in range(12):
        other = revision(f"x{number}", template(f"other:{number}"), 1)
        labels = {"app": "another"} if number < 11 else {"app": "sample"}
        meta = msgspec.structs.replace(other.metadata, labels=labels, owner_references=[])
        strangers.append(msgspec.structs.replace(other, metadata=meta))
    builder = cloneset()
    builder.spec["revisionHistoryLimit"] = 0
    made = planned(builder.stored(currentRevision="sample-new"), "3n", revisions=[old, new, *strangers])
    deleted = [action.name for action in made.actions if action.resource == REVISION]
    assert deleted == ["sample-old", "sample-x11"]
