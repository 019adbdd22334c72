"""The JetStream requests that the read-only user may make."""

import msgspec
import pytest

from flotilla_common.bus import readonly

PAGER = {"name": "pager", "durable_name": "pager", "filter_subject": ">", "ack_policy": "explicit", "ack_wait": 30}


def creation(**config: object) -> bytes:
    return msgspec.json.encode({"stream_name": "act", "config": config, "action": ""})


@pytest.mark.parametrize(
    "verb",
    [
        *("INFO", "STREAM.LIST", "STREAM.NAMES", "STREAM.INFO.act", "STREAM.MSG.GET.act", "DIRECT.GET.why"),
        *("DIRECT.GET.why.why.v1.pods.a.b", "CONSUMER.LIST.act", "CONSUMER.NAMES.act", "CONSUMER.INFO.act.one"),
    ],
)
def test_what_only_reads_is_asked_as_it_is(verb: str) -> None:
    assert readonly.checked(f"reader.v1.{verb}", b"x") == readonly.Wanted(verb, b"x")


@pytest.mark.parametrize(
    "verb",
    [
        *("STREAM.CREATE.x", "STREAM.UPDATE.act", "STREAM.DELETE.act", "STREAM.PURGE.act", "STREAM.MSG.DELETE.act"),
        *("STREAM.SNAPSHOT.act", "STREAM.RESTORE.act", "STREAM.LEADER.STEPDOWN.act", "STREAM.PEER.REMOVE.act"),
        *("CONSUMER.DURABLE.CREATE.act.x", "CONSUMER.PAUSE.act.x", "CONSUMER.RESET.act.x", "CONSUMER.UNPIN.act.x"),
        *("CONSUMER.LEADER.STEPDOWN.act.x", "META.LEADER.STEPDOWN", "SERVER.REMOVE", "ACCOUNT.PURGE.x", "", "x"),
    ],
)
def test_anything_else_is_refused(verb: str) -> None:
    with pytest.raises(readonly.Refused):
        readonly.checked(f"reader.v1.{verb}", creation(**PAGER))


@pytest.mark.parametrize("verb", ["CONSUMER.MSG.NEXT.act.one", "CONSUMER.DELETE.act.one"])
def test_a_consumer_that_is_used_has_to_be_the_readers_own(verb: str) -> None:
    assert readonly.checked(f"reader.v1.{verb}", b"").consumer == "act.one"


def test_a_consumer_acknowledges_nothing_and_does_not_stay() -> None:
    wanted = readonly.checked("reader.v1.CONSUMER.CREATE.act.pager.>", creation(**PAGER, max_ack_pending=7))
    made = msgspec.json.decode(wanted.data)
    assert (wanted.verb, made["action"], made["stream_name"]) == ("CONSUMER.CREATE.act.pager.>", "create", "act")
    config = made["config"]
    assert (config["ack_policy"], config["mem_storage"], config["name"]) == ("none", True, "pager")
    assert config["inactive_threshold"] == readonly.CONSUMER_SECONDS * 10**9
    assert not {"ack_wait", "max_ack_pending"} & config.keys()
    assert readonly.is_own(msgspec.json.encode({"config": config}))


@pytest.mark.parametrize("data", [creation(**PAGER, deliver_subject="why.v1.clonesets.a.b"), b"no JSON", b"[]"])
def test_one_that_sends_to_anybody_or_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(readonly.Refused):
        readonly.checked("reader.v1.CONSUMER.CREATE.act.pager", data)


def test_one_may_send_to_its_own_inbox() -> None:
    wanted = readonly.checked("reader.v1.CONSUMER.CREATE.act", creation(deliver_subject="_INBOX_reader.1"))
    assert msgspec.json.decode(wanted.data)["config"]["deliver_subject"] == "_INBOX_reader.1"


def test_consumers_of_others_are_not_its_own() -> None:
    assert not readonly.is_own(b'{"config":{"metadata":{"flotilla.user":"x"}}}')
    assert not readonly.is_own(b'{"error":{"code":404}}')


@pytest.mark.parametrize("reply", ["", "act.v1.a", "_INBOX.cloneset.1", "_INBOX_reader", "_INBOX_readers.1"])
def test_answers_go_to_its_own_inbox_only(reply: str) -> None:
    assert not readonly.is_inbox(reply)
    assert readonly.is_inbox("_INBOX_reader.1.2")
