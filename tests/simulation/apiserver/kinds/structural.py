"""Structural schemas of CustomResourceDefinitions: unknown members vanish, defaults appear, wrong types are refused.

Only the words that our generated definitions use are known.
"""

from typing import Any, cast

from flotilla_common.control.plan import Json
from tests.simulation.apiserver.errors import FieldFault, required

_INT32 = 1 << 31
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def shaped(value: Any, schema: Json) -> Any:
    """Return the value without members that the schema lacks, and with its defaults. Shares unchanged parts."""
    match value:
        case dict():
            return _shaped_object(cast("Json", value), schema)
        case list() if "items" in schema:
            return _shaped_list(cast("list[Any]", value), schema["items"])
        case _:
            return value


def _shaped_list(items: list[Any], schema: Json) -> list[Any]:
    result: list[Any] = [shaped(item, schema) for item in items]
    return items if all(new is old for new, old in zip(result, items, strict=True)) else result


def _shaped_object(value: Json, schema: Json) -> Json:
    properties: Json = schema.get("properties", {})
    others: Any = schema.get("additionalProperties")
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") is True
    result: Json = {}
    for key, item in value.items():
        if key in properties:
            if item is not None:
                result[key] = shaped(item, properties[key])
        elif isinstance(others, dict):
            result[key] = shaped(item, cast("Json", others))
        elif keeps or others is True:
            result[key] = item
    for key, known in properties.items():
        if key not in result and "default" in known:
            result[key] = known["default"]
    same = result.keys() == value.keys() and all(result[key] is value[key] for key in result)
    return value if same else result


def faults(value: Any, schema: Json, path: str) -> list[FieldFault]:
    """Where the value is not what the schema says."""
    if wrong := _wrong_type(value, schema, path):
        return [wrong]
    found: list[FieldFault] = []
    if isinstance(value, dict):
        members = cast("Json", value)
        found += [required(_join(path, key)) for key in schema.get("required", ()) if key not in members]
        properties: Json = schema.get("properties", {})
        others: Any = schema.get("additionalProperties")
        for key, item in members.items():
            known = properties.get(key, others)
            if isinstance(known, dict):
                found += faults(item, cast("Json", known), _join(path, key))
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(cast("list[Any]", value)):
            found += faults(item, schema["items"], f"{path}[{index}]")
    return found


def _wrong_type(value: Any, schema: Json, path: str) -> FieldFault | None:
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, int | str) and not isinstance(value, bool):
            return None
        return _type_fault(path, "integer,string", value)
    wanted = schema.get("type")
    if wanted is None:
        return None
    if not isinstance(value, _TYPES[wanted]) or (isinstance(value, bool) and wanted != "boolean"):
        return _type_fault(path, wanted, value)
    if schema.get("format") == "int32" and not -_INT32 <= value < _INT32:
        return FieldFault("FieldValueInvalid", path, f"Invalid value: {value}: {path} in body must be of type int32")
    return None


def _type_fault(path: str, wanted: str, value: Any) -> FieldFault:
    names = ("boolean", "integer", "string", "array", "object")
    found = next((name for name in names if isinstance(value, _TYPES[name])), "float64")
    why = f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
    return FieldFault("FieldValueTypeInvalid", path, why)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
