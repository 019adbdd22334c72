"""Reads the manifests of tests/data: `articles/` has those that users learn from, `manifests/` our own."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def article(name: str) -> str:
    """Return the text of a manifest of an article, to the letter: `statefulset/in-place`."""
    return _text("articles", name)


def manifest(name: str) -> str:
    """Return the text of a manifest of our own."""
    return _text("manifests", name)


def _text(folder: str, name: str) -> str:
    return (DATA / folder / f"{name}.yaml").read_text(encoding="utf-8")
