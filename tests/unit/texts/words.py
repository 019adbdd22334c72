"""Counts words that make prose hard to read; `python -m tests.unit.texts.words` rewrites the table.

CONTRIBUTING.md names what to write instead. The table has the number left in each tree, so that it only shrinks.
"""

import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
TABLE = Path(__file__).with_suffix(".json")
TREES = {
    "libs": ("libs/**/*.py", "libs/**/*.md"),
    "services": ("services/**/*.py", "services/**/*.md"),
    "cli": ("cli/**/*.py", "cli/**/*.md"),
    "devcluster": ("devcluster/**/*.py", "devcluster/**/*.md"),
    "docs": ("*.md", "docs/*.md", "docs/adr/*.md", "helm/**/*.md", "integrations/**/*.md"),
}
"""Counted files by tree. Specifications keep their words, and so does the past of CHANGELOG.md."""

WORDS = (
    *("for ever", "anew", "whoever", "whomever", "whatever", "nobody", "somebody", "no one", "everybody", "once more"),
    *("is none", "None of what", "so many", "so much of", "told", "tells of", "is to be", "has to be known", "thereof"),
    *(
        "he",
        "him",
        "his",
        "she",
        "her",
        "lets go",
        "let go",
        "takes in",
        "taken in",
        "judge",
        "judged",
        "misfit",
        "mend",
    ),
    *("stands in", "goes by", "as far as", "hears", "remembers", "forgets", "patience", "at hand", "riddle"),
)
STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING), tokenize.COMMENT}

Table = dict[str, dict[str, int]]


def pattern(word: str) -> re.Pattern[str]:
    """Return what finds a word, also across the end of a line. `None` is a value of Python, `none` a riddle."""
    text = rf"\b{re.escape(word)}\b".replace(r"\ ", r"[\s#]+")
    return re.compile(text, re.NOFLAG if "none" in word else re.IGNORECASE)


def prose(path: Path) -> Iterator[str]:
    """Return the texts of a file: all of a document, docstrings, comments and other strings of a program."""
    if path.suffix != ".py":
        yield path.read_text(encoding="utf-8")
        return
    comments: list[str] = []
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                comments.append(token.string)
            elif token.type in STRINGS:
                yield token.string
    yield "\n".join(comments)


def texts_of(tree: str) -> str:
    """Return all texts of a tree."""
    files = sorted({path for glob in TREES[tree] for path in ROOT.glob(glob)})
    files = [path for path in files if path.name != "CHANGELOG.md" and "/cri_" not in path.as_posix()]
    return "\n\n".join(text for path in files for text in prose(path))


def counted() -> Table:
    """Return how often each word is in each tree; words that are gone are left out."""
    table: Table = {}
    for tree in TREES:
        text = texts_of(tree)
        counts = {word: len(pattern(word).findall(text)) for word in sorted(WORDS, key=str.lower)}
        table[tree] = {word: count for word, count in counts.items() if count}
    return table


def allowed() -> Table:
    """Return the table as it is stored."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    TABLE.write_text(json.dumps(counted(), indent=2) + "\n", encoding="utf-8")
