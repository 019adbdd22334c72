"""Identities and permissions on the bus: keys, credentials files, permissions, auth callout."""

from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
import nkeys
import pytest

from flotilla_common.bus import callout
from flotilla_common.bus.credentials import BusCredentials, read_credentials
from flotilla_common.bus.permissions import (
    OPERATOR,
    READER,
    node_permissions,
    observer_permissions,
    publisher_permissions,
    service_permissions,
)
from flotilla_common.bus.tokens import ACCOUNT, USER, KeyPair, claims_of, verified
from flotilla_insight.services import bus_permissions

SEED = "SUADCAN2SUE7PSMSHGWS3QRWUBNZT6H53VTBB2RUXVBU7YT5STYOLHACNI"
PUBLIC = "UDULUCE2H6X37CLUA6HO2I2UF4VK7OAR6MOPSPNSZH3PCL64652SA7GG"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_keys_are_spelled_as_nats_spells_them() -> None:
    pair = KeyPair(SEED)
    assert (pair.seed, pair.public) == (SEED, PUBLIC)
    fresh = KeyPair.generate(USER)
    assert nkeys.from_seed(bytearray(fresh.seed.encode())).public_key.decode() == fresh.public
    assert KeyPair.generate(ACCOUNT).public.startswith("A")


@pytest.mark.parametrize("seed", ["", "SU", PUBLIC, SEED[:-1] + "A", SEED.lower()])
def test_what_is_no_seed(seed: str) -> None:
    with pytest.raises(ValueError, match=r"seed|key|checksum"):
        KeyPair(seed)


def test_tokens_are_verified() -> None:
    pair = KeyPair.generate(ACCOUNT)
    token = pair.sign({"a": 1})
    assert msgspec.json.decode(verified(token, pair.public)) == {"a": 1}
    with pytest.raises(ValueError, match="not a token of"):
        verified(token, KeyPair.generate(ACCOUNT).public)
    with pytest.raises(ValueError, match="not a token"):
        claims_of("a.b")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (f"# a node\n-----BEGIN USER NKEY SEED-----\n{SEED}\n------END\n", "seed"),
        (SEED, "seed"),
        (f"-----BEGIN NATS USER JWT-----\neyJ0\n------END\n-----BEGIN USER NKEY SEED-----\n{SEED}\n", "creds"),
        ("eyJhbGciOi.eyJpc3Mi.c2lnbmF0dXJl\n", "token"),
    ],
    ids=["node-creds", "bare seed", "NATS credentials", "ServiceAccount token"],
)
def test_credentials_are_told_apart(tmp_path: Path, content: str, kind: str) -> None:
    file = tmp_path / "creds"
    file.write_text(content)
    login = read_credentials(str(file))
    match kind:
        case "seed":
            assert login.seed == SEED
        case "creds":
            assert login.creds_file == str(file)
        case _:
            assert login.token is not None
            assert login.token() == content.strip()
            file.write_text("renewed")
            assert login.token() == "renewed"


def test_a_folder_has_a_file_per_service(tmp_path: Path) -> None:
    (tmp_path / "jobs.seed").write_text(SEED)
    assert read_credentials(str(tmp_path), "jobs").seed == SEED
    with pytest.raises(FileNotFoundError):
        read_credentials(str(tmp_path), "watcher")
    assert read_credentials("") == BusCredentials()


@pytest.mark.parametrize("content", ["", "two words"])
def test_what_is_no_credentials(tmp_path: Path, content: str) -> None:
    (tmp_path / "creds").write_text(content)
    with pytest.raises(ValueError, match="holds neither"):
        read_credentials(str(tmp_path / "creds"))


@pytest.mark.parametrize("name", ["", "*", ">", "a b", "a_b", "A", "a.", "-a", "a\nb", "n1.>", "x" * 254])
def test_no_name_opens_more_than_a_node(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a node"):
        node_permissions(name)


def test_a_nodes_permissions() -> None:
    found = node_permissions("n1.example")
    assert found.publish == ("report.v1.n1_example.>", "heartbeat.v1.nodeagent.n1_example")
    assert found.subscribe == ("node.v1.n1_example.>", "_INBOX_node.n1_example.>")
    assert not found.answers


def test_services_publish_under_their_own_names_only() -> None:
    users = bus_permissions()
    for service in ("cloneset", "daemonset", "jobs", "policy", "sidecar", "statefulset", "topology"):
        assert f"act.v1.{service}.>" in users[service].publish
        assert not {"kube.v1.>", "node.v1.>", "act.v1.>", ">"} & set(users[service].publish)
    assert "act.v1.>" not in users["watcher"].publish


def test_the_service_that_serves_metrics_reads_its_streams_and_no_other() -> None:
    found = bus_permissions()["statemetrics"]
    plurals = ("broadcastjobs", "clonesets", "daemonsets", "sidecarsets", "statefulsets", "workloadspreads")
    streams = [f"kube_apps_kruise_io_{plural}" for plural in plurals]
    before = ("$JS.API.STREAM.INFO.", "$JS.API.CONSUMER.CREATE.", "$JS.API.CONSUMER.DELETE.", "$JS.FC.")
    asked = {f"{verb}{stream}" for verb in before for stream in streams}
    heartbeat, *others = found.publish
    assert heartbeat == "heartbeat.v1.statemetrics.*"
    assert {subject.removesuffix(".*").removesuffix(".>") for subject in others} == asked
    assert found.subscribe == ("_INBOX.statemetrics.>",)
    assert not found.answers


def test_the_console_reads_and_publishes_ended_sessions() -> None:
    found = bus_permissions()["console"]
    heartbeat, *others = found.publish
    assert heartbeat == "heartbeat.v1.console.*"
    reads = ("$JS.API.STREAM.INFO.", "$JS.API.STREAM.LIST", "$JS.API.STREAM.MSG.GET.", "$JS.API.CONSUMER.", "$JS.FC.")
    assert "$JS.API.INFO" in others
    assert [one for one in others if not one.startswith((*reads, "$JS.API.INFO"))] == ["act.v1.console.sessions._.*"]
    assert set(found.subscribe) == {"_INBOX.console.>", "heartbeat.v1.*.*"}
    assert not found.answers


def test_the_webhook_says_that_it_lives_and_what_it_sees_and_asks_its_replicas() -> None:
    webhook = bus_permissions()["webhook"]
    records = "$JS.API.DIRECT.GET.why.why.v1.podunavailablebudgets.*.*"
    assert webhook.publish == ("act.v1.webhook.>", "heartbeat.v1.webhook.*", "places.v1.*", records)
    assert webhook.subscribe == ("_INBOX.webhook.>", "places.v1.*")
    assert webhook.answers


def test_the_reader_hears_what_is_published_and_publishes_nothing_that_anybody_else_hears() -> None:
    reader = bus_permissions()[READER]
    assert reader.publish == ("reader.v1.>",)
    assert not {">", "_INBOX.>", "report.v1.>", "$SYS.>"} & set(reader.subscribe)
    assert not reader.answers
    heard = [subject for name, user in bus_permissions().items() if name != OPERATOR for subject in user.subscribe]
    assert heard.count("reader.v1.>") == 1


def test_no_service_hears_what_another_is_told() -> None:
    people = {OPERATOR, READER, "console"}  # they only read what is for all
    heard = [subject for name, user in bus_permissions().items() if name not in people for subject in user.subscribe]
    assert sorted(set(heard)) == sorted(heard)


def test_every_service_has_permissions() -> None:
    services = {point.name for point in entry_points(group="flotilla.services")}
    assert bus_permissions().keys() == services | {OPERATOR, READER}


def test_a_service_hears_what_it_answers_and_nothing_else() -> None:
    silent, answering = service_permissions("x"), service_permissions("x", ("pods", "events"))
    assert (silent.subscribe, silent.answers) == (("_INBOX.x.>",), False)
    assert answering.subscribe == ("_INBOX.x.>", "report.v1.*.pods.>", "report.v1.*.events.>")
    assert set(answering.publish) - set(silent.publish) == {"_INBOX_node.>"}
    assert {
        f"$JS.API.STREAM.{verb}.{stream}" for verb in ("CREATE", "UPDATE") for stream in ("act", "decisions", "why")
    } <= set(silent.publish)
    assert {"act.v1.x.>", "why.v1.>", "heartbeat.v1.x.*"} <= set(silent.publish)


def test_only_the_publisher_stores_and_removes_records_of_others() -> None:
    users = bus_permissions()
    assert "why.v1.>" in users["watcher"].publish
    assert not {"act.v1.>", "decisions.v1.>"} & set(users["watcher"].publish)
    removing = ("$JS.API.STREAM.>", "$JS.API.STREAM.MSG.>", "$JS.API.STREAM.MSG.DELETE.*", "$JS.API.>")
    assert {name for name, user in users.items() if {*removing} & {*user.publish}} == {"watcher"}


def test_the_publisher_fills_the_streams_and_says_who_agents_are() -> None:
    found = publisher_permissions("watcher", ("follow",))
    assert {"kube.v1.>", "node.v1.>", "heartbeat.v1.watcher.*", "$JS.API.STREAM.>", "_INBOX_node.>"} <= set(
        found.publish
    )
    assert found.subscribe == ("_INBOX.watcher.>", "report.v1.*.follow.>", "reader.v1.>", "$SYS.REQ.USER.AUTH")
    assert found.answers


def test_what_node_agents_tell_is_heard_by_whoever_declares_to_answer_it() -> None:
    users = bus_permissions()
    kinds = {"pods", "nodeimages", "containerrecreaterequests", "secrets", "events"}
    heard = {subject for subject in users["jobs"].subscribe if subject.startswith("report.")}
    assert heard == {f"report.v1.*.{kind}.>" for kind in kinds}
    assert users["cloneset"].subscribe == ("_INBOX.cloneset.>",)
    assert users[OPERATOR].publish == users[OPERATOR].subscribe == (">",)


def question(server: KeyPair, *, names: str = "", signer: KeyPair | None = None) -> bytes:
    asked = {"server_id": {"id": names or server.public}, "user_nkey": "U1", "connect_opts": {"auth_token": "t"}}
    return (signer or server).sign({"iss": server.public, "nats": asked}).encode()


def test_a_servers_question_and_the_answer_for_it() -> None:
    server, issuer = KeyPair.generate(USER), KeyPair.generate(ACCOUNT)
    asked = callout.read_question(question(server))
    assert (asked.server, asked.user_key, asked.token) == (server.public, "U1", "t")
    assert "t" not in repr(asked).replace(server.public, "").replace("Question(server=", "")
    answer = callout.allow(
        asked, issuer, name="node/n1", permissions=node_permissions("n1"), now=NOW, lasting=timedelta(hours=1)
    )
    claims = msgspec.json.decode(verified(answer.decode(), issuer.public))
    assert (claims["aud"], claims["sub"]) == (server.public, "U1")
    user = msgspec.json.decode(verified(claims["nats"]["jwt"], issuer.public))
    assert (user["aud"], user["exp"] - user["iat"], user["name"]) == ("$G", 3600, "node/n1")
    assert user["nats"]["pub"] == {"allow": ["report.v1.n1.>", "heartbeat.v1.nodeagent.n1"]}
    refused = msgspec.json.decode(claims_of(callout.refuse(asked, issuer, "because", NOW).decode()))
    assert refused["nats"]["error"] == "because"
    assert "jwt" not in refused["nats"]


def test_questions_that_no_server_asked() -> None:
    server, other = KeyPair.generate(USER), KeyPair.generate(USER)
    for data in (b"", b"a.b.c", question(server, names=other.public), question(server, signer=other)):
        with pytest.raises((ValueError, msgspec.DecodeError)):
            callout.read_question(data)


def test_an_observer_reads_every_stream_and_publishes_its_heartbeat_only() -> None:
    found = observer_permissions("x")
    assert found.subscribe == ("_INBOX.x.>", "heartbeat.v1.*.*")
    assert [subject for subject in found.publish if not subject.startswith("$JS.")] == ["heartbeat.v1.x.*"]
    assert not found.answers
