"""The writes of one batch: resources by their own subresource where there is one, then all the rest in one patch."""

import re
from datetime import datetime
from functools import lru_cache

from flotilla_common.api.keys import IN_PLACE_GRACE, IN_PLACE_STATE, LEGACY_IN_PLACE_GRACE, LEGACY_IN_PLACE_STATE
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Event, Json, Patch, PatchType
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.inplace.batches import apply_batch
from flotilla_common.workload.inplace.state import InPlaceState, UpdateSpec
from flotilla_common.workload.podedit import PodEdit, on_version

_RESIZE_SUBRESOURCE = (1, 32)


def write_batch(
    edit: PodEdit,
    spec: UpdateSpec,
    state: InPlaceState,
    *,
    server_version: str,
    now: datetime,
    before: tuple[Patch, ...] = (),
    on_success: Event | None = None,
    on_failure: Event | None = None,
) -> Chain:
    """Add the next batch of `spec` to the edit and write it all, after `before`, on exactly this version of the pod.

    So the image ids that are recorded are those just before the change.
    """
    state, resources = apply_batch(edit, spec, state, now)
    edit.set_annotations({IN_PLACE_STATE: state.encode(), IN_PLACE_GRACE: None})
    edit.set_annotations({LEGACY_IN_PLACE_STATE: None, LEGACY_IN_PLACE_GRACE: None})
    resize: tuple[Patch, ...] = ()
    if resources and has_resize_subresource(server_version):
        resize = (_resize(edit, resources, on_failure),)
    else:
        for name, change in resources.items():
            edit.set_resources(name, change)
    return on_version(edit.pod, (*before, *resize, *edit.chain(on_success=on_success, on_failure=on_failure)))


def _resize(edit: PodEdit, resources: Json, on_failure: Event | None) -> Patch:
    return patch_of(
        POD,
        edit.pod.metadata,
        edit.intent,
        edit.cause,
        revision=edit.revision,
        phase=edit.phase,
        body={"spec": {"containers": [{"name": name, "resources": change} for name, change in resources.items()]}},
        patch_type=PatchType.STRATEGIC,
        subresource="resize",
        on_failure=on_failure,
    )


@lru_cache(maxsize=8)
def has_resize_subresource(git_version: str) -> bool:
    """Whether cpu and memory are changed through pods/resize. A version that nobody can read counts as old."""
    parts = git_version.removeprefix("v").split(".")
    numbers = [re.match(r"\d+", part) for part in parts[:2]]
    read = tuple(int(number[0]) for number in numbers if number is not None)
    return len(read) == 2 and read >= _RESIZE_SUBRESOURCE
