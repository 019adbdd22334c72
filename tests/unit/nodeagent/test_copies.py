"""The agent's copies: the meaning of a marker when a stream is read again, and the metadata of deliveries."""

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD
from flotilla_common.api.uidranges import UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_nodeagent.copies import Copies
from flotilla_nodeagent.reader import Object as Delivered
from flotilla_nodeagent.reader import read_delivery


def marker(epoch: str, rv: int, pending: int = 0, shards: int = 1) -> Message:
    body = subjects.Marker(epoch=epoch, rv=str(rv), count=0, state=subjects.SYNCED).of_shards(shards)
    return Message(subject=subjects.node_marker(POD), data=msgspec.json.encode(body), pending=pending)


def pod(name: str, rv: int, epoch: str, pending: int = 0, uid: str = "", op: str = "ADDED") -> Message:
    uid = uid or f"uid-{name}"
    document = {"metadata": {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(rv)}}
    return Message(
        subject=subjects.node_object("n", POD, "default", name),
        data=msgspec.json.encode(document),
        headers={subjects.EPOCH: epoch, subjects.UID: uid, subjects.OP: op},
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


def uid_in(index: int, shards: int = 2) -> str:
    """Return a uid of a shard."""
    return next(uid for uid in map(str, range(100)) if UidRange(index, shards).covers(uid))


def shared() -> Copies[Pod]:
    """Return complete copies of two shards, with one pod each."""
    copies = Copies(POD, Pod)
    copies.receive(pod("zero", 1, "0.a", uid=uid_in(0)))
    copies.receive(marker("0.a", 5, shards=2))
    assert (copies.shards, copies.synced) == (2, False)
    copies.receive(pod("one", 2, "0.b", uid=uid_in(1)), 1)
    copies.receive(marker("0.b", 5, shards=2), 1)
    assert copies.synced
    return copies


@pytest.mark.parametrize(("index", "left"), [(0, {"one"}), (1, {"zero"})])
def test_each_shard_judges_absence_in_its_own_range(index: int, left: set[str]) -> None:
    copies = shared()
    copies.reset(index)
    assert not copies.synced
    copies.receive(marker("0.c", 9, shards=2), index)
    assert names(copies) == left
    assert copies.synced


@pytest.mark.parametrize("tombstone_first", [True, False])
def test_a_pod_that_comes_again_in_another_shard_replaces_its_copy(tombstone_first: bool) -> None:
    copies = shared()
    gone, again = pod("zero", 8, "0.a", uid=uid_in(0), op="DELETED"), pod("zero", 9, "0.b", uid=uid_in(1))
    for message, index in [(gone, 0), (again, 1)] if tombstone_first else [(again, 1), (gone, 0)]:
        copies.receive(message, index)
    copies.receive(pod("zero", 7, "0.a", uid=uid_in(0)), 0)
    held = copies.get(("default", "zero"))
    assert held is not None
    assert held.metadata.resource_version == "9"


@pytest.mark.parametrize(("index", "left"), [(0, {"one", "zero"}), (1, {"zero"})])
def test_a_tombstone_without_a_uid_concerns_the_copies_of_its_shard(index: int, left: set[str]) -> None:
    """A publisher that took over knows only the name, which a pod of another shard may have now."""
    copies = shared()
    tombstone = pod("one", 9, "0.a", op="DELETED")
    copies.receive(msgspec.structs.replace(tombstone, headers=tombstone.headers | {subjects.UID: ""}), index)
    assert names(copies) == left


def test_fewer_shards_keep_the_copies_of_the_others() -> None:
    copies = shared()
    copies.reset(0)
    copies.receive(pod("zero", 1, "0.d", uid=uid_in(0)))
    copies.receive(pod("one", 2, "0.d", uid=uid_in(1)))
    copies.receive(marker("0.d", 9))
    assert (names(copies), copies.shards, copies.synced) == ({"zero", "one"}, 1, True)
    copies.receive(pod("late", 3, "0.b"), 1)
    copies.reset(1)
    assert (names(copies), copies.synced) == ({"zero", "one"}, True)


def test_another_line_of_versions_in_one_shard_leaves_the_copies_of_the_other() -> None:
    copies = shared()
    copies.receive(marker("1.a", 1, shards=2))
    assert names(copies) == {"one"}
