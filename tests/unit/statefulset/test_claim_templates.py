"""Claim templates that are added, taken away or renamed while pods run (statefulset.md §4.9)."""

import msgspec
import pytest

from flotilla_common.api.core import ControllerRevision
from flotilla_common.control.plan import Create
from flotilla_common.workload.claims import claim_record
from tests.testkit.documents import Json
from tests.testkit.plans import codes
from tests.testkit.tables import cases
from tests.unit.statefulset.build import Builder, claim, planned, pods, revision, sts, summary, template
from tests.unit.statefulset.test_claims import owners

ADDED: list[tuple[str, Builder, str, list[str], set[str]]] = [
    ("in-order", sts(2, "A").ordered(), "0A 1A", ["delete 1"], {"Updating"}),
    ("at-once", sts(3, "A").m(2), "0A 1A 2A", ["delete 2", "delete 1"], {"Updating"}),
    ("with-a-template", sts(2).ordered(), "0A 1A", ["delete 1"], {"Updating"}),
    ("in-place-is-not-enough", sts(2, "A").in_place(), "0A 1A", ["delete 1"], {"Updating"}),
    ("nor-with-an-image", sts(2).in_place(), "0A 1A", ["delete 1"], {"Updating"}),
    ("partition", sts(3, "A").p(2), "0A 1A 2A", ["delete 2"], {"Updating"}),
    ("partition-of-any", sts(3, "A").p(2).unordered(), "0A 1A 2A", ["delete 2"], {"Updating"}),
    ("paused", sts(2, "A").rolling(paused=True), "0A 1A", [], {"PausedByUser"}),
    ("on-delete", sts(2, "A").on_delete(), "0A 1A", [], {"OnDelete"}),
    ("in-place-only", sts(2, "A").in_place(only=True), "0A 1A", [], {"VolumesDiffer"}),
    ("in-place-only-with-an-image", sts(1).in_place(only=True), "0A", ["update 0B"], set()),
    ("broken-one-in-order", sts(2, "A").ordered(), "0A! 1A", ["delete 0"], {"Updating"}),
    ("its-next-pod", sts(2, "A"), "0A", ["create PersistentVolumeClaim new-w-1", "create 1A"], set()),
    ("scaled-out", sts(2, "A").ordered(), "0A", ["create PersistentVolumeClaim new-w-1", "create 1A"], set()),
]


@pytest.mark.parametrize(("builder", "there", "writes", "reasons"), cases(ADDED))
def test_a_claim_template_that_is_added_reaches_pods_by_an_update(
    builder: Builder, there: str, writes: list[str], reasons: set[str]
) -> None:
    """Volumes of a pod never change, so it is recreated, within the limits of any update."""
    found = [claim(f"data-w-{ordinal}") for ordinal in range(3)]
    result = planned(builder.claims("data", "new"), pods(there, claims=("data",)), claims=found)
    assert summary(result) == writes
    assert reasons <= codes(result)
    assert result.errors == ()
    assert not [event for event in result.events if event.warning]
    assert result.settled == ("VolumesDiffer" in reasons)


def recorded(letter: str, number: int, *names: str) -> ControllerRevision:
    """Return a revision with these claim templates."""
    made = revision(letter, number)
    templates = sts().claims(*names).build().spec.volume_claim_templates
    made.metadata.annotations.update(claim_record(templates, {}))
    return made


KEPT: list[tuple[str, Builder, list[str], list[str]]] = [
    ("lost-one", sts(2).p(2).claims("data"), ["data", "log"], ["data", "log"]),
    ("got-one", sts(2).p(2).claims("data", "log"), ["data"], ["data"]),
    ("lost-all", sts(2).p(2), ["data"], ["data"]),
    ("renamed", sts(2).p(2).claims("disk"), ["data"], ["data"]),
    ("any", sts(2).p(2).unordered().claims("data"), ["data", "log"], ["data", "log"]),
    ("updated", sts(2).p(1).claims("data"), ["data", "log"], ["data"]),
]


@pytest.mark.parametrize(("builder", "before", "volumes"), cases(KEPT))
def test_pods_of_a_kept_revision_get_its_claims(builder: Builder, before: list[str], volumes: list[str]) -> None:
    there = pods("0A", claims=before)
    found = [claim(f"{name}-w-0") for name in before]
    result = planned(builder, there, claims=found, revisions=[recorded("A", 1, *before), revision("B", 2)])
    made = [action for action in result.actions if isinstance(action, Create)]
    assert [one.name for one in made] == [*(f"{name}-w-1" for name in volumes), "w-1"]
    mounted = [one["persistentVolumeClaim"]["claimName"] for one in made[-1].body["spec"]["volumes"]]
    assert mounted == [f"{name}-w-1" for name in volumes]


def test_claims_of_a_kept_revision_go_with_its_pods() -> None:
    builder = sts(1).p(2).claims("data").retention("Retain", "Delete")
    found = [claim(f"{name}-w-{ordinal}") for name in ("data", "log") for ordinal in (0, 1)]
    there = pods("0A 1A", claims=("data", "log"))
    result = planned(builder, there, claims=found, revisions=[recorded("A", 1, "data", "log"), revision("B", 2)])
    assert owners(result) == {"data-w-1": ["Pod"], "log-w-1": ["Pod"]}
    waiting = pods("0AP", claims=("data", "log"))
    result = planned(builder, waiting, claims=found[:2], revisions=[recorded("A", 1, "data", "log"), revision("B", 2)])
    assert summary(result) == ["create PersistentVolumeClaim log-w-0"]


def test_the_present_size_counts_for_claims_of_a_kept_revision() -> None:
    result = planned(sts(1).p(1).claims("data", size="2Gi"), "", revisions=[recorded("A", 1, "data"), revision("B", 2)])
    made = result.actions[0]
    assert isinstance(made, Create)
    assert made.body["spec"]["resources"] == {"requests": {"storage": "2Gi"}}


def test_a_revision_records_its_claim_templates() -> None:
    """They are recorded with the revision, and again when they change while it is the newest one."""
    (made, *_) = planned(sts(1).claims("data"), "0A", revisions=[revision("A", 1)]).actions
    assert isinstance(made, Create)
    record = made.body["metadata"]["annotations"]["apps.kruise.io/volume-claim-templates"]
    assert [one["metadata"]["name"] for one in msgspec.json.decode(record)] == ["data"]
    stored = [recorded("A", 1, "data")]
    there = pods("0A", claims=("data",))
    same = planned(sts(1, "A").claims("data"), there, claims=[claim("data-w-0")], revisions=stored)
    assert same.actions == []
    changed = planned(sts(1, "A"), there, claims=[claim("data-w-0")], revisions=stored)
    assert summary(changed) == ["patch ControllerRevision w-A"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, "null"])
def test_a_record_that_cannot_be_read_is_none(text: str) -> None:
    """Then the pods get those of today's claims that the template mounts."""
    kept = revision("A", 1, template_with_mounts("data"))
    kept.metadata.annotations["apps.kruise.io/volume-claim-templates"] = text
    result = planned(sts(1).p(1).claims("data", "log"), "", revisions=[kept, revision("B", 2)])
    assert summary(result) == ["create PersistentVolumeClaim data-w-0", "create 0A"]


def test_a_record_that_does_not_fit_is_left_out() -> None:
    builder = sts(1).claims("data")
    builder.metadata["annotations"] = {"long": "x" * (256 * 1024 - 100)}
    (made, *_) = planned(builder, "0A", revisions=[revision("A", 1)]).actions
    assert isinstance(made, Create)
    assert "apps.kruise.io/volume-claim-templates" not in made.body["metadata"]["annotations"]


def template_with_mounts(*names: str) -> Json:
    document = template("A")
    document["spec"]["containers"][0]["volumeMounts"] = [{"name": one, "mountPath": f"/{one}"} for one in names]
    return document
