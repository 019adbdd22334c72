"""The agent as a process: refused settings, its pages, and its memory."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

from flotilla_common.clock import SystemClock
from flotilla_common.settings import SettingsError
from flotilla_nodeagent.endpoints import Status, serve
from flotilla_nodeagent.process import _node_logins, _settings
from tests.testkit.manifests import manifest

FOOTPRINT = """
import sys
from flotilla_nodeagent.__main__ import Absent
sys.meta_path.insert(0, Absent())
import flotilla_nodeagent.process
heavy = {"aiohttp", "rich", "kubernetes_asyncio", "cryptography", "click", "yaml"} & sys.modules.keys()
line = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
print(sorted(heavy), int(line.split()[1]) // 1024)
"""


def test_it_imports_nothing_large() -> None:
    shown = subprocess.run([sys.executable, "-c", FOOTPRINT], capture_output=True, text=True, check=True).stdout
    names, _, size = shown.strip().rpartition(" ")
    assert names == "[]"
    assert int(size) < 50


def test_it_has_to_know_its_node() -> None:
    with pytest.raises(SettingsError, match="--node NAME"):
        _settings([], {})
    assert _settings([], {"NODE_NAME": "n1"}).node == "n1"
    assert _settings(["--node=n2", "--creds", "f", "--socket-file", "k3s/x.sock"], {}).cri_socket == "k3s/x.sock"


PLUGIN = """#!/bin/sh
cat > "$0.asked"
echo '{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse",
 "cacheKeyType": "Registry", "auth": {"reg.example": {"username": "by", "password": "plugin"}}}'
"""
PLUGINS = manifest("credential-providers")


def test_plugins_and_files_on_the_loop_that_the_agent_runs_on(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"auths": {"reg.example": {"username": "by", "password": "file"}}}')
    (tmp_path / "plugins.yaml").write_text(PLUGINS)
    (tmp_path / "helper").write_text(PLUGIN)
    (tmp_path / "helper").chmod(0o755)
    flags = [f"--plugin-config-file={tmp_path}/plugins.yaml", f"--plugin-bin-dir={tmp_path}"]
    settings = _settings(["--node=n1", f"--kubelet-root-dir={tmp_path}", *flags], {})
    status = Status()
    sources = _node_logins(settings, SystemClock(), status, {"PATH": os.environ["PATH"]})

    async def ask() -> list[str]:
        return [login.password for source in sources for login in await source.logins("reg.example/a")]

    assert uvloop.run(ask()) == ["plugin", "file"]
    assert json.loads((tmp_path / "helper.asked").read_text())["image"] == "reg.example/a"
    assert status.report() == "[+]credentials plugins helper\n"


async def get(port: int, path: str) -> tuple[str, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    head, _, body = text.partition("\r\n\r\n")
    return head.split(" ")[1], body


async def test_pages(unused_tcp_port: int) -> None:
    status = Status()
    async with serve(status, {unused_tcp_port, 0}, "127.0.0.1"):
        status.ready("bus", False, "no NATS server answers")
        status.ready("runtime", True, "containerd 2.4.2")
        assert await get(unused_tcp_port, "/healthz") == ("200", "ok\n")
        code, body = await get(unused_tcp_port, "/readyz")
        assert (code, body) == ("503", "[-]bus no NATS server answers\n[+]runtime containerd 2.4.2\n")
        status.ready("bus", True)
        assert (await get(unused_tcp_port, "/readyz?verbose"))[0] == "200"
        assert "process_resident_memory_bytes" in (await get(unused_tcp_port, "/metrics"))[1]
        assert (await get(unused_tcp_port, "/secrets"))[0] == "404"


async def test_what_is_no_request_is_dropped(unused_tcp_port: int) -> None:
    async with serve(Status(), {unused_tcp_port}, "127.0.0.1"):
        reader, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        writer.write(b"x" * 100_000 + b"\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        assert (await get(unused_tcp_port, "/healthz"))[0] == "200"
