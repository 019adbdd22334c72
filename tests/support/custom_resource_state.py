"""Evaluates integrations/kube-state-metrics/config.yaml on an object, as kube-state-metrics does.

After its documentation of custom-resource state metrics: paths, gauges, infos, state sets, labels from paths.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tests.testkit.documents import Json

FOLDER = Path(__file__).parents[2] / "integrations" / "kube-state-metrics"
RESOURCES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "config.yaml").read_text(encoding="utf-8"))["spec"][
    "resources"
]

Series = tuple[str, frozenset[tuple[str, str]]]


def configured(kind: str) -> Json:
    """Return the file's entry for a kind."""
    (found,) = [one for one in RESOURCES if one["groupVersionKind"]["kind"] == kind]
    return found


def series_of(obj: Json) -> dict[Series, float]:
    """Return the value of each series of the object, without those about the kind that every one has."""
    config = configured(obj["kind"])
    made: dict[Series, float] = {}
    for metric in config["metrics"]:
        name = f"{config['metricNamePrefix']}_{metric['name']}"
        about = _labels(obj, config["labelsFromPath"]) | metric.get("commonLabels", {})
        for labels, value in _each(obj, metric["each"]):
            made[name, frozenset((about | labels).items())] = value
    return made


def _each(obj: Json, each: Json) -> Iterator[tuple[dict[str, str], float]]:
    form = each[each["type"][0].lower() + each["type"][1:]]
    found = at(obj, form.get("path", []))
    if each["type"] == "StateSet":
        for one in form["list"]:
            yield {form["labelName"]: one}, float(found == one)
        return
    for one in found if isinstance(found, list) else [found]:
        labels = _labels(one, form.get("labelsFromPath", {}))
        value = 1.0 if each["type"] == "Info" else _number(at(one, form.get("valueFrom", [])), form)
        if value is not None and not (each["type"] == "Info" and one is None):
            yield labels, value


def at(found: Any, path: list[str]) -> Any:
    """Return the value at a path, or None if the path does not exist."""
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _labels(found: Any, paths: Mapping[str, list[str]]) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, path in paths.items():
        value = at(found, path)
        if name.endswith("*"):
            made |= {
                name[:-1] + "".join(c if c.isalnum() else "_" for c in key): one for key, one in (value or {}).items()
            }
        elif value is not None:
            made[name] = str(value)
    return made


def _number(value: Any, form: Json) -> float | None:
    match value:
        case None:
            return 0.0 if form.get("nilIsZero") else None
        case "True" | "False" | "Unknown":
            return float(value == "True")
        case str():
            return datetime.fromisoformat(value).timestamp()
        case _:
            return float(value)
