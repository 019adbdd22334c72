"""Services import only what they use: schemas and admission are loaded by installers and webhooks."""

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, sys
from flotilla_common.api.kinds import catalogue
importlib.import_module(sys.argv[1]).service()
heavy = ("api", "admission", "crd", "crds", "validation", "conflicts", "rules")
print(*(name for name in sys.modules if name.startswith("flotilla_common.api.") and name.rpartition(".")[2] in heavy))
"""


@pytest.mark.parametrize(
    "service",
    ["cloneset", "daemonset", "jobs", "policy", "sidecar", "statefulset", "statemetrics", "topology", "watcher"],
)
def test_services_load_no_schemas_and_no_admission(service: str) -> None:
    command = [sys.executable, "-c", PROGRAM, f"flotilla_{service}.app"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []


def test_the_webhook_loads_the_admission_of_all_kinds() -> None:
    """The other way round, so that the names above are the right ones."""
    program = PROGRAM.replace(".service()", "; [kind.rules() for kind in catalogue.KINDS]")
    command = [sys.executable, "-c", program, "flotilla_webhook.app"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for module in (
        "cloneset.api",
        "nodeimage.api",
        "sidecarset.admission",
        "uniteddeployment.crd",
        "sidecarset.conflicts",
        "cloneset.validation",
    ):
        assert f"flotilla_common.api.kinds.{module}" in loaded
