"""The number of pods that a pass creates."""

import pytest

from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS
from flotilla_common.workload.pod_creation import CREATES_PER_PASS, most_creates


@pytest.mark.parametrize(
    ("existing", "most"),
    [(0, CREATES_PER_PASS), (3_299, CREATES_PER_PASS), (3_300, 33), (10_000, 100), (100_000, MAX_CHAINS_PER_PASS)],
)
def test_large_sets_have_fewer_passes_and_create_more_in_each(existing: int, most: int) -> None:
    assert most_creates(existing) == most
