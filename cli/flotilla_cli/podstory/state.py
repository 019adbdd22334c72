"""Why a pod does not serve, as one line."""

from datetime import datetime

import msgspec

from flotilla_cli.diagnosis.closeup import Surveyor
from flotilla_cli.diagnosis.findings import aged
from flotilla_cli.diagnosis.scope import basis_of
from flotilla_cli.diagnosis.verdict import Word
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.meta import controller_of
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.causes import Around, Cause, cause_of, unstable_cause

_OWNERS = {(one.kind, one.group): one for one in (CLONE_SET, DAEMON_SET, STATEFUL_SET)}


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
    resource = _OWNERS.get((owner.kind, owner.api_version.partition("/")[0])) if owner is not None else None
    if owner is None or resource is None:
        return Around(now=now)
    try:
        return basis_of(resource, await api.get(resource, pod.metadata.namespace, owner.name), now)
    except ApiError:
        return Around(now=now)
