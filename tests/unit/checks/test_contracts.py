"""The contracts of imports are about every service: import-linter only looks at what is listed."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
CONTRACTS = {contract["name"]: contract for contract in LINTER["contracts"]}
PLACES = {
    "root_packages": LINTER["root_packages"],
    "independence": CONTRACTS["Services never import each other"]["modules"],
    "command line": CONTRACTS["Libraries and services know nothing of the command line"]["source_modules"],
}


@pytest.mark.parametrize("place", PLACES)
def test_every_service_is_under_contract(place: str) -> None:
    services = {folder.name for folder in (ROOT / "services").glob("*/flotilla_*")}
    assert services
    assert services - {*PLACES[place]} == set()
