"""Changes by reports, and fields that no report can change (containerrecreaterequest.md §5, §7.5)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest, RecreateState
from flotilla_common.node.reports import RecreateReport
from flotilla_jobs.containerrecreate.merge import MESSAGE_LIMIT, absorbed, merged, problem
from tests.testkit.documents import decoded
from tests.unit.recreate.world import START, request_document, state

PHASES = ["", "Pending", "Recreating", "Completed"]
STATES = st.builds(
    RecreateState,
    name=st.sampled_from(["app", "side"]),
    phase=st.sampled_from(["Pending", "Recreating", "Succeeded", "Failed"]),
    message=st.sampled_from(["", "kill container error: x"]),
    is_killed=st.booleans(),
)
REPORTS = st.builds(
    RecreateReport,
    phase=st.sampled_from(PHASES),
    message=st.sampled_from(["", "why"]),
    states=st.none() | st.lists(STATES, max_size=2, unique_by=lambda one: one.name),
)


def request(*containers: str) -> ContainerRecreateRequest:
    document = request_document(*(containers or ("app", "side")))
    return decoded(document, ContainerRecreateRequest)


@given(st.lists(REPORTS, max_size=8))
def test_a_status_only_goes_forward(reports: list[RecreateReport]):
    current = request()
    for report in reports:
        assert problem(report, current.spec) == ""
        before = current.status
        current = msgspec.structs.replace(current, status=merged(current, report, START))
        after = current.status
        assert PHASES.index(after.phase) >= PHASES.index(before.phase)
        assert (after.completion_time is not None) == (after.phase == "Completed")
        was = {one.name: one for one in before.container_recreate_states}
        for one in after.container_recreate_states:
            old = was.get(one.name)
            if old is not None:
                assert one.is_killed or not old.is_killed
                was_final = old.phase in ("Succeeded", "Failed")
                assert not was_final or (one.phase, one.message) == (old.phase, old.message)
        names = [one.name for one in after.container_recreate_states]
        assert names == sorted(names)  # the order of the spec
        if after.phase == "Completed":
            assert all(one.phase != "Recreating" for one in after.container_recreate_states)
        if before.phase == "Completed":
            assert (after.message, after.completion_time) == (before.message, before.completion_time)


@given(st.lists(REPORTS, max_size=4), REPORTS)
def test_a_repeated_report_changes_nothing(reports: list[RecreateReport], last: RecreateReport):
    current = request()
    for report in [*reports, last]:
        current = msgspec.structs.replace(current, status=merged(current, report, START))
    assert absorbed(current, last, START)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(RecreateReport(phase="Done"), "unknown phase 'Done'", id="unknown phase"),
        pytest.param(
            RecreateReport(states=[state("db", "Pending")]),
            "container 'db' is not in the request",
            id="unknown container",
        ),
        pytest.param(
            RecreateReport(states=[state("app", "Pending"), state("app", "Failed")]),
            "a container is reported twice",
            id="twice",
        ),
        pytest.param(
            RecreateReport(states=[state("app", "Completed")]),
            "unknown phase 'Completed' of container app",
            id="a phase of requests only",
        ),
        pytest.param(RecreateReport(), "", id="nothing new"),
    ],
)
def test_reports_that_cannot_be(report: RecreateReport, expected: str):
    assert problem(report, request().spec) == expected


def test_long_messages_are_cut():
    report = RecreateReport(phase="Completed", message="x" * 5000, states=[state("app", "Failed", "y" * 5000)])
    status = merged(request("app"), report, START)
    assert len(status.message) == len(status.container_recreate_states[0].message) == MESSAGE_LIMIT
