"""Random objects of every kind within its CRD, and the losses between two forms of an object.

Forms are an object as sent, as the apiserver stores it in a version, and as converted.
"""

import random
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from tests.testkit.documents import Json

Choices = Mapping[str, tuple[str, ...]]
"""Values of string fields, by the names of the fields."""

BOTH = [kind for kind in catalogue.KINDS if len(kind.versions) == 2]
"""The kinds with two versions."""

_CHOICES: dict[tuple[str, str], Choices] = {
    ("CloneSet", "v1alpha1"): {"type": ("ReCreate", "InPlaceIfPossible", "InPlaceOnly")},
    ("CloneSet", "v1beta1"): {
        "type": ("RollingUpdate", "OnDelete"),
        "podUpdatePolicy": ("ReCreate", "InPlaceIfPossible", "InPlaceOnly"),
    },
}

_GONE = {
    # Neither the original nor we ever read them there: annotations are v1alpha1's form of them (cloneset.md §2.4).
    "CloneSet": r"\.spec\.updateStrategy\.inPlaceUpdateStrategy(: .*|\.imagePreDownload.*)"
    r"|\.spec\.scaleStrategy\.disablePVCReuse: False -> None",  # the same as absent
    "SidecarSet": r"\.spec\.(namespace|namespaceSelector\..*): .*",  # becomes a selector for good (sidecarset.md §2.4)
    "WorkloadSpread": r".*\.conditions\[\d\]\.lastUpdateTime: .*",  # v1beta1's conditions are those of Kubernetes
}
"""Fields of objects of v1alpha1 that the specifications do not keep."""

_TEXTS = ("a", "web", "x/y", "é")
_TIMES = ("2026-01-02T03:04:05Z", "2026-11-30T00:00:00Z")
_IDENTITIES = ("name", "type", "namespace")


def random_object(kind: Kind, version: str, dice: random.Random, name: str = "one") -> Json:
    """Return an object with random fields, some of them absent. Items of lists have names of their own."""
    properties = _schema(kind.resource.plural, version)["properties"]
    draw = _Draw(dice, _CHOICES.get((kind.name, version), {}))
    metadata = {"name": name, "labels": {"app": "one"}, "annotations": {"example.com/mine": "yes"}}
    return {
        "apiVersion": f"{kind.resource.group}/{version}",
        "kind": kind.name,
        "metadata": metadata if dice.random() < 0.7 else {"name": name},
        **draw.fields({key: properties[key] for key in ("spec", "status")}, {"spec"}, 0.8),
    }


def pruned(kind: Kind, document: Json) -> Json:
    """Return what the apiserver keeps of the document: the fields of its version."""
    version = document["apiVersion"].partition("/")[2]
    kept = _pruned(_schema(kind.resource.plural, version), document)
    return kept | {"metadata": document["metadata"]}


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Return what the document had and has no more, by path. Empty values count as absent."""
    if isinstance(before, dict) and (after is None or isinstance(after, dict)):
        after = after or {}
        return [place for key, value in before.items() for place in lost(value, after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) <= len(after):
        pairs = enumerate(zip(before, after, strict=False))
        return [place for number, pair in pairs for place in lost(*pair, f"{path}[{number}]")]
    return [] if before == after or before in ({}, [], "") else [f"{path}: {before!r} -> {after!r}"]


def lost_in_storage(kind: Kind, written: Json, read: Json) -> list[str]:
    """Return what an object of v1alpha1 lost, but for what the specifications do not keep."""
    return [place for place in lost(written, read) if not re.fullmatch(_GONE.get(kind.name, "-"), place)]


@cache
def _schema(plural: str, version: str) -> Json:
    (kind,) = [one for one in catalogue.KINDS if one.resource.plural == plural]
    return kind.rules().schema(version).manifest(kind.doc, stored=True, scale=False)["schema"]["openAPIV3Schema"]


def _pruned(schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, list):
        return [_pruned(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(each := schema.get("additionalProperties"), dict):
        return {key: _pruned(each, item) for key, item in value.items()}
    properties = schema.get("properties", {})
    return {key: _pruned(properties[key], item) for key, item in value.items() if key in properties}


class _Draw:
    def __init__(self, dice: random.Random, choices: Choices) -> None:
        self._dice, self._choices = dice, choices

    def fields(self, properties: Json, required: set[str], chance: float) -> Json:
        drawn = [name for name in properties if name in required or self._dice.random() < chance]
        return {name: self._field(name, properties[name], chance * 0.85) for name in drawn}

    def _field(self, name: str, schema: Json, chance: float) -> Any:
        if name in self._choices and schema.get("type") == "string":
            return self._dice.choice(self._choices[name])
        return self._value(schema, chance)

    def _value(self, schema: Json, chance: float) -> Any:
        if schema.get("x-kubernetes-int-or-string"):
            return self._dice.choice([0, 3, "10%", "100%"])
        if "enum" in schema:
            return self._dice.choice([one for one in schema["enum"] if one])
        match schema.get("type"):
            case "integer":
                return self._dice.randrange(1, 5)
            case "boolean":
                return self._dice.random() < 0.5
            case "string":
                return self._dice.choice(_TIMES if schema.get("format") == "date-time" else _TEXTS)
            case "array":
                return self._items(schema["items"], schema.get("minItems", 0), chance)
            case _:
                return self._object(schema, chance)

    def _items(self, schema: Json, fewest: int, chance: float) -> list[Any]:
        items = [self._value(schema, chance) for _ in range(self._dice.randrange(fewest, 3))]
        for number, item in enumerate(items):
            if isinstance(item, dict):
                item.update({key: f"{key}-{number}" for key in _IDENTITIES if key in schema.get("properties", {})})
        return items

    def _object(self, schema: Json, chance: float) -> Json:
        if properties := schema.get("properties"):
            return self.fields(properties, set(schema.get("required", ())), chance)
        if isinstance(each := schema.get("additionalProperties"), dict):
            return {f"key-{number}": self._value(each, chance) for number in range(self._dice.randrange(3))}
        free = {"free": {"form": self._dice.choice(_TEXTS)}}
        return free | (
            {"apiVersion": "v1", "kind": "ConfigMap"} if schema.get("x-kubernetes-embedded-resource") else {}
        )
