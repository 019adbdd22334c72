"""State and grace annotations: we and tools of the reference read what we write (common.md §9.4)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Intent
from flotilla_common.workload.inplace.batches import apply_batch
from flotilla_common.workload.inplace.state import (
    ContainerMeta,
    InPlaceState,
    PreCheck,
    UpdateSpec,
    encode_grace,
    grace_of,
    in_grace,
    state_of_update,
)
from flotilla_common.workload.podedit import PodEdit
from tests.unit.workload.build import GRACE, NOW, STATE, pod

LEGACY_GRACE = "inplace-update-grace"
RESOURCES = {"main": {"limits": {"cpu": "2"}}}
META = {"main": ContainerMeta(labels={"a": "1"}, annotations={"b": "2"})}


def test_a_state_with_everything_is_read_as_it_was_written() -> None:
    state = InPlaceState(
        revision="r",
        next_container_images={"main": "nginx:2"},
        next_container_ref_metadata=META,
        next_container_resources=RESOURCES,
        pre_check_before_next=PreCheck(containers_required_ready=["first"]),
    )
    assert state_of_update(pod(annotations={STATE: state.encode()})) == state


def test_nothing_has_to_hold_before_a_batch_that_does_not_come() -> None:
    state = InPlaceState(revision="r", pre_check_before_next=PreCheck(containers_required_ready=["first"]))
    assert "preCheckBeforeNext" not in msgspec.json.decode(state.encode())
    spec = UpdateSpec(revision="r", images={"nginx": "nginx:2"})
    assert apply_batch(PodEdit(pod(), Intent.REFRESH, ""), spec, state, NOW)[0].pre_check_before_next is None


def test_a_waiting_update_is_read_as_it_was_written() -> None:
    spec = UpdateSpec(revision="r", images={"main": "nginx:2"}, resources=RESOURCES, ref_metadata=META)
    waiting = grace_of(pod(annotations={GRACE: encode_grace(spec, 30)}))
    assert waiting is not None
    assert (waiting.spec, waiting.grace_seconds) == (spec, 30)


def test_a_revision_is_written_even_when_it_is_empty() -> None:
    assert msgspec.json.decode(encode_grace(UpdateSpec(revision=""), 5)) == {"revision": "", "graceSeconds": 5}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, False, id="none"),
        pytest.param({GRACE: ""}, False, id="empty"),
        pytest.param({GRACE: '{"revision":"r"}'}, True, id="present"),
        pytest.param({LEGACY_GRACE: '{"revision":"r"}'}, True, id="of an old release"),
    ],
)
def test_a_pod_in_its_grace_period(annotations: dict[str, Any], expected: bool) -> None:
    found: Pod = pod(annotations=annotations)
    assert in_grace(found) == expected
    assert (grace_of(found) is not None) == expected


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match=f"pod web: annotation {GRACE}"):
        grace_of(pod(annotations={GRACE: "{"}))
