"""A marker counts when what stood behind it has come."""

import msgspec
import pytest

from flotilla_common.bus.interface import Message
from flotilla_common.bus.markers import MarkerGate
from flotilla_common.bus.subjects import LISTING, SYNCED, Marker


def counted(*stream: str | int) -> list[int]:
    """Return after which messages a marker counted.

    A message is written as its number of pending messages, a marker also with its state.
    """
    gate, found = MarkerGate(), []
    for index, word in enumerate(stream):
        state, _, pending = str(word).rpartition(" ")
        message = Message(subject="s", data=msgspec.json.encode(Marker(epoch="e", state=state)), pending=int(pending))
        if state:
            gate.note(message)
        if gate.due(message) is not None:
            found.append(index)
    return found


@pytest.mark.parametrize(
    ("stream", "after"),
    [
        pytest.param([1, f"{SYNCED} 0"], [1], id="last of all"),
        pytest.param([f"{SYNCED} 2", 1, 0], [2], id="two behind it"),
        pytest.param([f"{SYNCED} 2", 7, 6, 5], [2], id="more come meanwhile: it waits for two only"),
        pytest.param([f"{SYNCED} 5", 0], [1], id="fewer came: nothing is pending"),
        pytest.param([f"{LISTING} 0", 0], [], id="the list is still under way"),
        pytest.param([f"{SYNCED} 1", f"{SYNCED} 0", 0], [1], id="a newer one"),
        pytest.param([f"{SYNCED} 0", 0, f"{SYNCED} 0"], [0, 2], id="each once"),
        pytest.param([2, 1, 0], [], id="none"),
        pytest.param([f"{SYNCED} 2", f"{LISTING} 1", 0, 0], [], id="the next list begins before it counted"),
        pytest.param([f"{SYNCED} 0", f"{LISTING} 1", 0, f"{SYNCED} 0"], [0, 3], id="and ends"),
    ],
)
def test_when_it_counts(stream: list[str | int], after: list[int]) -> None:
    assert counted(*stream) == after


def test_what_is_read_again_brings_its_own() -> None:
    gate = MarkerGate()
    gate.note(Message(subject="s", data=msgspec.json.encode(Marker(epoch="e", state=SYNCED)), pending=3))
    gate.forget()
    assert gate.due(Message(subject="s", data=b"", pending=0)) is None
