"""The result of a scrape of some objects, parsed by prometheus_client."""

from collections.abc import Mapping
from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from flotilla_statemetrics.exposition import text_of
from flotilla_statemetrics.families import AnyKind

Series = tuple[str, frozenset[tuple[str, str]]]


def read(text: str) -> dict[Series, float]:
    """Return the value of each series. Fails if one comes twice, or a family is in two pieces."""
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    samples = [sample for family in families for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def decoded(kind: AnyKind, *documents: Mapping[str, Any]) -> list[Any]:
    """Return the objects as the mirror holds them."""
    return [msgspec.json.decode(msgspec.json.encode(document), type=kind.type) for document in documents]


def scraped(kind: AnyKind, *documents: Mapping[str, Any]) -> dict[Series, float]:
    """Return the series of these objects."""
    return read(text_of([(kind, decoded(kind, *documents))]).decode())


def short(found: Mapping[Series, float], *about: str) -> dict[str, float]:
    """Return the series as `name{label=value,…}`, without the labels `about`."""
    return {
        name + "{" + ",".join(f"{key}={value}" for key, value in sorted(labels) if key not in about) + "}": value
        for (name, labels), value in found.items()
    }
