"""Scenarios, one file per theme: every module here with `SCENARIOS` takes part, nothing else has to be told. `TERMS` in
one says what workloads of a kind promise, `RULES` what else may never be seen."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from flotilla_common.api.resources import Resource
from tests.simulation.oracles.terms import Reader
from tests.simulation.scenarios.scenario import Scenario


def every_scenario() -> Mapping[str, Scenario]:
    """All scenarios by name, in the order of their files."""
    found: dict[str, Scenario] = {}
    for module in _modules():
        scenarios: tuple[Scenario, ...] = getattr(module, "SCENARIOS", ())
        for scenario in scenarios:
            assert scenario.name not in found, f"two scenarios are called {scenario.name}"
            found[scenario.name] = scenario
    return found


def every_reader() -> Mapping[Resource, Reader]:
    """How the promises of each workload kind are read."""
    readers: dict[Resource, Reader] = {}
    for module in _modules():
        readers |= getattr(module, "TERMS", {})
    return readers


def every_rule() -> list[Callable[[], Callable[[Any, Any], Iterator[str]]]]:
    """What makes the rules (`oracles.judge.Rule`) that hold for one kind only."""
    return [make for module in _modules() for make in getattr(module, "RULES", ())]


def _modules() -> Iterator[ModuleType]:
    return (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
