"""Resolves references to the specifications: `cloneset.md §4.3`, and `§4.3` alone (see docs/spec/README.md)."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
SPEC = DOCS / "spec"
DOCUMENTS = {
    path.name: path for path in (*sorted(SPEC.glob("*.md")), DOCS / "architecture.md") if path.name != "README.md"
}
TREES = ("libs", "services", "cli", "devcluster", "docs", "helm", "integrations", "scripts", "tests")
SUFFIXES = {".py", ".md", ".yaml", ".tpl", ".toml"}

_HEADING = re.compile(r"^#+ (?:Part |Appendix )?([A-Z]?\d+(?:\.\d+)*|[A-Z])\b[. :]", re.MULTILINE)
_BOLD = re.compile(r"^\*\*(\d+(?:\.\d+)+) ", re.MULTILINE)
_ITEM = re.compile(r"^(\d+)\. ", re.MULTILINE)
_MARK = "\N{SECTION SIGN}"
_DOCUMENT = r"(?<![\w/])(?:docs/(?:spec/)?)?(?P<document>[a-z]+(?:-[a-z]+)*\.md)"
_NUMBER = r"\d+(?:\.\d+)*"
_SECTION = rf"(?P<common>C?){_MARK}\s?(?P<section>[A-Z]?{_NUMBER}|[A-Z]\b)(?:[-\N{{EN DASH}}](?P<last>{_NUMBER}))?"
_BARE = rf"(?<=\.md\s)(?:section\s)?(?P<bare>{_NUMBER})"  # as specifications cite each other: `imagepull.md 2.2`
_EITHER = re.compile(rf"{_DOCUMENT}|{_SECTION}|{_BARE}")
_LIST = re.compile(r"[`\s,;#\"]*(?:and|to)?[\s#\"]*")


class Reference(NamedTuple):
    """A section as a file cites it; `document` is empty where no document is found."""

    file: Path
    line: int
    document: str
    section: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.document or 'no document'} {_MARK}{self.section}"


@cache
def sections(document: str) -> set[str]:
    """Return the numbers of a document's sections, and of the items of sections without headings of their own."""
    text = DOCUMENTS[document].read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(text))
    found = {match[1] for match in headings} | {match[1] for match in _BOLD.finditer(text)}
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        found |= {f"{heading[1]}.{item[1]}" for item in _ITEM.finditer(text, heading.end(), end)}
    return found


def home(file: Path, text: str) -> str:
    """Return the document of sections without a document; empty if there is none."""
    if file in DOCUMENTS.values():
        return file.name
    named = next((match["document"] for match in _EITHER.finditer(text) if match["document"] in DOCUMENTS), "")
    folders = (f"{part}.md" for part in reversed(file.parts[:-1]))
    return named or next((name for name in folders if name in DOCUMENTS), "")


def references(file: Path, text: str) -> Iterator[Reference]:
    """Return all references of a file to sections. A list after a document belongs to it, also across lines."""
    if _MARK not in text:
        return
    own, named, end = home(file, text), "", 0
    for match in _EITHER.finditer(text):
        if not _LIST.fullmatch(text, end, match.start()):
            named = ""
        end = match.end()
        if match["document"]:
            named = match["document"] if match["document"] in DOCUMENTS else ""
            continue
        line = text.count("\n", 0, match.start()) + 1
        document = "common.md" if match["common"] else named or own
        for section in filter(None, (match["section"] or match["bare"], match["last"])):
            yield Reference(file, line, document, section)


def resolves(reference: Reference) -> bool:
    """Report whether the section exists."""
    return reference.document in DOCUMENTS and reference.section in sections(reference.document)


def files() -> Iterator[Path]:
    """Return all text files that may cite a specification."""
    yield from sorted(ROOT.glob("*.md"))
    for tree in TREES:
        yield from (path for path in sorted((ROOT / tree).rglob("*")) if path.suffix in SUFFIXES)
