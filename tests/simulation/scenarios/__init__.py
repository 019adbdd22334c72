"""Scenarios, one file per theme. Every module here with `SCENARIOS` is found by itself.

`TERMS` of a module reads the terms of a workload kind, `RULES` has the further rules of a kind. All are read once for
each search path: tests add folders to it.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from flotilla_common.api.resources import Resource
from tests.simulation.oracles.terms import Reader
from tests.simulation.scenarios.scenario import Scenario

Rules = Sequence[Callable[[], Callable[[Any, Any], Iterator[str]]]]


def every_scenario() -> Mapping[str, Scenario]:
    """Return all scenarios by name, in the order of their files."""
    return _scenarios(tuple(__path__))


def every_reader() -> Mapping[Resource, Reader]:
    """Return the readers of the terms of each workload kind."""
    return _readers(tuple(__path__))


def every_rule() -> Rules:
    """Return the factories of the rules (`oracles.view.Rule`) of one kind."""
    return _rules(tuple(__path__))


@cache
def _modules(path: tuple[str, ...]) -> Sequence[ModuleType]:
    return [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(path)]


@cache
def _scenarios(path: tuple[str, ...]) -> Mapping[str, Scenario]:
    found: dict[str, Scenario] = {}
    for module in _modules(path):
        scenarios: tuple[Scenario, ...] = getattr(module, "SCENARIOS", ())
        for scenario in scenarios:
            assert scenario.name not in found, f"two scenarios are called {scenario.name}"
            found[scenario.name] = scenario
    return found


@cache
def _readers(path: tuple[str, ...]) -> Mapping[Resource, Reader]:
    readers: dict[Resource, Reader] = {}
    for module in _modules(path):
        readers |= getattr(module, "TERMS", {})
    return readers


@cache
def _rules(path: tuple[str, ...]) -> Rules:
    return [make for module in _modules(path) for make in getattr(module, "RULES", ())]
