"""The kubelet's configuration of credential plugins: accepted files, and errors of bad ones (cri.md §11)."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from flotilla_nodeagent.credentials import plugins
from flotilla_nodeagent.credentials.providers import BadConfig, parse
from tests.support.fake_clock import FakeClock

WHOLE = """
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
  - name: ecr-credential-provider
    matchImages: ["*.dkr.ecr.*.amazonaws.com", "reg.example:8080/path"]
    defaultCacheDuration: 12h0m0s
    apiVersion: credentialprovider.kubelet.k8s.io/v1
    args: [get-credentials]
    env: [{name: AWS_PROFILE, value: node}]
    someday: {more: true}
"""


def document(**changes: Any) -> dict[str, Any]:
    """Return a configuration whose only provider has these members, too; None removes one."""
    found = msgspec.yaml.decode(WHOLE.encode())
    provider = {**found["providers"][0], **changes}
    return {**found, "providers": [{key: value for key, value in provider.items() if value is not None}]}


def test_a_whole_configuration() -> None:
    (provider,) = parse(WHOLE.encode())
    assert provider.name == "ecr-credential-provider"
    assert provider.match_images == ["*.dkr.ecr.*.amazonaws.com", "reg.example:8080/path"]
    assert provider.cache_seconds == 12 * 3600
    assert provider.args == ["get-credentials"]
    assert [(one.name, one.value) for one in provider.env or []] == [("AWS_PROFILE", "node")]
    assert not provider.needs_pod


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_json_and_older_versions(version: str) -> None:
    given = document(apiVersion=f"credentialprovider.kubelet.k8s.io/{version}")
    given["apiVersion"] = f"kubelet.config.k8s.io/{version}"
    assert len(parse(json.dumps(given).encode())) == 1


BAD = {
    "no name": (document(name=""), "name"),
    "a path": (document(name="../evil"), "name must be that of a file"),
    "absolute": (document(name="/bin/sh"), "name must be that of a file"),
    "dots": (document(name=".."), "name must be that of a file"),
    "a space": (document(name="a b"), "name must be that of a file"),
    "no images": (document(matchImages=[]), "matchImages"),
    "images are missing": (document(matchImages=None), "matchImages"),
    "no duration": (document(defaultCacheDuration=None), "defaultCacheDuration"),
    "bad duration": (document(defaultCacheDuration="-5m"), "defaultCacheDuration must be a duration"),
    "protocol": (document(apiVersion="v2"), "apiVersion v2 is not credentialprovider.kubelet.k8s.io/v1"),
    "kind": ({**document(), "kind": "KubeletConfiguration"}, "not a CredentialProviderConfig"),
    "group": ({**document(), "apiVersion": "v1"}, "not a CredentialProviderConfig of kubelet.config.k8s.io/v1"),
    "no providers": ({**document(), "providers": []}, "no providers"),
    "twice": ({**document(), "providers": document()["providers"] * 2}, "two of that name"),
    "a list": ([], "Expected"),
}


@pytest.mark.parametrize(("given", "why"), BAD.values(), ids=BAD.keys())
def test_a_bad_configuration(given: Any, why: str) -> None:
    with pytest.raises(BadConfig, match=why):
        parse(json.dumps(given).encode())


def test_a_broken_file_is_not_quoted() -> None:
    with pytest.raises(BadConfig) as raised:
        parse(b"providers: [{env: [{value: 'geheim}]\n")
    assert "geheim" not in str(raised.value)


class Loaded:
    """The result of loading a configuration file."""

    def __init__(self, folder: Path, text: str | None, mode: int = 0o644) -> None:
        self.file = folder / "config.yaml"
        if text is not None:
            self.file.write_text(text)
            self.file.chmod(mode)
        self.said: list[str] = []
        with capture_logs() as logs:
            self.plugins = plugins.load(self.file, folder, FakeClock(), {}, self.said.append)
        self.logs = [(one["log_level"], one["event"]) for one in logs]


def test_without_the_file_nothing_is_said(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, None)
    assert (loaded.said, loaded.logs) == ([], [])


def test_a_bad_file_is_said_and_logged(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, "kind: Pod")
    assert loaded.logs == [("warning", "credential plugins not used")]
    assert loaded.said[0].startswith("plugins not used: ")


@pytest.mark.parametrize("mode", [0o666, 0o646])
def test_a_file_that_others_can_write_is_not_used(tmp_path: Path, mode: int) -> None:
    loaded = Loaded(tmp_path, WHOLE, mode)
    assert "can be written by others" in loaded.said[0]


def test_a_pipe_does_not_hold_the_agent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    loaded = Loaded(tmp_path, None)
    assert "is not a file" in loaded.said[0]


def test_a_missing_program_is_only_said(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path, WHOLE)
    assert loaded.said == ["plugins ecr-credential-provider"]
    assert loaded.logs == [("warning", "plugin cannot be run now")]


def test_a_plugin_that_needs_a_pod_is_left_out(tmp_path: Path) -> None:
    attributes = {"serviceAccountTokenAudience": "a", "requireServiceAccount": True}
    loaded = Loaded(tmp_path, json.dumps(document(tokenAttributes=attributes)))
    assert loaded.said == ["plugins none"]
    assert loaded.logs == [("warning", "plugin not used: it needs a pod's service account")]
