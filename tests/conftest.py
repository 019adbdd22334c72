"""For all layers: assertions of shared contracts are explained like those of test files."""

import pytest

pytest.register_assert_rewrite("tests.simulation.contract")
