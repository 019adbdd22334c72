"""The agent's copies: the meaning of a marker when a stream is read again, and the metadata of deliveries."""

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_nodeagent.copies import Copies
from flotilla_nodeagent.reader import Object as Delivered
from flotilla_nodeagent.reader import read_delivery


def marker(epoch: str, rv: int, pending: int = 0) -> Message:
    body = subjects.Marker(epoch=epoch, rv=str(rv), count=0, state=subjects.SYNCED)
    return Message(subject=subjects.node_marker(POD), data=msgspec.json.encode(body), pending=pending)


def pod(name: str, rv: int, epoch: str, pending: int = 0) -> Message:
    document = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(rv)}}
    return Message(
        subject=subjects.node_object("n", POD, "default", name),
        data=msgspec.json.encode(document),
        headers={subjects.EPOCH: epoch, subjects.UID: f"uid-{name}"},
        pending=pending,
    )


def names(copies: Copies[Pod]) -> set[str]:
    return {copy.metadata.name for copy in copies}


def test_what_stands_behind_the_marker_is_not_gone() -> None:
    copies = Copies(POD, Pod)
    for message in (pod("kept", 1, "e1"), pod("gone", 2, "e1"), marker("e1", 5)):
        copies.receive(message)
    assert copies.synced
    copies.reset()
    copies.receive(marker("e2", 20, pending=1))
    assert not copies.synced
    assert names(copies) == {"kept", "gone"}
    copies.receive(pod("kept", 21, "e2"))
    assert copies.synced
    assert names(copies) == {"kept"}


def test_a_marker_with_nothing_behind_it_holds_at_once() -> None:
    copies = Copies(POD, Pod)
    copies.receive(marker("e1", 5))
    assert copies.synced


@pytest.mark.parametrize(
    "data", [b"{", b"null", b'{"metadata": null}', b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"]
)
def test_something_unreadable_behind_the_marker_holds_nothing_up(data: bytes) -> None:
    copies = Copies(POD, Pod)
    copies.receive(marker("e1", 5, pending=1))
    copies.receive(msgspec.structs.replace(pod("bad", 6, "e1"), data=data))
    assert copies.synced
    assert names(copies) == set()


def delivered(reply: str) -> Delivered:
    found = read_delivery(Message(subject="s", data=b"", reply=reply))
    assert isinstance(found, Delivered)
    return found


def test_a_delivery_tells_its_place_and_how_many_are_behind_it() -> None:
    for reply in ("$JS.ACK.node_pods.reader.1.40.7.1700.3", "$JS.ACK.hub.account.node_pods.reader.1.40.7.1700.3.token"):
        found = delivered(reply)
        assert (found.sequence, found.number, found.message.pending) == (40, 7, 3)


def test_another_line_of_versions_replaces_what_is_newer_by_its_number() -> None:
    """etcd was restored from a backup: existing objects have older versions than their copies."""
    copies = Copies(POD, Pod)
    for message in (pod("kept", 9, "0.e1"), pod("gone", 50, "0.e1"), marker("0.e1", 40)):
        copies.receive(message)
    copies.receive(pod("kept", 3, "1.e2"))
    copies.receive(pod("kept", 2, "1.e2"))
    copies.receive(marker("1.e2", 5))
    assert [copy.metadata.resource_version for copy in copies] == ["3"]
