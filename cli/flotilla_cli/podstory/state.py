"""Why a pod does not serve, as one line."""

from datetime import datetime

import msgspec

from flotilla_cli.diagnosis.closeup import Surveyor
from flotilla_cli.diagnosis.findings import aged
from flotilla_cli.diagnosis.verdict import Word
from flotilla_cli.views import view_of_owner
from flotilla_cli.views.related import basis_of
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.causes import Around, Cause, cause_of, unstable_cause


async def cause_now(api: Api, pod: Pod, now: datetime) -> tuple[Word, Cause | None, set[str]]:
    """(what kind of state it is, why, what may not be read). Raises Unreachable."""
    surveyor, basis = Surveyor(api), await _basis(api, pod, now)
    basis = msgspec.structs.replace(basis, silent=await surveyor.silent_nodes(now))
    around = await surveyor.around(pod, basis)
    if (cause := cause_of(pod, around)) is not None:
        return Word.STUCK if cause.stuck else Word.WAITING, aged(cause, now), surveyor.denied
    cause = unstable_cause(pod, around)
    return Word.UNSTABLE if cause is not None else Word.DONE, cause, surveyor.denied


async def _basis(api: Api, pod: Pod, now: datetime) -> Around:
    """What the pod's workload says of it, if it is one of ours and may be read."""
    owner = controller_of(pod.metadata)
    kind = view_of_owner(owner) if owner is not None else None
    if owner is None or kind is None:
        return Around(now=now)
    try:
        live = await api.get(kind.resource, pod.metadata.namespace, owner.name)
    except ApiError:
        return Around(now=now)
    return basis_of(kind, live, now)
