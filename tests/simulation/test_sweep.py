"""Every fault at every point of every scenario."""

import pytest

from tests.simulation.perturbation.sweep import sweep


@pytest.mark.timeout(3600)
def test_nothing_that_goes_wrong_changes_the_end() -> None:
    tally = sweep()
    print(tally)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(tally.kinds.items())))
    assert not tally.failures, f"{len(tally.failures)} runs failed, see above"
