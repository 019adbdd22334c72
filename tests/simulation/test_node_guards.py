"""Each guard that image pulls and restarts rest on is needed: taken out, the simulation fails."""

# pyright: reportPrivateUsage=false
# Taking a guard out means reaching into what it guards.

import asyncio

import msgspec
import pytest

from flotilla_common.api.kinds.nodeimage.types import ImageTag, NodeImage, TagStatus
from flotilla_common.bus.interface import Message
from flotilla_common.control.keystate import Key
from flotilla_common.control.report_buffer import ReportBuffer
from flotilla_common.node.reports import Answer, NodeImageReport
from flotilla_jobs.nodeimage import status
from flotilla_nodeagent import reader
from flotilla_nodeagent.reader import Ended, Heartbeat, Object
from flotilla_nodeagent.reader import read_delivery as real
from tests.simulation.nodes.machine import DiskJournal
from tests.simulation.perturbation.removal import Removal, each, shown_to_be_needed
from tests.testkit.tables import cases

PullInbox = ReportBuffer[NodeImage, NodeImageReport]


def no_rounds(patch: pytest.MonkeyPatch) -> None:
    """Accept a report of any round of pulls."""
    newer = status._newer

    def take(tag: ImageTag, held: TagStatus | None, said: TagStatus | None) -> TagStatus | None:
        return newer(tag, held, None if said is None else msgspec.structs.replace(said, version=tag.version))

    patch.setattr(status, "_newer", take)


def no_final_word(patch: pytest.MonkeyPatch) -> None:
    """Let the result of a round change."""
    newer = status._newer

    def take(tag: ImageTag, held: TagStatus | None, said: TagStatus | None) -> TagStatus | None:
        return newer(tag, None, said) or held

    patch.setattr(status, "_newer", take)


def no_identity(patch: pytest.MonkeyPatch) -> None:
    """Accept a report about any NodeImage of that name."""
    written = PullInbox._written

    async def find(inbox: PullInbox, node: str, key: Key, uid: str) -> NodeImage | None:
        del node, uid
        return inbox._table.get(*key)

    async def taken(inbox: PullInbox, key: Key, report: NodeImageReport) -> Answer | None:
        image = inbox._table.get(*key)
        named = report if image is None else msgspec.structs.replace(report, uid=image.metadata.uid)
        return await written(inbox, key, named)

    patch.setattr(ReportBuffer, "_find", find)
    patch.setattr(ReportBuffer, "_written", taken)


def no_waiting_for_the_write(patch: pytest.MonkeyPatch) -> None:
    """Accept a report as soon as it arrives."""
    written = PullInbox._written
    writing: list[asyncio.Future[Answer | None]] = []

    async def heard(inbox: PullInbox, key: Key, report: NodeImageReport) -> Answer | None:
        writing.append(asyncio.ensure_future(written(inbox, key, report)))
        return Answer(accepted=True)

    patch.setattr(ReportBuffer, "_written", heard)


def no_journal(patch: pytest.MonkeyPatch) -> None:
    """Start an agent without the journal of its begun work."""

    def load(journal: DiskJournal) -> None:
        del journal

    patch.setattr(DiskJournal, "load", load)


def no_counting(patch: pytest.MonkeyPatch) -> None:
    """Let an agent accept deliveries without requesting missed ones."""

    def read_delivery(message: Message) -> Object | Heartbeat | Ended:
        read = real(message)
        return Heartbeat(None) if isinstance(read, Heartbeat) else read

    def take(follow: reader.Reader, delivered: Object) -> None:
        follow._expected = delivered.number
        counted(follow, delivered)

    counted = reader.Reader._take
    patch.setattr(reader, "read_delivery", read_delivery)
    patch.setattr(reader.Reader, "_take", take)


GUARDS: dict[str, tuple[Removal, str, list[list[str]]]] = {
    "reports of other rounds do not count": (no_rounds, "reports-of-other-rounds", [[]]),
    "what a round came to stays": (no_final_word, "report-on-what-is-over", [[]]),
    "reports on a namesake do not count": (no_identity, "reports-of-other-rounds", [[]]),
    "accepted is written": (
        no_waiting_for_the_write,
        "pulled-node-by-node",
        each("crash-before@jobs-0:{}", first=4, points=5),
    ),
    "begun stops are in the journal": (
        no_journal,
        "container-restarted-twice-by-force",
        each("agent-crash-after@agent-1:{}", first=11, points=4),
    ),
    "gaps are noticed": (no_counting, "pulled-node-by-node", each("copies-lost@:{}", points=4)),
}


@pytest.mark.parametrize(("remove", "scenario", "attempts"), cases(GUARDS))
def test_without_the_guard_the_simulation_fails(
    remove: Removal, scenario: str, attempts: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown_to_be_needed(remove, scenario, attempts, monkeypatch)
