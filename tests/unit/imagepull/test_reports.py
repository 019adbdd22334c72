"""Reports that reach the status of a NodeImage (nodeagent.md §3.6), and the times of their answers."""

import asyncio

import msgspec
import pytest

from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.control.report_buffer import ReportBuffer
from flotilla_common.node.reports import Answer, NodeImageReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.nodeimage.controller import CONTROLLER, IMAGES
from flotilla_jobs.nodeimage.status import reported
from tests.support.controller_context import FakeContext
from tests.unit.imagepull.build import entry, node_image, tag

HERE = Sender("n1", "", "n1")


def said(phase: str = "Pulling") -> NodeImageReport:
    """Return a report, which has the shape of a status."""
    return NodeImageReport(uid="uid-n1", status=node_image("n1", [tag("J")], [entry(phase)]).status)


def inbox(context: FakeContext) -> ReportBuffer[NodeImage, NodeImageReport]:
    assert CONTROLLER.reports is not None
    context.put(IMAGES, node_image("n1", [tag("J")]))
    return ReportBuffer(context, IMAGES, CONTROLLER.reports)


async def test_a_report_is_answered_when_the_status_says_it() -> None:
    context = FakeContext()
    answer = asyncio.create_task(inbox(context).receive(HERE, said()))
    await asyncio.sleep(0)
    assert (context.replanned, answer.done()) == ([("", "n1")], False)
    written = node_image("n1", [tag("J")], [entry("Pulling")], resourceVersion="9")
    status = reported(written, said().status)  # with counts
    context.put(IMAGES, msgspec.structs.replace(written, status=status))
    assert await answer == Answer(accepted=True, resource_version="9")


@pytest.mark.parametrize(
    ("sender", "report", "why"),
    [
        pytest.param(Sender("n2", "", "n1"), said(), "node n2 may not report for n1", id="another's"),
        pytest.param(HERE, said("Odd"), "nginx:1.25: there is no phase 'Odd'", id="no status"),
        pytest.param(HERE, NodeImageReport(uid="earlier"), "there is no object with uid earlier", id="an earlier one"),
        pytest.param(
            Sender("n2", "", "n2"),
            NodeImageReport(uid="u"),
            "there is no object with uid u",
            id="of a node without a NodeImage",
        ),
    ],
)
async def test_what_is_refused(sender: Sender, report: NodeImageReport, why: str) -> None:
    context = FakeContext()
    assert await inbox(context).receive(sender, report) == Answer(why=why)
    assert context.replanned == []


async def test_another_replica_answers_for_its_nodes() -> None:
    context = FakeContext()
    context.mine = False
    assert await inbox(context).receive(HERE, said()) is None
