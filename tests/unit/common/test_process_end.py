"""The end of a process whose services cannot run: one line for errors that the user can fix, else a traceback."""

import json
import subprocess
import sys

import pytest

FAILING = """
import sys
from flotilla_common import service
from flotilla_common.bus.connection import OpenBusError
from flotilla_common.health import PortTaken
from flotilla_common.mirror.table import VersionsWentBack
from flotilla_common.settings import Settings

taken = PortTaken("port 80: taken")
restored = VersionsWentBack("etcd was restored")
open_bus = OpenBusError("port 80: taken")
failures = {
    "endpoint": taken,
    "service": ExceptionGroup("", [ExceptionGroup("", [taken])]),
    "restored": ExceptionGroup("", [ExceptionGroup("", [restored]), restored]),
    "bus": ExceptionGroup("", [open_bus]),
    "not alone": ExceptionGroup("", [taken, ValueError("boom")]),
}

async def failing(*_):
    raise failures[sys.argv[1]]

service.run_services = failing
sys.exit(service.run_process([], Settings()))
"""


@pytest.mark.parametrize(
    ("failure", "code", "event"),
    [
        ("endpoint", 2, "cannot bind a port"),
        ("service", 2, "cannot bind a port"),
        ("bus", 2, "the bus requires no credentials"),
        ("not alone", 1, "service failed"),
    ],
)
def test_what_another_setting_helps_against_is_one_line(failure: str, code: int, event: str) -> None:
    result = subprocess.run([sys.executable, "-c", FAILING, failure], capture_output=True, text=True, check=False)
    line = json.loads(result.stdout + result.stderr)
    assert (result.returncode, line["event"]) == (code, event)
    assert ("exception" in line) == (code == 1)
    assert line.get("error", "port 80: taken") == "port 80: taken"


def test_a_restored_etcd_is_one_line() -> None:
    """The process is restarted: only a new one has an empty cache."""
    result = subprocess.run([sys.executable, "-c", FAILING, "restored"], capture_output=True, text=True, check=False)
    line = json.loads(result.stdout + result.stderr)
    assert (result.returncode, line["event"].split(" (")[0]) == (1, "resourceVersions went backwards")
    assert line["error"] == "etcd was restored"
    assert "exception" not in line
