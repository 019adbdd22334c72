"""`flotilla doctor` as a user runs it."""

import asyncio
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from flotilla_cli.local import bound_command
from flotilla_common.api.documents import Json
from tests.support.broker import environment
from tests.support.fleet import Fleet
from tests.support.helm import NAMESPACE, Release

SECRET = ("get", "secret", "flotilla-bus-reader")
VALUES = "go-template={{ range .data }}{{ . | base64decode }}{{ end }}"


async def doctor(flotilla: Fleet) -> tuple[int, Json]:
    """Exit code and report."""
    return await doctor_at(flotilla.cluster.kubeconfig, flotilla.nats.url, environment(flotilla.nats))


async def doctor_at(kubeconfig: Path, bus: str, environment: Mapping[str, str]) -> tuple[int, Json]:
    """Exit code and report for a cluster and the bus at a URL, with the bus's credentials in the environment."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "flotilla_cli", "doctor", "-o", "json"),
        f"--kubeconfig={kubeconfig}",
        f"--nats={bus}",
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert output, errors.decode()
    return process.returncode or 0, msgspec.json.decode(output)


async def doctor_of_chart(flotilla: Release, folder: Path) -> tuple[int, Json]:
    """Exit code and report, with a forwarded port and the read-only user of the bus, as docs/operations.md says."""
    reader = folder / "reader.seed"
    reader.write_text(await asyncio.to_thread(flotilla.kubectl, *SECRET, "-o", VALUES), encoding="utf-8")
    kubectl = [str(flotilla.cluster.program("kubectl")), f"--kubeconfig={flotilla.cluster.kubeconfig}"]
    words = [*kubectl, "-n", NAMESPACE, "port-forward", "svc/flotilla-bus", ":4222"]
    forward = await asyncio.create_subprocess_exec(*bound_command(words), stdout=asyncio.subprocess.PIPE)
    assert forward.stdout is not None
    try:
        port = re.search(rb"127\.0\.0\.1:(\d+)", await forward.stdout.readline())
        assert port is not None, "kubectl forwards no port"
        trusted = {"FLOTILLA_NATS_CREDS": str(reader), "FLOTILLA_NATS_CA": str(reader)}
        url = f"tls://localhost:{port[1].decode()}"
        return await doctor_at(flotilla.cluster.kubeconfig, url, {**os.environ, **trusted})
    finally:
        forward.kill()
        await forward.wait()


def named(report: Json) -> set[tuple[str, str]]:
    """Return code and object of each finding."""
    return {(one["code"], one["about"]) for one in report["findings"]}
