"""Scenarios, one file per theme: every module here with a `SCENARIOS` takes part, nothing else has to be told."""

import importlib
import pkgutil
from collections.abc import Mapping

from tests.simulation.scenarios.scenario import Scenario


def every_scenario() -> Mapping[str, Scenario]:
    """All scenarios by name, in the order of their files."""
    found: dict[str, Scenario] = {}
    for module in pkgutil.iter_modules(__path__):
        scenarios: tuple[Scenario, ...] = getattr(importlib.import_module(f"{__name__}.{module.name}"), "SCENARIOS", ())
        for scenario in scenarios:
            assert scenario.name not in found, f"two scenarios are called {scenario.name}"
            found[scenario.name] = scenario
    return found
