"""Output of the first container of compose.yaml: the files that each reader needs, and no others."""

import base64
import os
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from flotilla_common.control.plan import Json
from flotilla_dev import compose
from flotilla_insight.services import installed
from tests.support.fake_clock import FakeClock

OUTSIDE = "https://127.0.0.1:7443"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    make(tmp_path)
    return tmp_path / "keys"


def make(folder: Path) -> None:
    compose.make_keys(folder / "keys", OUTSIDE, folder / "data", FakeClock())


def kubeconfig(path: Path) -> Json:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def token(path: Path) -> str:
    return kubeconfig(path)["users"][0]["user"]["token"]


def users(root: Path) -> dict[str, Sequence[str]]:
    """Name and groups by token."""
    lines = (root / "kube-apiserver" / "tokens.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines]
    return {row[0]: [row[1], *row[3:]] for row in rows}


@pytest.mark.parametrize("service", installed())
def test_a_service_is_its_service_account(made: Path, service: str) -> None:
    config = made / service / "kubeconfig"
    assert users(made)[token(config)] == [f"system:serviceaccount:kruise-system:flotilla-{service}"]
    assert kubeconfig(config)["clusters"][0]["cluster"]["server"] == "https://kube-apiserver:6443"


def test_people_are_the_admin_here_and_there(made: Path) -> None:
    inside, outside = made / "people" / "inside.kubeconfig", made / "people" / "kubeconfig"
    assert token(inside) == token(outside)
    assert users(made)[token(outside)] == ["admin", "system:masters"]
    assert kubeconfig(outside)["clusters"][0]["cluster"]["server"] == OUTSIDE


def test_kubeconfigs_contain_the_authority_that_signed_the_apiserver(made: Path) -> None:
    cluster = kubeconfig(made / "people" / "kubeconfig")["clusters"][0]["cluster"]
    trusted = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=trusted)
    assert context.get_ca_certs()[0]["subject"] == ((("commonName", "flotilla"),),)
    pair = made / "kube-apiserver" / "server.pem"
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(pair)


def test_nobody_else_has_a_seed_a_token_or_a_key(made: Path) -> None:
    """A secret of one reader is in no folder of another, except in that of the server that it is shown to."""
    folders = {*installed(), "people", *compose.COMPONENTS}
    secrets = {folder: token(next((made / folder).glob("*kubeconfig"))) for folder in folders}
    secrets |= {f"seed of {folder}": (made / folder / "bus.seed").read_text() for folder in (*installed(), "people")}
    for owner, secret in secrets.items():
        having = {path.parent.name for folder in (*folders, "nats") for path in (made / folder).iterdir()
                  if secret in path.read_text()}  # fmt: skip
        assert having == {owner.removeprefix("seed of ")}


def test_the_keys_of_authorities_stay_behind(made: Path) -> None:
    """They are where no other container has access: beside the folders of the readers."""
    authorities = {(made / "ca.key").read_text(), (made / "tls" / "ca.key").read_text()}
    readers = {*installed(), *compose.COMPONENTS, compose.APISERVER, compose.BUS, compose.PEOPLE}
    files = [path for reader in readers for path in (made / reader).rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if authorities & {path.read_text()}]


def test_the_bus_listens_to_its_network_and_speaks_tls(made: Path) -> None:
    text = (made / "nats" / "nats.conf").read_text(encoding="utf-8")
    assert "host: 0.0.0.0\nport: 4222\n" in text
    assert f'cert_file: "{made}/nats/server.pem"' in text
    assert 'http: "127.0.0.1:8222"' in text
    assert "nkey:" in (made / "nats" / "users.conf").read_text(encoding="utf-8")


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (tmp_path / "keys").rglob("*") if path.is_file()}

    make(tmp_path)
    before = content()
    make(tmp_path)
    assert content() == before


def test_files_are_given_to_who_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, int] = {}
    monkeypatch.setattr(os, "chown", lambda path, user, _: given.update({str(path): user}))
    make(tmp_path)
    for name in compose.DATA:
        (tmp_path / "data" / name).mkdir(parents=True, exist_ok=True)
    compose.hand_over(tmp_path / "keys", tmp_path / "data", 65532)
    assert set(given.values()) == {65532}
    assert str(tmp_path / "keys" / "watcher" / "bus.seed") in given
    assert str(tmp_path / "data" / "etcd") in given
    assert not [path for path in given if Path(path).parent == tmp_path / "keys"]
