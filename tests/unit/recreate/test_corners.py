"""Requests and statuses of other writers, and their reasons (containerrecreaterequest.md §5)."""

from datetime import timedelta

import pytest

from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.node.reports import RecreateReport
from flotilla_jobs.containerrecreate.merge import merged
from flotilla_jobs.containerrecreate.snapshot import pod_uid
from tests.testkit.documents import Json, decoded
from tests.unit.recreate.world import START, World, request_document, state


def request(status: Json | None = None, **labels: str) -> ContainerRecreateRequest:
    document = request_document("app")
    document["metadata"]["labels"] = labels
    document["status"] = status or {}
    return decoded(document, ContainerRecreateRequest)


def test_the_pod_that_was_meant():
    assert pod_uid(request(**{"crr.apps.kruise.io/pod-uid": "p1"})) == "p1"
    assert pod_uid(request()) == ""


@pytest.mark.parametrize("phase", ["Pending", "Recreating"])
def test_a_phase_of_another_writer_is_overruled_by_any_report(phase: str):
    assert merged(request({"phase": "Odd"}), RecreateReport(phase=phase), START).phase == phase


def test_a_container_that_came_up_after_the_end_of_its_request_was_killed():
    over = request({"phase": "Completed", "completionTime": "2026-03-01T08:00:00Z"})
    (found,) = merged(over, RecreateReport(states=[state("app", "Succeeded")]), START).container_recreate_states
    assert (found.phase, found.is_killed) == ("Failed", True)


def test_the_request_that_is_waited_for_is_named():
    documents = [request_document("app", name=name) for name in ("first", "second", "third")]
    for seconds, document in enumerate(documents):
        at = START - timedelta(seconds=60 - seconds)
        document["metadata"]["creationTimestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    documents[2]["status"] = {"phase": "Pending"}
    world = World(*documents)
    assert world.passes(name="third") == []
    messages = [reason.sentence for reason in world.last.reasons]
    assert messages == ["waiting: first, second to be done first: the agent works on one request of a pod at a time"]


def test_the_unready_grace_period_is_the_cause_of_its_write():
    world = World(request_document("app", strategy={"unreadyGracePeriodSeconds": 10}))
    world.put(RECREATE_REQUEST, merge(world.request(), {"status": {"phase": "Recreating"}}))
    causes = world.passes()
    assert causes == ["request unready grace period", "pod unready grace period", "request unready grace period"]


def over(world: World) -> None:
    """Report as the agent that everything is done, then send a late report."""
    world.report(phase="Recreating")
    world.report(state("app", "Recreating", killed=True), phase="Recreating")
    world.report(phase="Completed", message="why")


def test_what_comes_late_is_written_although_the_request_waits_for_its_deletion():
    world = World(request_document("app", ttlSecondsAfterFinished=60))
    over(world)
    world.report(state("app", "Failed", "late", killed=True), phase="Completed")
    assert [one["phase"] for one in world.status()["containerRecreateStates"]] == ["Failed"]
    assert "WaitingForTtl" in world.codes()


def test_a_request_that_is_being_deleted_is_not_deleted_once_more():
    world = World(request_document("app", ttlSecondsAfterFinished=60))
    over(world)
    world.put(RECREATE_REQUEST, merge(world.request(), {"metadata": {"finalizers": ["example.com/held"]}}))
    world.delete_request()
    assert "delete" not in world.passes(120)
    assert world.codes() == ["Deleting"]


def test_the_grace_period_leaves_other_conditions_alone():
    other = {"type": "Other", "status": "True"}
    document = request_document("app", strategy={"unreadyGracePeriodSeconds": 10})
    document["status"] = {"phase": "Recreating", "conditions": [other]}
    world = World(document)
    world.passes()
    assert [one["type"] for one in world.status()["conditions"]] == ["Other", "PreRecreateGrace"]


def test_a_request_whose_forerunner_is_gone_waits_for_another():
    document = request_document("app")
    document["status"] = {"phase": "Pending"}
    world = World(document)
    world.passes()
    message = world.last.reasons[0].sentence
    assert message == "waiting: another request to be done first: the agent works on one request of a pod at a time"
