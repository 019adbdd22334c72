"""Kubeconfig files: every way in, and complaints that name the file and the field."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flotilla_common.kube.config import ApiConfig, load_config, read_here
from flotilla_common.kube.credentials import ConfigError


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
    return await load_config(Source(kubeconfig, context), reader=read_here, env={})


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
    second = write(tmp_path / "b", {"server": "http://two"}, {"token": "b"}, **{"current-context": "nowhere"})
    merged = os.pathsep.join([first, str(tmp_path / "missing"), second])
    config = await load(merged)
    assert config.server == "http://one:8080"
    assert await config.credential.authorization() == "Bearer a"


async def test_an_empty_member_counts_as_absent(tmp_path: Path, pki: tuple[bytes, bytes]) -> None:
    (tmp_path / "c").write_bytes(pki[0])
    cluster = {"server": "https://one", "certificate-authority-data": "", "certificate-authority": "c"}
    cluster |= {"insecure-skip-tls-verify": "false", "proxy-url": "http://p:3128"}
    config = await load(write(tmp_path / "config", cluster, {"token": None, "username": "me"}))
    assert config.tls is not None
    assert len(config.tls.get_ca_certs()) == 1
    assert config.tls.check_hostname
    assert config.proxy == "http://p:3128"
    assert await config.credential.authorization() == "Basic bWU6"


async def test_the_certificate_of_a_server_may_be_taken_as_it_comes(tmp_path: Path) -> None:
    config = await load(write(tmp_path / "config", {"server": "https://one", "insecure-skip-tls-verify": True}, {}))
    assert config.tls is not None
    assert not config.tls.check_hostname


async def test_impersonation(tmp_path: Path) -> None:
    config = await load(write(tmp_path / "config", {}, {"as": "jane", "as-uid": "7", "as-groups": ["dev"]}))
    wanted = {"Impersonate-User": "jane", "Impersonate-Uid": "7", "Impersonate-Group": "dev"}
    assert config.headers == wanted


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
        ({"server": "one:6443"}, {}, {}, r"clusters\[c\]\.server: 'one:6443' is not an http or https URL"),
        ({"proxy-url": "socks5://p"}, {}, {}, r"clusters\[c\]\.proxy-url: 'socks5://p' is not an http or https URL"),
        (NOT_BASE64, {}, {}, r"clusters\[c\]\.certificate-authority-data: is not base64"),
        (NO_FILE, {}, {}, r"certificate-authority: cannot read .*none"),
        ({"server": "https://one"}, {"client-certificate-data": "YQ=="}, {}, r"users\[u\]\.client-key: is not set"),
        ({}, {"auth-provider": {"name": "gcp"}}, {}, r"users\[u\]\.auth-provider: was removed"),
        ({}, {"token": 5}, {}, r"users\[u\]\.token: is of type int, not text"),
        ({}, {"exec": "kubelogin"}, {}, r"users\[u\]\.exec: is of type str"),
        ({}, {"exec": {"command": "kubelogin"}}, {}, r"users\[u\]\.exec: .*missing key 'apiVersion'"),
        ({}, {}, {"current-context": ""}, r"contexts: no current-context is set"),
        ({}, {}, {"current-context": "z"}, r"contexts: there is no 'z'"),
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
    (tmp_path / "broken").write_text("users: [{name: u, user: {token: secret}")
    with pytest.raises(ConfigError, match=r"broken: is not YAML: .* line 1, column") as error:
        await load(str(tmp_path / "broken"))
    assert "secret" not in str(error.value)
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
