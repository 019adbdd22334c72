"""The writes of an update on a pod, and their resourceVersion (sidecarset.md §7.9, §7.11)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.control.plan import Patch, PatchType, Plan
from flotilla_sidecar.sidecarset.plan import plan
from flotilla_sidecar.sidecarset.snapshot import Options
from tests.testkit.plans import codes
from tests.unit.sidecarset.build import (
    HASH,
    INJECTED,
    NOW,
    PLAIN,
    STATE,
    Builder,
    as_json,
    counts,
    image,
    planned,
    pod,
    record,
    side,
    sidecar,
    snapshot,
    updated,
)

TRUE = {
    "type": "SidecarSetUpgradable",
    "status": "True",
    "reason": "AllSidecarsetUpgradable",
    "message": '{"side":true}',
    "lastTransitionTime": "2026-03-01T12:00:00Z",
}
LONG, NEW = "2026-03-01T10:00:00Z", "2026-03-01T12:00:00Z"


def condition(message: str, status: str, reason: str = "UpdateImmutableField") -> dict[str, Any]:
    """Return the status of a pod with this condition."""
    mine = {
        "type": "SidecarSetUpgradable",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": LONG,
    }
    return {"conditions": [{"type": "Ready", "status": "True"}, mine]}


def chain(result: Plan) -> list[Patch]:
    return [one for one in result.actions if isinstance(one, Patch) and one.resource.kind == "Pod"]


def annotations(result: Plan) -> dict[str, str]:
    """Return all annotations that the plan sets on its only pod."""
    return {
        key: value
        for one in chain(result)
        for key, value in one.body.get("metadata", {}).get("annotations", {}).items()
    }


def test_one_patch_of_the_pod_and_one_of_its_condition() -> None:
    status, main = chain(planned(side("B"), [pod(letter="A")]))
    assert (status.subresource, status.resource_version, status.after_previous) == ("status", "5", False)
    assert status.body == {"status": {"conditions": [TRUE]}}
    assert (main.subresource, main.resource_version, main.after_previous) == ("", "", True)
    assert (main.patch_type, main.uid) == (PatchType.STRATEGIC, "uid-default-p00")
    assert main.body["spec"] == {"containers": [{"name": "proxy", "image": image("B")}]}
    assert main.body["metadata"].keys() == {"annotations", "managedFields"}
    assert main.body["metadata"]["annotations"].keys() == {HASH, STATE}


def test_what_the_pod_remembers() -> None:
    builder = side("B", sidecar("B", "log")).set(
        initContainers=[{"name": "n", "image": "i", "restartPolicy": "Always"}]
    )
    result = planned(builder, [pod(letter="A", base=builder, annotations={PLAIN: plain(builder)})])
    kept = msgspec.json.decode(annotations(result)[HASH])["side"]
    assert kept == {
        "updateTimestamp": "2026-03-01T12:00:00Z",
        "hash": builder.build().metadata.annotations[HASH],
        "sidecarSetName": "side",
        "sidecarList": ["log", "n", "proxy"],
        "controllerRevision": result.status.body["status"]["latestRevision"] if result.status else "",
    }
    state = msgspec.json.decode(annotations(result)[STATE])["side"]
    assert state["revision"] == kept["hash"]
    assert state["lastContainerStatuses"] == {"proxy": {"imageID": "id-A"}, "log": {"imageID": "id-A"}}


def plain(builder: Builder) -> str:
    return as_json({"side": record(builder.build().metadata.annotations[PLAIN])})


def test_a_pod_that_was_judged_before_costs_one_write() -> None:
    there = pod(letter="A", status=condition('{"side":true}', "True", "AllSidecarsetUpgradable"))
    (main,) = chain(planned(side("B"), [there]))
    assert (main.subresource, main.resource_version) == ("", "5")


def test_field_owners_are_kept_where_somebody_wants_them() -> None:
    view = msgspec.structs.replace(snapshot(side("B"), [pod(letter="A")]), options=Options(drop_field_owners=False))
    assert "managedFields" not in chain(plan(view, NOW))[-1].body["metadata"]
    applied = pod(letter="A", metadata={"managedFields": [{"manager": "kubectl", "operation": "Apply"}]})
    assert "managedFields" not in chain(planned(side("B"), [applied]))[-1].body["metadata"]


def test_only_images_that_differ_are_written() -> None:
    builder = Builder([sidecar("B"), sidecar("A", "log")])
    there = pod(letter="A", base=Builder([sidecar("A"), sidecar("A", "log")]))
    assert chain(planned(builder, [there]))[-1].body["spec"] == {"containers": [{"name": "proxy", "image": image("B")}]}


def test_a_container_among_the_init_containers_is_left_alone() -> None:
    builder = Builder([sidecar("B"), sidecar("B", "log")])
    base = Builder([sidecar("A"), sidecar("A", "log")])
    there = pod(letter="A", base=base)
    spec = msgspec.structs.replace(
        there.spec, containers=there.spec.containers[:2], init_containers=there.spec.containers[2:]
    )
    status = msgspec.structs.replace(there.status, container_statuses=there.status.container_statuses[:2])
    result = planned(builder, [msgspec.structs.replace(there, spec=spec, status=status)])
    assert chain(result)[-1].body["spec"] == {"containers": [{"name": "proxy", "image": image("B")}]}


def test_a_pod_that_has_the_images_is_written_all_the_same() -> None:
    """Then it counts as updated."""
    there = pod(letter="B", annotations={HASH: as_json({"side": record("older")})})
    result = planned(side("B"), [there])
    assert updated(result) == []
    (only,) = chain(result)
    assert only.subresource == "status", "with the condition, in one write"
    assert msgspec.json.decode(annotations(result)[STATE])["side"]["lastContainerStatuses"] == {}


def test_what_other_sidecarsets_have_written_stays() -> None:
    held = {
        HASH: as_json({"other": record("o", "other"), "side": record("older")}),
        STATE: '{"other": {"revision": "o", "unknown": [1]}, "side": {"revision": "r", "updateTimestamp": "t",'
        ' "lastContainerStatuses": {"old": {"imageID": "i"}}}}',
        INJECTED: "other,side",
    }
    result = planned(side("B"), [pod(letter="A", annotations=held)])
    assert msgspec.json.decode(annotations(result)[HASH])["other"] == record("o", "other")
    states = msgspec.json.decode(annotations(result)[STATE])
    assert states["other"] == {"revision": "o", "unknown": [1]}
    assert states["side"] == {
        "revision": "r",
        "updateTimestamp": "t",
        "lastContainerStatuses": {"old": {"imageID": "i"}, "proxy": {"imageID": "id-A"}},
    }
    assert PLAIN not in annotations(result)


def test_records_of_very_old_pods_are_converted() -> None:
    held = {HASH: '{"side": "older", "other": "x"}'}
    result = planned(side("B"), [pod(letter="A", annotations=held)])
    other = msgspec.json.decode(annotations(result)[HASH])["other"]
    assert (other["hash"], other["sidecarSetName"]) == ("x", "other")


def test_a_very_old_pod_that_is_updated() -> None:
    builder = side("B")
    hashes = builder.build().metadata.annotations
    held = {HASH: as_json({"side": hashes[HASH]}), PLAIN: as_json({"side": hashes[PLAIN]})}
    assert counts(planned(builder, [pod(letter="B", annotations=held)])) == (1, 1, 1, 1)


def test_an_image_that_the_kubelet_has_not_reported_is_remembered_by_name() -> None:
    """The kubelet may still start it; that is not the new one."""
    statuses = [{"name": "main", "image": "shop:1"}, {"name": "proxy", "image": image("A")}]
    there = pod(letter="A", flags="P", status={"containerStatuses": statuses})
    state = msgspec.json.decode(annotations(planned(side("B"), [there]))[STATE])["side"]
    assert state["lastContainerStatuses"] == {"proxy": {"image": image("A")}}
    late = [
        {"name": "main", "image": "shop:1", "ready": True},
        {"name": "proxy", "image": image("A"), "imageID": "id-A"},
    ]
    starting = pod(letter="B", annotations={STATE: as_json({"side": state})}, status={"containerStatuses": late})
    assert counts(planned(side("B"), [starting])) == (1, 1, 0, 0)


METADATA = [
    {"patchPolicy": "Retain", "annotations": {"kept": "new", "added": "new"}},
    {"patchPolicy": "Overwrite", "annotations": {"set": "new"}},
    {"patchPolicy": "MergePatchJson", "annotations": {"json": '{"b":2}', "fresh": '{"b": 2}'}},
]


def test_annotations_of_the_user() -> None:
    held = {"kept": "old", "set": "old", "json": '{"a": 1}'}
    written = annotations(planned(side("B").set(patchPodMetadata=METADATA), [pod(letter="A", annotations=held)]))
    assert {key: value for key, value in written.items() if "/" not in key} == {
        "added": "new",
        "set": "new",
        "json": '{"a":1,"b":2}',
        "fresh": '{"b": 2}',
    }


def test_a_pod_whose_annotations_cannot_be_merged_is_passed_over() -> None:
    """It is reported, costs nothing, and does not delay the update of others."""
    bad = pod("bad", "A", age=0, annotations={"json": "no JSON"})
    result = planned(side("B").set(patchPodMetadata=METADATA).m(1), [bad, pod("good", "A", age=10)])
    assert updated(result) == ["good"]
    (reason,) = [one for one in result.reasons if one.code == "PodUnreadable"]
    assert reason.objects == ("bad",)
    assert "annotation json cannot be merged" in reason.message
    assert result.errors == (("update", reason.message),), "it is tried again: its repair wakes nobody"
    again = planned(side("B").set(patchPodMetadata=METADATA), [bad])
    assert codes(again) == {"PodUnreadable"}


# -- the condition


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param(None, ("False", '{"side":false}', NEW), id="never judged"),
        pytest.param(("{}", "True"), ("False", '{"side":false}', NEW), id="good until now"),
        pytest.param(('{"o":false}', "False"), ("False", '{"o":false,"side":false}', LONG), id="bad for another"),
        pytest.param(('{"o":true,"side":true}', "True"), ("False", '{"o":true,"side":false}', NEW), id="worse"),
        pytest.param(("no JSON", "True"), ("False", '{"side":false}', NEW), id="unreadable"),
        pytest.param(('{"side":false}', "False"), None, id="said already"),
    ],
)
def test_what_a_pod_says_that_cannot_be_updated(
    held: tuple[str, str] | None, expected: tuple[str, str, str] | None
) -> None:
    more = {} if held is None else {"status": condition(*held)}
    patches = chain(planned(side("B"), [pod(letter="A", flags="?", **more)]))
    if expected is None:
        assert patches == []
        return
    (patch,) = patches
    (said,) = patch.body["status"]["conditions"]
    assert (patch.subresource, patch.resource_version) == ("status", "5")
    assert (said["status"], said["message"], said["lastTransitionTime"]) == expected
    assert said["reason"] == "UpdateImmutableField"


def test_one_that_cannot_update_it_keeps_the_condition_false() -> None:
    there = pod(letter="A", status=condition('{"o":false,"side":false}', "False"))
    (said,) = chain(planned(side("B"), [there]))[0].body["status"]["conditions"]
    assert (said["status"], said["reason"], said["message"]) == (
        "False",
        "UpdateImmutableField",
        '{"o":false,"side":true}',
    )


def test_the_number_of_pods_that_cannot_be_updated_is_told_when_it_grows() -> None:
    """And with a new spec; not in each pass."""
    marked = pod("p00", "A", "?", status=condition('{"side":false}', "False"))
    fresh = pod("p01", "A", "?")
    observed = side("B").stored(observedGeneration=3)
    (event,) = planned(observed, [marked, fresh]).events
    assert (event.reason, event.warning) == ("NotUpgradablePods", False)
    assert "found 2 not upgradable pod(s) in this round" in event.message
    assert planned(observed, [marked]).events == ()
    assert len(planned(side("B").stored(observedGeneration=2), [marked]).events) == 1


def test_those_that_cannot_be_updated_are_marked_beside_the_others() -> None:
    result = planned(side("B").m(2), [pod("p00", "A", "?"), pod("p01", "A"), pod("p02", "A")])
    assert len(result.stages) == 1
    assert updated(result) == ["p01", "p02"]
    assert {one.name for one in chain(result)} == {"p00", "p01", "p02"}
    assert codes(result) == {"Updating", "NotUpgradable"}


@pytest.mark.parametrize("strategy", [{"paused": True}, {"type": "NotUpdate"}])
def test_nobody_is_judged_while_nobody_is_updated(strategy: dict[str, Any]) -> None:
    assert planned(side("B").strategy(**strategy), "A?").stages == ()


def test_those_that_are_not_chosen_are_not_judged() -> None:
    builder = side("B").strategy(selector={"matchLabels": {"no": "one"}})
    assert planned(builder, "A?").stages == ()
