"""The writes of one batch: resources by their own subresource where there is one, then all the rest in one patch."""

from datetime import datetime

from flotilla_common.api.keys import IN_PLACE_GRACE, IN_PLACE_STATE, LEGACY_IN_PLACE_GRACE, LEGACY_IN_PLACE_STATE
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Event, Json, Patch, PatchType
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.inplace.batches import apply_batch
from flotilla_common.workload.inplace.spec import UpdateSpec
from flotilla_common.workload.inplace.state import InPlaceState
from flotilla_common.workload.inplace.version import has_resize_subresource
from flotilla_common.workload.podedit import PodEdit, on_version


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
