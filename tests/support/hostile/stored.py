"""Objects as stored in etcd, made from the types by which a controller reads them.

Every typed member may be there, at its limits, absent, or refer to another owner.
"""

import random
from typing import Any

import msgspec
from msgspec import inspect

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import Resource
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch
from tests.support.hostile.documents import Documents
from tests.support.hostile.reviews import schema_of
from tests.support.hostile.values import LABELS, Value, Values

NAMESPACE, NAME, UID = "shop", "web", "uid-of-web"
"""Identity of the planned object."""

_SPITE = (0.0, 0.01, 0.03, 0.1, 0.3)
_DENSITY = (0.1, 0.3, 0.7)
_MOST_DEPENDENTS = 6


class Stored:
    """Draws an object of a controller, and its surroundings; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._count = 0

    def primary(self, spec: ControllerSpec[Any, Any]) -> bytes:
        """Return the object that is planned, as JSON."""
        return self._encoded(self._drawn(spec.primary), self._metadata(spec.resource, NAME, UID))

    def dependents(self, spec: ControllerSpec[Any, Any], watch: Watch[Any]) -> list[bytes]:
        """Return the objects of a watched resource as JSON: the planned object's own, others', and orphans."""
        return [self._dependent(spec, watch, number) for number in range(self._dice.randrange(_MOST_DEPENDENTS))]

    def _dependent(self, spec: ControllerSpec[Any, Any], watch: Watch[Any], number: int) -> bytes:
        dice = self._dice
        name = dice.choice((f"{NAME}-{number}", f"{NAME}-{number}", f"data-{NAME}-{number}", f"node-{number}", NAME))
        metadata = self._metadata(watch.resource, name, f"uid-{number}")
        if dice.random() < 0.9:
            owner = {"apiVersion": spec.resource.api_version, "kind": spec.resource.kind, "name": NAME, "uid": UID}
            metadata["ownerReferences"] = [owner | {"controller": dice.random() < 0.9}]
        return self._encoded(self._drawn(watch), metadata)

    def _drawn(self, watch: Watch[Any]) -> Json:
        dice = self._dice
        room = dice.choice((0, 0, 0, 20_000, 200_000))
        values = Values(dice, dice.choice(_SPITE), room)
        documents = Documents(values, dice.choice(_DENSITY))
        kinds = [kind for kind in catalogue.KINDS if kind.resource == watch.resource]
        if kinds and dice.random() < 0.5:
            drawn = documents.of_schema(schema_of(kinds[0], watch.resource.version))
        else:
            drawn = Typed(documents).of(inspect.type_info(watch.type))
        return drawn if isinstance(drawn, dict) else {}

    def _metadata(self, resource: Resource, name: str, uid: str) -> Json:
        self._count += 1
        dice = self._dice
        documents = Documents(Values(dice, dice.choice(_SPITE), dice.choice((0, 0, 20_000))), 1.0)
        foreign = dice.random() < 0.1
        namespace = ("restored" if foreign and uid != UID else NAMESPACE) if resource.namespaced else ""
        fixed = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": str(self._count)}
        made = documents.metadata(**fixed, generation=documents.values.dice.choice((1, 2, 2**63 - 1)))
        made["creationTimestamp"] = documents.values.time()
        if dice.random() < 0.1:
            made |= {
                "deletionTimestamp": documents.values.time(),
                "deletionGracePeriodSeconds": documents.values.integer(),
            }
        return made

    def _encoded(self, drawn: Json, metadata: Json) -> bytes:
        return msgspec.json.encode({**drawn, "metadata": metadata})


class Typed:
    """Draws documents that decode as a type of ours."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._values = documents.values

    def of(self, kind: inspect.Type, name: str = "", level: int = 0) -> Value:
        """Return JSON that may be decoded as the type. `name`: the member that gets it."""
        values = self._values
        match kind:
            case inspect.StructType():
                return {
                    field.encode_name: self.of(field.type, field.encode_name, level + 1)
                    for field in kind.fields
                    if self._documents.is_there(field.encode_name, level, needed=field.required)
                }
            case inspect.ListType():
                return self._documents.repeated(lambda: self.of(kind.item_type, name, level + 1))
            case inspect.DictType():
                return self._entries(kind, name, level)
            case inspect.UnionType():
                return self.of(values.dice.choice(kind.types), name, level)
            case inspect.NoneType():
                return None
            case _:
                return self._leaf(kind)

    def _entries(self, kind: inspect.DictType, name: str, level: int) -> Value:
        if name in ("labels", "matchLabels", "annotations"):
            return dict(LABELS)
        keys = {str(self._values.text()) for _ in range(self._values.dice.randrange(3))}
        return {key: self.of(kind.value_type, name, level + 1) for key in keys}

    def _leaf(self, kind: inspect.Type) -> Value:
        values = self._values
        match kind:
            case inspect.StrType():
                drawn = values.text()
                return drawn if isinstance(drawn, str) else ""
            case inspect.IntType():
                drawn = values.integer(-(2**63), 2**63 - 1)
                return drawn if isinstance(drawn, int) else 0
            case inspect.BoolType():
                return values.dice.random() < 0.5
            case inspect.FloatType():
                return values.dice.choice((0.0, 1.5, -1e300, 1e300))
            case inspect.DateTimeType():
                return values.time()
            case _:
                return self._documents.of_struct("PodTemplateSpec")
