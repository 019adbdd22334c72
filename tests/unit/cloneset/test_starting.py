"""The old pods with which an update may begin."""

import pytest

from flotilla_cloneset.cloneset.rollout import _may_start
from flotilla_common.api.core import Pod
from tests.unit.cloneset.build import pod

GRACE = {"apps.kruise.io/inplace-update-grace": "{}"}
LEGACY = {"inplace-update-grace": "{}"}


@pytest.mark.parametrize(
    ("candidate", "may"),
    [
        pytest.param(pod("o1", "o"), True, id="no annotations"),
        pytest.param(pod("o1", "o", annotations={"a": "b"}), True, id="others' annotations"),
        pytest.param(pod("o1", "o", annotations=GRACE), False, id="in the grace period of another update"),
        pytest.param(pod("o1", "o", annotations=LEGACY), False, id="the same under its older name"),
        pytest.param(pod("o1", "o", annotations=GRACE, state="Updated"), True, id="its update is done"),
        pytest.param(pod("o1", "o", state="PreparingDelete"), False, id="on its way out"),
    ],
)
def test_may_start(candidate: Pod, may: bool) -> None:
    assert _may_start(candidate) is may
