"""The worked examples of imagepull.md §12 for ImagePullJobs, and the rules behind them (§5, §8.1)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.mirror.table import Table
from flotilla_jobs.imagepull.selection import matching_pods, selected
from tests.testkit.documents import Json
from tests.testkit.plans import codes
from tests.unit.imagepull.build import (
    NOW,
    begun,
    entry,
    failed,
    fresh,
    job,
    node_image,
    planned,
    pod,
    pulling,
    pushed,
    status_of,
    succeeded,
    summary,
    tag,
    written_tag,
)

ROWS = [
    pytest.param({}, fresh(), ["push n1"], {"desired": 5, "active": 0}, "progress 0.0%", id="1: first pass"),
    pytest.param({}, [pushed("n1"), *fresh("n2", "n3", "n4", "n5")], [], {"active": 1}, "0.0%", id="1: second pass"),
    pytest.param(
        {},
        [succeeded("n1"), *fresh("n2", "n3", "n4", "n5")],
        ["push n2"],
        {"active": 0, "succeeded": 1},
        "job is running, progress 20.0%",
        id="2",
    ),
    pytest.param(
        {"parallelism": 3},
        [pulling("n1"), pushed("n2"), *fresh("n3", "n4", "n5")],
        ["push n3"],
        {"active": 2},
        "0.0%",
        id="3",
    ),
    pytest.param({"parallelism": 0}, fresh(), [], {"desired": 5, "active": 0}, "0.0%", id="4: paused"),
    pytest.param({"parallelism": 2}, fresh(), ["push n1", "push n2"], {"active": 0}, "0.0%", id="4: raised"),
    pytest.param({"parallelism": "2"}, fresh(), ["push n1", "push n2"], {"active": 0}, "0.0%", id="5"),
    pytest.param({}, [], [], {"desired": 0}, "job has completed", id="7"),
    pytest.param(
        {"completionPolicy": {"type": "Never"}}, [], [], {"desired": 0}, "job is running, no progress", id="8: none"
    ),
    pytest.param(
        {"completionPolicy": {"type": "Never"}}, fresh("n1"), ["push n1"], {"desired": 1}, "0.0%", id="8: one appears"
    ),
    pytest.param(
        {},
        [succeeded("n1"), failed("n2"), succeeded("n3")],
        [],
        {"desired": 3, "succeeded": 2, "failed": 1, "failedNodes": ["n2"]},
        "job has completed",
        id="11",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 30}},
        [succeeded("n1"), pulling("n2"), *fresh("n3")],
        [],
        {"succeeded": 1, "failed": 2, "active": 0, "failedNodes": ["n2", "n3"]},
        "job exceeds activeDeadlineSeconds",
        id="12",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 30}},
        [succeeded("n1"), failed("n2")],
        [],
        {"succeeded": 1, "failed": 1},
        "job has completed",
        id="13",
    ),
    pytest.param(
        {},
        [node_image("n1", [tag("J", version=1)], [entry("Succeeded", version=0)])],
        [],
        {"active": 1, "succeeded": 0},
        "0.0%",
        id="18",
    ),
    pytest.param(
        {"completionPolicy": {"type": "Never"}},
        [succeeded("n1"), failed("n2")],
        [],
        {"succeeded": 1, "failed": 1},
        "job is running, progress 100.0%",
        id="Never does not complete",
    ),
    pytest.param({}, [succeeded("n1"), *fresh("n2", "n3")], ["push n2"], {}, "progress 33.3%", id="one decimal"),
]


@pytest.mark.parametrize(("spec", "nodes", "writes", "counts", "message"), ROWS)
def test_a_pass(spec: Json, nodes: list[NodeImage], writes: list[str], counts: Json, message: str):
    before = begun(30)
    plan = planned(job(status=before, **spec), nodes)
    assert summary(plan) == writes
    status = status_of(plan, before)
    assert {name: status.get(name) for name in counts} == counts
    assert status["message"].endswith(message)
    done = message.startswith(("job has", "job exceeds"))
    assert ("completionTime" in status) == done


@pytest.mark.parametrize("before", [{}, begun()], ids=["first", "later"])
def test_a_status_that_says_so_already_is_not_written(before: Json):
    nodes = [succeeded("n1"), pulling("n2")]
    status = status_of(planned(job(status=before), nodes), before)
    assert status["startTime"]
    assert planned(job(status=status), nodes).status is None


def test_first_status_is_complete():
    plan = planned(job(), fresh("n1"))
    assert plan.status is not None
    assert plan.urgent_status
    assert status_of(plan) == {
        "startTime": "2026-03-01T12:00:00Z",
        "desired": 1,
        "active": 0,
        "succeeded": 0,
        "failed": 0,
        "message": "job is running, progress 0.0%",
    }


def test_a_deadline_is_waited_for():
    one = job(status=begun(30), completionPolicy={"type": "Always", "activeDeadlineSeconds": 100})
    wake = planned(one, fresh("n1")).wake_at
    assert wake is not None
    assert (wake - NOW).total_seconds() == 70


TABLE = Table[NodeImage]()
for _image in (*fresh("n1", "n2", "n3"), node_image("n4", labels={"pool": "a"})):
    TABLE.apply(_image)
PODS = [
    pod("a", "n1"),
    pod("b", "n1"),
    pod("c", "n3"),
    pod("d", ""),
    pod("e", "nope"),
    pod("f", "n2", labels={"app": "db"}),
]


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        pytest.param({}, ["n1", "n2", "n3", "n4"], id="no selector"),
        pytest.param({"selector": {}}, ["n1", "n2", "n3", "n4"], id="empty selector"),
        pytest.param({"selector": {"names": []}}, ["n1", "n2", "n3", "n4"], id="empty names"),
        pytest.param({"selector": {"names": ["n2", "nope"]}}, ["n2"], id="6: missing names are skipped"),
        pytest.param({"selector": {"matchLabels": {"pool": "a"}}}, ["n4"], id="labels"),
        pytest.param({"podSelector": {"matchLabels": {"app": "web"}}}, ["n1", "n3"], id="9: pods"),
        pytest.param({"podSelector": {}}, ["n1", "n2", "n3"], id="all pods"),
    ],
)
def test_selection(spec: Json, names: list[str]):
    one = job(**spec)
    found = selected(one, TABLE, matching_pods(one, PODS))
    assert [image.metadata.name for image in found] == names


@pytest.mark.parametrize(
    "gone", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}]
)
def test_10_finished_pods_do_not_count(gone: Json):
    one = job(podSelector={"matchLabels": {"app": "web"}})
    assert matching_pods(one, [pod("c", "n3", **gone)]) == []


def test_order_of_a_workload_comes_before_names():
    plan = planned(job(status=begun(), parallelism=3), fresh("n1", "n2", "n3", "n4"), order={"n3": 0, "n2": 1})
    assert summary(plan) == ["push n3", "push n2", "push n1"]


def test_a_pushed_tag():
    plan = planned(job(status=begun(), pullPolicy={"timeoutSeconds": 60, "backoffLimit": 2}), fresh("n1"))
    written = written_tag(plan, "n1")
    limits = written.pop("pullPolicy")
    assert written == {
        "tag": "1.25",
        "createdAt": "2026-03-01T12:00:00Z",
        "imagePullPolicy": "IfNotPresent",
        "ownerReferences": [
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "ImagePullJob",
                "namespace": "ns",
                "name": "J",
                "uid": "uid-J",
            }
        ],
    }
    ttl = limits.pop("ttlSecondsAfterFinished")
    assert limits == {"timeoutSeconds": 60, "backoffLimit": 2}
    assert 120 + 300 <= ttl < 120 + 600
    (push,) = plan.actions
    assert (getattr(push, "uid", ""), getattr(push, "resource_version", "")) == ("uid-n1", "7")


@pytest.mark.parametrize(
    ("spec", "low", "high", "deadline"),
    [
        pytest.param({}, 1800 + 300, 1800 + 600, None, id="timeout x retries"),
        pytest.param({"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 0}}, 300, 600, None, id="TTL"),
        pytest.param(
            {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 700}}, 1000, 1300, 700, id="deadline"
        ),
        pytest.param({"completionPolicy": {"type": "Never"}}, 85800, 87000, 1800, id="Never"),
        pytest.param(
            {"completionPolicy": {"type": "Never"}, "pullPolicy": {"timeoutSeconds": 3600}},
            85800,
            87000,
            3600,
            id="Never with a long timeout",
        ),
        pytest.param({"pullPolicy": {"timeoutSeconds": 2**31 - 1}}, 2**31 - 1, 2**31, None, id="within 32 bits"),
    ],
)
def test_limits_of_a_tag(spec: Json, low: int, high: int, deadline: int | None):
    limits = written_tag(planned(job(status=begun(), **spec), fresh("n1")), "n1")["pullPolicy"]
    assert low <= limits["ttlSecondsAfterFinished"] < high
    assert limits.get("activeDeadlineSeconds") == deadline


def test_ttls_are_spread():
    plan = planned(job(status=begun(), parallelism=5), fresh())
    assert len({written_tag(plan, name)["pullPolicy"]["ttlSecondsAfterFinished"] for name in ("n1", "n2", "n3")}) > 1


def test_15_a_second_job_starts_a_new_round():
    plan = planned(job("J2", status=begun(), imagePullPolicy="Always"), [succeeded("n1")])
    written = written_tag(plan, "n1")
    assert (written["version"], [one["name"] for one in written["ownerReferences"]]) == (1, ["J", "J2"])
    assert (written["createdAt"], written["imagePullPolicy"]) == ("2026-03-01T12:00:00Z", "Always")
    assert written["pullPolicy"] == {"ttlSecondsAfterFinished": 900}
    shared = node_image("n1", [tag("J", "J2", version=1)], [entry("Succeeded")])
    assert status_of(planned(job(status=begun()), [shared]))["active"] == 1


@pytest.mark.parametrize(
    ("entries", "version"),
    [pytest.param([entry("Succeeded", version=3)], 4, id="17: remembered"), pytest.param([], None, id="17: gone")],
)
def test_a_tag_that_comes_back(entries: list[Json], version: int | None):
    one = job(status=begun(), completionPolicy={"type": "Never"})
    assert written_tag(planned(one, [node_image("n1", [], entries)]), "n1").get("version") == version


def test_other_tags_of_the_image_stay_and_all_are_in_order():
    (push,) = planned(job(status=begun()), [node_image("n1", [tag("X", name="9"), tag("X", name="0")])]).actions
    body: Any = getattr(push, "body", {})
    assert [one["tag"] for one in body["spec"]["images"]["nginx"]["tags"]] == ["0", "1.25", "9"]


def test_19_a_node_that_is_gone_does_not_count():
    status = status_of(planned(job(status=begun()), [succeeded("n1")]), begun())
    assert (status["desired"], status["message"]) == (1, "job has completed")


def test_sandbox_metadata_goes_along_and_replaces_what_was_there():
    held = node_image("n1", [tag("X", name="9")])
    plan = planned(job(status=begun(), sandboxConfig={"labels": {"a": "b"}}), [held])
    (push,) = plan.actions
    body: Any = getattr(push, "body", {})
    assert body["spec"]["images"]["nginx"]["sandboxConfig"] == {"labels": {"a": "b"}}


FINALIZER = "apps.kruise.io/deletion-protection"


def test_the_finalizer_comes_before_everything_else():
    plan = planned(job(meta={"finalizers": ["x"]}), fresh("n1"))
    assert summary(plan) == ["patch ImagePullJob J", "push n1"]
    body: Any = getattr(plan.actions[0], "body", {})
    assert body == {"metadata": {"finalizers": ["x", FINALIZER]}}


def over(seconds: float = 60) -> Json:
    return {"startTime": begun(600)["startTime"], "completionTime": begun(seconds)["startTime"], "desired": 1}


@pytest.mark.parametrize(
    ("one", "writes", "wakes"),
    [
        pytest.param(job(status=over()), ["patch ImagePullJob J"], None, id="the finalizer goes"),
        pytest.param(job(status=over(), meta={"finalizers": []}), [], None, id="nothing is left to do"),
        pytest.param(
            job(status=over(), completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 0}),
            ["patch ImagePullJob J", "delete ImagePullJob J"],
            None,
            id="14",
        ),
        pytest.param(
            job(
                status=over(),
                meta={"finalizers": []},
                completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 100},
            ),
            [],
            40,
            id="its time has not come",
        ),
        pytest.param(
            job(meta={"deletionTimestamp": "2026-03-01T11:00:00Z"}), ["patch ImagePullJob J"], None, id="deleted"
        ),
    ],
)
def test_the_end_of_a_job(one: Any, writes: list[str], wakes: float | None):
    plan = planned(one, fresh("n1"))
    assert summary(plan) == writes
    assert plan.status is None
    assert (None if plan.wake_at is None else (plan.wake_at - NOW).total_seconds()) == wakes


def test_a_job_of_a_running_list_is_not_deleted_by_its_ttl():
    one = job(status=over(), completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 0})
    assert summary(planned(one, of_running_list=True)) == ["patch ImagePullJob J"]


@pytest.mark.parametrize(
    ("spec", "nodes", "expected"),
    [
        pytest.param({}, [], {"NoMatchingNodes"}, id="no nodes"),
        pytest.param({"parallelism": 0}, fresh(), {"Paused"}, id="paused"),
        pytest.param({}, [pulling("n1"), *fresh("n2")], {"WaitingForNodes"}, id="waiting"),
        pytest.param(
            {}, [failed("n1", "manifest unknown"), pulling("n2")], {"FailedOnNodes", "WaitingForNodes"}, id="f"
        ),
    ],
)
def test_reasons(spec: Json, nodes: list[NodeImage], expected: set[str]):
    plan = planned(job(status=begun(), **spec), nodes)
    assert codes(plan) == expected


def test_a_failure_is_quoted():
    plan = planned(job(status=begun()), [failed("n1", "manifest unknown"), pulling("n2")])
    assert any("n1 says: manifest unknown" in reason.message for reason in plan.reasons)


def test_what_cannot_be_selected_is_said():
    plan = planned(job(), problem="matchLabels: bad")
    assert (codes(plan), plan.errors) == ({"InvalidSelector"}, (("plan", "matchLabels: bad"),))
    assert plan.stages == ()


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({"image": "nginx:Bad tag"}, "spec.image: invalid reference format", id="image"),
        pytest.param({"parallelism": "many"}, "spec.parallelism: 'many' is not an integer", id="parallelism"),
    ],
)
def test_what_was_written_past_admission_is_said(spec: Json, told: str):
    plan = planned(job(status=begun(), **spec), fresh("n1"))
    assert codes(plan) == {"InvalidSpec"}
    assert plan.errors[0][1].startswith(told)
    assert plan.stages == ()
