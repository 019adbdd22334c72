"""Converts objects between the two versions of our kinds; v1beta1 is the hub of every conversion.

A client of v1alpha1 reads an object, changes it and writes it back. Fields that v1alpha1 lacks travel in an annotation,
as a partial object of v1beta1, and are restored on the way to storage; stored objects never have the annotation
(docs/adr/0034).

Paths name the fields. Their members are separated by dots, `*` is each member of a map, and `[key]` each item of a list
whose items that key (or keys) identifies: `status.subsetStatuses[name].conditions[type].observedGeneration`.
"""

import re
from collections.abc import Callable, Iterable

import msgspec

from flotilla_common.api.documents import Json, ensured, is_object, mapping, mappings, member, strings, text
from flotilla_common.api.jsontext import read_json

ANNOTATION = "flotilla.kruise.io/v1beta1-fields"

TOO_LARGE = "too large for an annotation"
"""The value if the fields do not fit: the object can be read in the older version, but not written."""

_ANNOTATIONS_LIMIT = 256 * 1024
"""The most bytes of all annotations of an object: the apiserver refuses conversions that exceed it."""


class Member(msgspec.Struct, frozen=True):
    """A member of an object."""

    name: str


class Members(msgspec.Struct, frozen=True):
    """Each member of a map."""


class Items(msgspec.Struct, frozen=True):
    """Each item of a list, identified by the values of the keys."""

    keys: tuple[str, ...]

    def identity(self, item: Json) -> tuple[object, ...]:
        """Return the values that identify the item."""
        return tuple(map(str, map(item.get, self.keys)))


Step = Member | Members | Items
Path = tuple[Step, ...]

_STEPS = re.compile(r"\[([\w,]+)\]|(\*)|(\w+)")


def path(written: str) -> Path:
    """Parse a path. Its last step is a member."""
    return tuple(
        Items(tuple(keys.split(","))) if keys else Members() if each else Member(name)
        for keys, each, name in _STEPS.findall(written)
    )


def take(document: Json, paths: Iterable[Path]) -> Json:
    """Remove the fields from the document, and return them as a partial document. No two paths share a list."""
    taken: Json = {}
    for steps in paths:
        _union(taken, mapping(_take(document, steps)))
    return taken


def _take(value: object, steps: Path) -> Json | list[Json]:
    """Remove the fields at the steps from the value, and return them as a part of it; empty without any."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, Items):
        parts = [(item, mapping(_take(item, rest))) for item in mappings(value)]
        return [{key: item.get(key) for key in step.keys} | part for item, part in parts if part]
    holder = mapping(value)
    names = holder.keys() if isinstance(step, Members) else holder.keys() & {step.name}
    if not rest:
        found = {name: holder.pop(name) for name in names}
        return {name: field for name, field in found.items() if field is not None}
    return {name: part for name in names if (part := _take(holder[name], rest))}


def _union(into: Json, other: Json) -> None:
    for name, value in other.items():
        held = into.setdefault(name, value)
        if held is not value and is_object(held) and is_object(value):
            _union(held, value)


def put_back(document: Json, kept: Json, paths: Iterable[Path]) -> None:
    """Restore fields that the document lacks: its own values win, and removed items stay away.

    So does a removed status: a copy of an object that is created under another name begins without one.
    """
    for steps in paths:
        if isinstance(steps[0], Member) and is_object(document.get(steps[0].name)):
            _put_back(document, kept, steps)


def _put_back(value: object, kept: object, steps: Path) -> None:
    step, rest = steps[0], steps[1:]
    if isinstance(step, Items):
        parts = {step.identity(part): part for part in mappings(kept)}
        for item in mappings(value):
            _put_back(item, parts.get(step.identity(item)), rest)
        return
    into, fields = mapping(value), mapping(kept)
    for name in fields.keys() & ({step.name} if isinstance(step, Member) else into.keys()):
        if not rest:
            into.setdefault(name, fields[name])
        elif isinstance(rest[0], Member):
            _put_back(ensured(into, name), fields[name], rest)
        else:
            _put_back(into.get(name), fields[name], rest)


def show(document: Json, fields: Json) -> None:
    """Write the fields into the annotation of the document; without fields remove it."""
    annotations = mapping(member(document, "metadata").get("annotations"))
    annotations.pop(ANNOTATION, None)
    if not fields:
        return
    written = msgspec.json.encode(fields).decode()
    texts = [ANNOTATION, written, *strings(annotations), *strings(annotations).values()]
    fits = sum(len(text.encode()) for text in texts) <= _ANNOTATIONS_LIMIT
    ensured(ensured(document, "metadata"), "annotations")[ANNOTATION] = written if fits else TOO_LARGE


def hide(document: Json) -> Json:
    """Remove the annotation from the document, and return its fields. Raises ValueError if it cannot be read."""
    metadata = member(document, "metadata")
    annotations = mapping(metadata.get("annotations"))
    written = annotations.pop(ANNOTATION, None)
    if written is None:
        return {}
    if not annotations:
        del metadata["annotations"]
    if written == TOO_LARGE:
        raise ValueError("the fields that only v1beta1 has do not fit into an annotation: write it as v1beta1")
    try:
        return read_json(str(written), Json)
    except ValueError as fault:
        raise ValueError(f"invalid value of annotation {ANNOTATION}: {fault}") from fault


V1ALPHA1 = "apps.kruise.io/v1alpha1"
V1BETA1 = "apps.kruise.io/v1beta1"

Convert = Callable[[Json], None]
"""Changes the fields of a document from one version to the other."""


class Conversion(msgspec.Struct, frozen=True):
    """The conversion of a kind between its versions."""

    kind: str
    to_beta: Convert
    to_alpha: Convert
    only_beta: tuple[Path, ...] = ()
    """The fields that v1alpha1 cannot express: an annotation keeps them (docs/adr/0034)."""
    group: str = "apps.kruise.io"

    def convert(self, document: Json, version: str) -> Json:
        """Return the object in the wanted `group/version`, as a new document.

        Raises ValueError for any other version, and for annotations that cannot be read as fields.
        """
        source, alpha, beta = text(document.get("apiVersion")), f"{self.group}/v1alpha1", f"{self.group}/v1beta1"
        steps = {(alpha, beta): self._upward, (beta, alpha): self._downward}
        if (source, version) not in steps:
            raise ValueError(f"cannot convert {self.kind} from {source} to {version}")
        result = msgspec.json.decode(msgspec.json.encode(document), type=Json)  # no recursion, however deep
        result["apiVersion"] = version
        steps[source, version](result)
        return result

    def _upward(self, document: Json) -> None:
        put_back(document, hide(document), self.only_beta)
        self.to_beta(document)

    def _downward(self, document: Json) -> None:
        self.to_alpha(document)
        show(document, take(document, self.only_beta))

    def to_hub(self, document: Json) -> Json:
        """Return the object as v1beta1; the same document if it already is."""
        hub = f"{self.group}/v1beta1"
        return document if document.get("apiVersion") == hub else self.convert(document, hub)


def annotate(document: Json, annotations: dict[str, str]) -> None:
    """Add annotations to the document, if there are any: an older version keeps fields there that it lacks."""
    if annotations:
        metadata = document.setdefault("metadata", {})
        metadata["annotations"] = mapping(metadata.get("annotations")) | annotations


def only_beta(*paths: str) -> tuple[Path, ...]:
    """Return the paths of fields, for a Conversion."""
    return tuple(map(path, paths))
