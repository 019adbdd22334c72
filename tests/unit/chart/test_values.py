"""Values, their schema and their page agree."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from flotilla_common.settings import known_flags
from tests.testkit.documents import Json

ROOT = Path(__file__).parents[3]
CHART = ROOT / "helm" / "flotilla"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
TEMPLATES = {path.name: path.read_text(encoding="utf-8") for path in (CHART / "templates").iterdir()}
PAGE = (ROOT / "docs" / "chart.md").read_text(encoding="utf-8")
IGNORED = yaml.safe_load(TEMPLATES["_openkruise.tpl"].partition('"flotilla.ignoredValues" -}}')[2].partition("{{-")[0])


def described(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Yield every value of the schema, by its dotted name."""
    for name, value in schema.get("properties", {}).items():
        yield path + name, value
        yield from described(value, f"{path}{name}.")


def leaves(values: Json, schema: Json, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of values.yaml that the schema does not open further, by their dotted name."""
    for name, value in values.items():
        inner = schema.get("properties", {}).get(name, {})
        if inner.get("properties") and "default" not in inner:
            yield from leaves(value, inner, f"{path}{name}.")
        else:
            yield path + name, value


KNOWN = dict(described(SCHEMA)) | dict(described(SCHEMA["definitions"]["service"], "services.<name>."))
LEAVES = dict(leaves(VALUES, SCHEMA))


def test_every_value_is_described() -> None:
    assert len(KNOWN) > 100
    assert {name for name, value in KNOWN.items() if not value.get("description", "").endswith((".", "."))} == set()


def test_what_is_not_described_is_refused() -> None:
    ours = [SCHEMA, *KNOWN.values()]
    assert all(value["additionalProperties"] is False for value in ours if "properties" in value)


@pytest.mark.parametrize("name", LEAVES)
def test_the_default_is_that_of_values_yaml(name: str) -> None:
    assert KNOWN[name]["default"] == LEAVES[name]


def test_what_has_a_default_is_in_values_yaml() -> None:
    assert {name for name, value in KNOWN.items() if "default" in value} == set(LEAVES)


def test_ignored_values_are_those_that_the_schema_calls_so() -> None:
    without_effect = {name for name, value in KNOWN.items() if "without effect" in value["description"]}
    assert without_effect == set(IGNORED)


def test_older_names_have_no_default() -> None:
    """Otherwise NOTES would name values that users have not set."""
    assert not set(IGNORED) & set(LEAVES)


@pytest.mark.parametrize("name", SCHEMA["properties"])
def test_every_value_is_on_the_page(name: str) -> None:
    assert f"`{name}" in PAGE or name == "global"


def test_values_that_stand_for_settings_exist() -> None:
    block = TEMPLATES["_check.tpl"].partition('"flotilla.valueOfSetting" -}}')[2].partition("{{-")[0]
    stands = yaml.safe_load(block)
    assert set(stands) <= {flag for flag, *_ in known_flags()}
    paths = {re.sub(r"^services\.\w+\.", "services.<name>.", path) for path in stands.values()}
    assert paths <= set(KNOWN)
