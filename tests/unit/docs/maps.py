"""Reads the maps of the documents: glossary, map of the library, tables of modules in the services' READMEs."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "libs" / "common" / "flotilla_common"
SIMULATOR = ROOT / "tests" / "simulation"
SERVICES = sorted(path.parent for path in ROOT.glob("services/*/README.md"))

_CODE = re.compile(r"`([^`\s]+)`")
_ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)


def rows(text: str) -> Iterator[list[str]]:
    """Return the cells of all rows of tables, without headings and rules."""
    for match in _ROW.finditer(text):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", match[1])]
        if not set("".join(cells)) <= set("-: "):
            yield cells


def packages(root: Path) -> set[str]:
    """Return all packages below a package, as paths."""
    found = (path.parent.relative_to(root).as_posix() for path in root.rglob("__init__.py"))
    return {name for name in found if name != "."}


def modules(root: Path) -> set[str]:
    """Return the modules of a package and its subpackages, as paths; generated ones belong to their package."""
    files = (path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    return {name for name in files if not name.endswith("__init__.py") and "/cri_" not in name}


def named(cell: str) -> list[str]:
    """Return what a cell names in code type: `plan.py`, `api/kinds/`."""
    return _CODE.findall(cell)


def table_of_modules(readme: Path) -> list[str]:
    """Return the modules that a service's README lists, as paths below its package.

    A table lists modules in its first column, under a heading `file`, or ``file in `folder/` ``.
    """
    found: list[str] = []
    folder, reading = "", False
    for line in readme.read_text(encoding="utf-8").splitlines():
        cells = next(rows(line), [])
        if heading := re.fullmatch(r"\|\s*file(?: in `([\w/]+)/`)?\s*\|.*", line):
            folder, reading = heading[1] or "", True
        elif not line.startswith("|"):
            reading = False
        elif reading and cells:
            found += [f"{folder}/{name}".lstrip("/") for name in named(cells[0])]
    return found
