"""The maps are complete: glossary, map of the library, tables of modules in the services' READMEs."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.unit.docs import maps
from tests.unit.docs.maps import LIBRARY, ROOT, SERVICES, SIMULATOR, named, rows

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
MAP = (ROOT / "libs" / "common" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_every_module_of_a_service_stands_in_its_table_once(service: Path):
    package = next(service.glob("flotilla_*"))
    listed = maps.table_of_modules(service / "README.md")
    assert sorted(listed) == sorted(maps.modules(package))


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_files_that_a_service_speaks_of_are_its_own_or_the_librarys(service: Path):
    package = next(service.glob("flotilla_*"))
    known = {f"/{name}" for root in (package, LIBRARY) for name in maps.modules(root)}
    known |= {f"/{webhook}" for webhook in maps.modules(ROOT / "services" / "webhook" / "flotilla_webhook")}
    names = {name for name in named((service / "README.md").read_text(encoding="utf-8")) if name.endswith(".py")}
    assert {name for name in names if not any(one.endswith(f"/{name}") for one in known)} == set()


def test_every_module_of_the_simulator_stands_in_its_table_once():
    listed = maps.table_of_modules(SIMULATOR / "README.md")
    assert sorted(listed) == sorted(maps.modules(SIMULATOR))


def test_every_service_has_a_table():
    assert {path.name for path in SERVICES} == {path.parent.name for path in ROOT.glob("services/*/pyproject.toml")}


def test_the_map_of_the_library_has_every_package_and_top_level_module():
    listed = [name for cells in rows(MAP) for name in named(cells[0])]
    packages = {re.sub(r"^api/kinds/\w+$", "api/kinds/<kind>", name) for name in maps.packages(LIBRARY)}
    modules = {path.name for path in LIBRARY.glob("*.py")} - {"__init__.py"}
    assert sorted(listed) == sorted(packages | modules)


def test_the_map_of_the_library_is_in_the_order_of_its_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(one["layers"] for one in contracts if one.get("containers") == ["flotilla_common"])
    ranks = {name.strip(): rank for rank, layer in enumerate(reversed(layers)) for name in layer.split("|")}
    listed = [name.split("/")[0].removesuffix(".py") for cells in rows(MAP) for name in named(cells[0])]
    assert [ranks[name] for name in listed] == sorted(ranks[name] for name in listed)


def test_the_words_of_the_glossary_are_in_order_and_lead_to_files():
    entries = [cells for cells in rows(GLOSSARY) if cells[0] != "word"]
    words = [cells[0] for cells in entries]
    assert words == sorted(words, key=str.lower)
    assert len(words) == len(set(words)) > 60
    for word, meaning, where in entries:
        assert meaning.endswith("."), word
        assert named(where), word
        for name in named(where):
            folder = ROOT if name.split("/")[0] in ("services", "cli", "devcluster", "tests") else LIBRARY
            assert (folder / name).exists(), f"{word}: {name}"
