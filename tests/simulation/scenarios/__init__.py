"""Scenarios, one file per theme. Every module here with `SCENARIOS` is found by itself.

`TERMS` of a module reads the terms of a workload kind, `RULES` has the further rules of a kind.
"""

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
    """Return the readers of the terms of each workload kind."""
    readers: dict[Resource, Reader] = {}
    for module in _modules():
        readers |= getattr(module, "TERMS", {})
    return readers


def every_rule() -> list[Callable[[], Callable[[Any, Any], Iterator[str]]]]:
    """Return the factories of the rules (`oracles.view.Rule`) of one kind."""
    return [make for module in _modules() for make in getattr(module, "RULES", ())]


def _modules() -> Iterator[ModuleType]:
    return (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
