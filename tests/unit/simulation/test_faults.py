"""Faults as they are given on command lines."""

import pytest

from tests.simulation.perturbation.fault import Fault


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("crash-after", "cloneset-0", 5), "crash-after@cloneset-0:5"),
        (Fault("held", "cloneset-0", 5, "pods"), "held@cloneset-0/pods:5"),
        (Fault("stalled", "", 1, "clonesets"), "stalled@/clonesets:1"),
        (Fault("wiped", "", 0), "wiped@:0"),
    ],
)
def test_a_fault_reads_as_it_prints(fault: Fault, text: str) -> None:
    assert str(fault) == text
    assert Fault.parse(text) == fault
