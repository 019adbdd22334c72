"""kubernetes_asyncio takes 37 MiB: no service may load it, in a pod or with a kubeconfig."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import asyncio, importlib, sys
from importlib.metadata import entry_points
from pathlib import Path

from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config
from flotilla_common.settings import Settings

async def main(kubeconfig, account, host):
    env = {"KUBERNETES_SERVICE_HOST": host, "HOME": "/nowhere"}
    config = await load_config(Settings(kubeconfig=kubeconfig), env=env, service_account=Path(account))
    await KubeClient(config, user_agent="x").close()
    return config.server, await config.credential.authorization()

names = sorted(point.name for point in entry_points(group="flotilla.services") if point.load())
print(names, *asyncio.run(main(*sys.argv[1:])))
assert "flotilla_cloneset.app" in sys.modules
print("kubernetes_asyncio" in sys.modules, "flotilla_common.kube.logins" in sys.modules)
"""


@pytest.mark.parametrize("way", ["pod", "kubeconfig"])
def test_services_do_not_load_it(tmp_path: Path, pki: tuple[bytes, bytes], way: str) -> None:
    (tmp_path / "ca.crt").write_bytes(pki[0])
    (tmp_path / "token").write_text("t")
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "http://file"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(json.dumps(document))
    arguments = ["", str(tmp_path), "10.0.0.1"] if way == "pod" else [str(tmp_path / "config"), "", ""]
    command = [sys.executable, "-c", SCRIPT, *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    server = "https://10.0.0.1:443" if way == "pod" else "http://file"
    controllers = ["cloneset", "daemonset", "jobs", "policy", "sidecar", "statefulset", "topology"]
    everybody = sorted([*controllers, "console", "statemetrics", "watcher", "webhook"])
    assert said == [f"{everybody} {server} Bearer t", "False False"]
