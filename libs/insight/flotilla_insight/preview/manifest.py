"""Manifests as users write them: YAML or JSON, one or more documents, lists of objects."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from flotilla_common.api.documents import Json, is_object, mapping, mappings, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.meta import group_of
from flotilla_common.api.resources import Resource

_SUFFIXES = (".yaml", ".yml", ".json")


class UnreadableManifest(Exception):
    """The file is not a manifest."""


class Manifest(msgspec.Struct, frozen=True):
    """One object of our kinds, in the version of its manifest."""

    kind: Kind
    version: str
    document: Json

    @property
    def resource(self) -> Resource:
        """Return the resource that it is written to."""
        return msgspec.structs.replace(self.kind.resource, version=self.version)

    @property
    def namespace(self) -> str:
        """Return the namespace; empty for none."""
        return text(mapping(self.document.get("metadata")).get("namespace"))

    @property
    def name(self) -> str:
        """Return the name; never empty."""
        return text(mapping(self.document.get("metadata")).get("name"))


class Unsupported(msgspec.Struct, frozen=True):
    """An object that is skipped because it is not of our kinds, with the reason."""

    what: str  # ConfigMap web
    why: str


class _Loader(yaml.CSafeLoader):
    """A YAML loader that reads timestamps as strings, as kubectl does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def read(place: str) -> list[Manifest | Unsupported]:
    """Return the objects of a file, of a folder's files, or of stdin (`-`). Raises UnreadableManifest, OSError."""
    if place == "-":
        return parse(sys.stdin.read(), "standard input")
    path = Path(place)
    files = sorted(one for one in path.iterdir() if one.suffix in _SUFFIXES) if path.is_dir() else [path]
    return [found for file in files for found in parse(file.read_text(encoding="utf-8"), str(file))]


def parse(content: str, where: str) -> list[Manifest | Unsupported]:
    """Return the objects of a text. Raises UnreadableManifest."""
    try:
        documents: list[Any] = list(yaml.load_all(content, _Loader))
    except yaml.YAMLError as error:
        raise UnreadableManifest(f"{where}: {error}") from error
    return [_sorted_out(document, where) for one in documents if one is not None for document in _flat(one, where)]


def _flat(document: object, where: str) -> Iterator[Json]:
    """Yield the objects of a list, or the object itself."""
    if not is_object(document) or not text(document.get("kind")) or not text(document.get("apiVersion")):
        raise UnreadableManifest(f"{where}: an object needs apiVersion and kind")
    if document["kind"] == "List" and document["apiVersion"] == "v1":
        for item in mappings(document.get("items")):
            yield from _flat(item, where)
    else:
        yield document


def _sorted_out(document: Json, where: str) -> Manifest | Unsupported:
    name = text(mapping(document.get("metadata")).get("name"))
    kind, api_version = document["kind"], document["apiVersion"]
    what = f"{kind} {name}"
    try:
        found = catalogue.named(group_of(api_version), kind)
    except LookupError:
        return Unsupported(what, f"{kind} of {api_version} is not one of Flotilla's kinds")
    version = api_version.rpartition("/")[2]
    if version not in found.versions:
        return Unsupported(what, f"{api_version} is not served: {kind} has {', '.join(found.versions)}")
    if not name:
        raise UnreadableManifest(f"{where}: {kind} has no name")
    return Manifest(found, version, document)
