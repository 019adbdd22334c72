"""References lead somewhere: sections of specifications, numbers of decisions, files that pages name."""

import re
from pathlib import Path

import pytest

from tests.unit.docs import references
from tests.unit.docs.references import ROOT

_ADR = re.compile(r"\bADRs? ?(\d+)(?:(?:, | and )(\d+))*\b|docs/adr/(\d{4})")
_PATH = re.compile(
    r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|md|toml|tpl)|(?:libs|services|cli|devcluster|tests|docs|helm|scripts)/[\w./-]+)`"
)
_OTHERS = {"hosts.toml"}
"""Files of other programs."""


def present() -> list[str]:
    """Return the files of the repository, without caches and what hides."""
    trees = [path for path in ROOT.iterdir() if path.is_dir() and (not path.name.startswith(".") or path.name == ".ci")]
    found = [path for tree in trees for path in tree.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    found += [path for path in ROOT.iterdir() if path.is_file()]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


FILES = present()
PAGES = [
    ROOT / name for name in FILES if name.endswith(".md") and not name.startswith(("docs/spec/", "CHANGELOG", "tests/"))
]


def suffixes() -> set[str]:
    """Return all paths of files and folders, and their suffixes, such as `plan.py` and `cloneset/plan.py`."""
    paths = {Path(name) for name in FILES}
    paths |= {parent for path in paths for parent in path.parents}
    return {"/".join(path.parts[start:]) for path in paths for start in range(len(path.parts))}


SUFFIXES = suffixes()


def texts() -> dict[Path, str]:
    files = (file for file in references.files() if file != Path(__file__))
    return {file: file.read_text(encoding="utf-8") for file in files}


TEXTS = texts()


def test_every_section_that_is_cited_exists():
    found = [one for file, text in TEXTS.items() for one in references.references(file, text)]
    assert len(found) > 1000
    assert [str(one) for one in found if not references.resolves(one)] == []


def test_a_section_that_does_not_exist_is_noticed():
    file = ROOT / "services" / "cloneset" / "x.py"
    text = "cloneset.md §4.3, §99; §5.1 and (common.md §8.2 to §8.4), again §11; C§7.2 §4.3"
    found = list(references.references(file, text))
    assert [(one.document, one.section) for one in found] == [
        ("cloneset.md", "4.3"),
        ("cloneset.md", "99"),
        ("cloneset.md", "5.1"),
        ("common.md", "8.2"),
        ("common.md", "8.4"),
        ("cloneset.md", "11"),
        ("common.md", "7.2"),
        ("cloneset.md", "4.3"),
    ]
    assert [one.section for one in found if not references.resolves(one)] == ["99"]


@pytest.mark.parametrize(
    ("path", "text", "document"),
    [
        ("services/daemonset/flotilla_daemonset/daemonset/x.py", "see §4.8", "daemonset.md"),
        ("services/jobs/flotilla_jobs/x.py", "see §4.8", ""),
        ("services/jobs/flotilla_jobs/x.py", "see §4.8 (docs/operations.md, imagepull.md §5)", "imagepull.md"),
        ("docs/spec/cloneset.md", "(common.md), see §4.8", "cloneset.md"),
    ],
)
def test_a_section_without_a_document_belongs_to_the_files_own(path: str, text: str, document: str):
    assert next(references.references(ROOT / path, text)).document == document


def test_every_decision_that_is_cited_exists():
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    listed = {
        int(number): link for number, link in re.findall(r"^\| (\d+) \| (?:\[.*\]\((.*)\))?", index, re.MULTILINE)
    }
    files = {int(path.name[:4]): path.name for path in (ROOT / "docs" / "adr").glob("0*.md")}
    assert {number: link for number, link in listed.items() if link} == files
    assert list(listed) == list(range(1, max(listed) + 1))
    cited = {int(number) for text in TEXTS.values() for match in _ADR.findall(text) for number in match if number}
    assert len(cited) > 20
    assert {number for number in cited if number not in listed} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path):
    named = set(_PATH.findall(page.read_text(encoding="utf-8"))) - _OTHERS
    assert {name for name in named if name.rstrip("/") not in SUFFIXES} == set()
