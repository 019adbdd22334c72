"""`flotilla doctor` as a user runs it."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from flotilla_common.api.documents import Json
from tests.support.broker import environment
from tests.support.fleet import Fleet


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
    return process.returncode or 0, json.loads(output)


def named(report: Json) -> set[tuple[str, str]]:
    """Return code and object of each finding."""
    return {(one["code"], one["about"]) for one in report["findings"]}
