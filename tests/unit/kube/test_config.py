"""Kubeconfig files: every way in, and complaints that name the file and the field."""

import base64
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_common.kube.config import ApiConfig, ConfigError, load_config


class Source(msgspec.Struct, frozen=True):
    kubeconfig: str = ""
    context: str = ""


def write(path: Path, cluster: dict[str, Any], user: dict[str, Any], **extra: Any) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://one:8080/", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "current-context": "x",
        **extra,
    }
    path.write_text(json.dumps(document))
    return str(path)


async def load(kubeconfig: str, context: str = "") -> ApiConfig:
    return await load_config(Source(kubeconfig, context), env={})


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A self-signed certificate and its key."""
    folder = tmp_path_factory.mktemp("pki")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=t -keyout k -out c"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return (folder / "c").read_bytes(), (folder / "k").read_bytes()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("user", "wanted"),
    [
        ({}, ""),
        ({"token": "t1"}, "Bearer t1"),
        ({"username": "me", "password": "pw"}, "Basic bWU6cHc="),
        ({"tokenFile": "token", "token": "unused"}, "Bearer from-file"),
    ],
    ids=["anonymous", "token", "basic", "tokenFile relative to the kubeconfig"],
)
async def test_credentials(tmp_path: Path, user: dict[str, Any], wanted: str) -> None:
    (tmp_path / "token").write_text("from-file\n")
    config = await load(write(tmp_path / "config", {}, user))
    assert (config.server, config.namespace) == ("http://one:8080", "ns")
    assert await config.credential.authorization() == wanted


async def test_a_token_file_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    config = await load(write(tmp_path / "config", {}, {"tokenFile": "token"}))
    assert await config.credential.authorization() == "Bearer old"
    (tmp_path / "token").write_text("new")
    assert await config.credential.authorization() == "Bearer old"
    config.credential.reject()
    assert await config.credential.authorization() == "Bearer new"


async def test_certificates_inline_and_as_files(tmp_path: Path, pki: tuple[bytes, bytes]) -> None:
    certificate, key = pki
    (tmp_path / "c").write_bytes(certificate)
    (tmp_path / "k").write_bytes(key)
    inline = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    cluster = {"server": "https://one", "certificate-authority-data": encoded(certificate), "tls-server-name": "kube"}
    config = await load(write(tmp_path / "a", cluster, inline))
    assert config.tls is not None
    assert config.tls.get_ca_certs()
    assert config.tls_server_name == "kube"
    files = {"client-certificate": "c", "client-key": "k"}
    cluster = {"server": "https://one", "certificate-authority": "c"}
    assert (await load(write(tmp_path / "b", cluster, files))).tls is not None


async def test_files_are_merged_first_come_first_served(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {}, {"token": "a"}, contexts=[])
    second = write(tmp_path / "b", {"server": "http://two"}, {"token": "b"})
    merged = os.pathsep.join([first, str(tmp_path / "missing"), second])
    config = await load(merged)
    assert config.server == "http://one:8080"
    assert await config.credential.authorization() == "Bearer a"


async def test_a_named_context(tmp_path: Path) -> None:
    contexts = [{"name": "y", "context": {"cluster": "c"}}]
    config = await load(write(tmp_path / "a", {}, {"token": "a"}, contexts=contexts), "y")
    assert config.namespace == "default"
    assert await config.credential.authorization() == ""


NO_FILE = {"server": "https://one", "certificate-authority": "none"}
NOT_BASE64 = {"server": "https://one", "certificate-authority-data": "%%%"}


@pytest.mark.parametrize(
    ("cluster", "user", "extra", "complaint"),
    [
        ({"server": ""}, {}, {}, r"a: clusters\[c\]\.server: is not set"),
        ({"server": "one:6443"}, {}, {}, r"clusters\[c\]\.server: 'one:6443' is no http or https URL"),
        ({"proxy-url": "http://p"}, {}, {}, r"clusters\[c\]\.proxy-url: is not supported"),
        (NOT_BASE64, {}, {}, r"clusters\[c\]\.certificate-authority-data: is not base64"),
        (NO_FILE, {}, {}, r"certificate-authority: cannot read .*none"),
        ({"server": "https://one"}, {"client-certificate-data": "YQ=="}, {}, r"users\[u\]\.client-key: is not set"),
        ({}, {"auth-provider": {"name": "gcp"}}, {}, r"users\[u\]\.auth-provider: is gone"),
        ({}, {"token": 5}, {}, r"Expected `str \| null`, got `int` - at `\$\.users\[0\]\.user\.token`"),
        ({}, {}, {"current-context": ""}, r"current-context: is not set"),
        ({}, {}, {"current-context": "z"}, r"no context is named 'z'"),
        ({}, {}, {"users": []}, r"contexts\[x\]\.user: there is no 'u'"),
        ({}, {"as": "a", "as-groups": ["b", "c"]}, {}, r"as-groups: more than one"),
    ],
)  # fmt: skip
async def test_complaints(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], extra: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await load(write(tmp_path / "a", cluster, user, **extra))


async def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        await load(str(tmp_path / "none"))
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigError, match="is empty"):
        await load(str(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="no cluster is configured"):
        await load_config(Source(), env={"HOME": str(tmp_path)})


async def test_in_a_pod(tmp_path: Path, pki: tuple[bytes, bytes]) -> None:
    (tmp_path / "ca.crt").write_bytes(pki[0])
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "namespace").write_text("mine\n")
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    config = await load_config(Source(), env=env, service_account=tmp_path)
    assert (config.server, config.namespace) == ("https://[fd00::1]:6443", "mine")
    assert await config.credential.authorization() == "Bearer pod-token"


def plugin(path: Path, script: str) -> dict[str, Any]:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"command": f"./{path.name}", "apiVersion": version, "env": [{"name": "WHO", "value": "me"}]}}


ANSWER = (
    'echo x >> calls; echo \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
    '"status":{"token":"\'$WHO\'","expirationTimestamp":"%s"}}\''
)


@pytest.mark.parametrize(
    ("expires", "calls"), [("2999-01-01T00:00:00Z", 1), ("2020-01-01T00:00:00Z", 2)], ids=["kept", "expired"]
)
async def test_an_exec_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expires: str, calls: int) -> None:
    monkeypatch.chdir(tmp_path)
    config = await load(write(tmp_path / "config", {}, plugin(tmp_path / "auth", ANSWER % expires)))
    assert [await config.credential.authorization() for _ in range(2)] == ["Bearer me"] * 2
    assert len((tmp_path / "calls").read_text().split()) == calls
    config.credential.reject()
    await config.credential.authorization()
    assert len((tmp_path / "calls").read_text().split()) == calls + 1


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo no >&2; exit 3", r"users\[u\]\.exec: \./auth failed with exit code 3: no"),
        ("echo hello", "something else than an ExecCredential"),
        ('echo \'{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential"}\'', "wanted"),
        ('echo \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"}\'', "without a token"),
    ],
)
async def test_an_exec_plugin_that_fails(tmp_path: Path, script: str, complaint: str) -> None:
    config = await load(write(tmp_path / "config", {}, plugin(tmp_path / "auth", script)))
    with pytest.raises(ConfigError, match=complaint):
        await config.credential.authorization()


async def test_a_plugin_that_is_not_installed(tmp_path: Path) -> None:
    user = {"exec": {"command": "no-such-plugin", "apiVersion": "v1", "installHint": "Install it."}}
    config = await load(write(tmp_path / "config", {}, user))
    with pytest.raises(ConfigError, match=r"cannot be started: No such file or directory\. Install it\."):
        await config.credential.authorization()
