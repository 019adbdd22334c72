"""Whole objects, from the OpenAPI schemas of our CRDs and, where those are open, from the types of pods."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from flotilla_common.api.documents import Json
from tests.support.hostile.keywords import known_keys, vocabulary
from tests.support.hostile.values import LABELS, Value, Values

Members = list[tuple[str, str, str]]
"""Members of a Go struct: name, flags and type of each (`podschema.json`)."""

_DEPTH = 12
"""Levels of plausible members; deeper there is only spite."""

_BOUNDS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_NAMED = {"template": "PodTemplateSpec", "jobTemplate": "PodTemplateSpec", "resource": "PersistentVolumeClaimTemplate"}
_ITEMS = {"volumeClaimTemplates": "PersistentVolumeClaimTemplate", "ephemeralContainers": "Container"}
_LIKELY = (
    "name",
    "image",
    "selector",
    "template",
    "matchLabels",
    "containers",
    "spec",
    "metadata",
    "targetRef",
    "kind",
)
"""Members without which little happens: they are nearly always there."""


class Documents:
    """Draws objects; `density` is the share of optional members that are there."""

    def __init__(self, values: Values, density: float) -> None:
        self.values = values
        self._density = density

    def of_schema(self, schema: Json, name: str = "", level: int = 0) -> Value:
        """Return a value for the schema. `name`: the member that gets it."""
        values = self.values
        if values.is_spiteful():
            return values.wild()
        match schema.get("type"):
            case "object":
                return self._object(schema, name, level)
            case "array":
                return self.repeated(lambda: self._item(schema["items"], name, level))
            case _:
                return self._leaf(schema)

    def _leaf(self, schema: Json) -> Value:
        values = self.values
        match schema.get("type"):
            case "integer":
                return values.integer(*_BOUNDS.get(schema.get("format", ""), (-sys.maxsize, sys.maxsize)))
            case "boolean":
                return values.flag()
            case "number":
                return values.integer()
            case _ if schema.get("x-kubernetes-int-or-string"):
                return values.integer() if values.dice.random() < 0.5 else values.text("1", "10%", "50%", "100%")
            case _ if schema.get("format") == "date-time":
                return values.time()
            case _:
                return values.text(*schema.get("enum", ()), *vocabulary(str(schema.get("description", ""))))

    def of_struct(self, kind: str, name: str = "", level: int = 0) -> Value:
        """Return what Go's type of that name can hold."""
        values = self.values
        if values.is_spiteful():
            return values.wild()
        if kind.startswith("[]"):
            return self.repeated(lambda: self.of_struct(kind[2:], name, level))
        if kind.startswith("{}"):
            return (
                self._labels()
                if name in ("labels", "matchLabels", "annotations")
                else {self._string(): self.of_struct(kind[2:], name, level)}
            )
        return self._members(kind, level) if kind in pod_types() else self._plain(kind)

    def _plain(self, kind: str) -> Value:
        values = self.values
        match kind:
            case "int":
                return values.integer()
            case "bool":
                return values.flag()
            case "time":
                return values.time()
            case "quantity":
                return values.text("1", "500m", "1Gi")
            case _:
                return values.text()

    def metadata(self, **given: Value) -> Json:
        """Return metadata with annotations and labels that mean something to us."""
        made: Json = {"labels": self._labels(), "annotations": self._labels(), **given}
        for key in self.values.dice.sample(known_keys(), self.values.dice.randrange(4)):
            made[self.values.dice.choice(("labels", "annotations"))][key] = self._string()
        if self.values.dice.random() < 0.2:
            made["finalizers"] = [self._string()]
        return made

    def _string(self) -> str:
        drawn = self.values.text()
        return drawn if isinstance(drawn, str) else msgspec.json.encode(drawn).decode()

    def _labels(self) -> dict[str, str]:
        return {**LABELS, "x": self._string()} if self.values.is_spiteful() else dict(LABELS)

    def _object(self, schema: Json, name: str, level: int) -> Value:
        properties: Mapping[str, Json] = schema.get("properties", {})
        if isinstance(schema.get("additionalProperties"), dict):
            if name in ("labels", "matchLabels", "annotations", "labelsHandler"):
                return self._labels()
            return {self._string(): self.of_schema(schema["additionalProperties"], name, level + 1)}
        made: Json = {}
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            made = self._unstructured(name, level)
        if not isinstance(made, dict):
            return made
        required = schema.get("required", ())
        for member, inner in properties.items():
            if self.is_there(member, level, needed=member in required):
                made[member] = self.of_schema(inner, member, level + 1)
        return made

    def _unstructured(self, name: str, level: int) -> Value:
        if name == "metadata":
            return self.metadata()
        return self.of_struct(_NAMED.get(name) or member_types().get(name, "PodTemplateSpec"), name, level)

    def _item(self, schema: Json, name: str, level: int) -> Value:
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            return self.of_schema(schema, name, level + 1)
        kind = _ITEMS.get(name) or member_types().get(name, "[]Container").removeprefix("[]")
        drawn, own = self.of_struct(kind, name, level), schema.get("properties", {})
        if isinstance(drawn, dict):
            drawn |= {key: self.of_schema(one, key, level + 1) for key, one in own.items() if self.is_there(key, level)}
        return drawn

    def _members(self, kind: str, level: int) -> Json:
        members = pod_types()[kind]
        return {
            name: self.of_struct(inner, name, level + 1)
            for name, flags, inner in members
            if self.is_there(name, level, needed=not flags)
        }

    def is_there(self, name: str, level: int, *, needed: bool = False) -> bool:
        """Report whether to include a member."""
        if level > _DEPTH:
            return False
        chance = 0.97 if needed or name in _LIKELY else self._density / (1 + level / 4)
        return self.values.dice.random() < chance

    def repeated(self, draw: Callable[[], Value]) -> Value:
        """Return a list: of one or two, or of very many."""
        values, first = self.values, draw()
        if values.is_spiteful() and values.has_room():
            return values.many(values.dice.choice((first, first, {}, None, "a")))
        return [first, *(draw() for _ in range(values.dice.choice((0, 0, 1))))]


def pod_types() -> Mapping[str, Members]:
    """Return the struct types that a pod template can contain, by name."""
    return _pod_types()


@cache
def _pod_types() -> dict[str, Members]:
    text = (files("flotilla_common.api") / "podschema" / "podschema.json").read_text()
    return {
        kind: [(name, flags, inner) for name, flags, inner in members] for kind, members in json.loads(text).items()
    }


@cache
def member_types() -> Mapping[str, str]:
    """Return the type of a member by its name alone, for places that our schemas leave open."""
    return {name: inner for members in pod_types().values() for name, _, inner in members}
