"""Reads the recorded objects: a bundle (`flotilla bundle`) of a CloneSet with its pods, and of a node.

flotilla bundle cloneset/recorded-set -n recorded-space -o cloneset.jsonl
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.testkit.documents import Json

FOLDER = Path(__file__).parent / "recordings"


class Line(msgspec.Struct):
    """A stored message of a bundle; other lines have no subject."""

    subject: str = ""
    body: Json | None = None


def recorded(files: Iterable[Path] | None = None) -> dict[str, list[Json]]:
    """Return the recorded objects by kind, in the order of their names."""
    found: dict[str, dict[str, Json]] = {}
    for file in sorted(FOLDER.glob("*.jsonl")) if files is None else files:
        for text in file.read_bytes().splitlines():
            line = msgspec.json.decode(text, type=Line)
            body = line.body or {}
            if line.subject.startswith("kube.v1.") and "metadata" in body:
                found.setdefault(body["kind"], {})[body["metadata"]["name"]] = body
    return {kind: [by_name[name] for name in sorted(by_name)] for kind, by_name in found.items()}
