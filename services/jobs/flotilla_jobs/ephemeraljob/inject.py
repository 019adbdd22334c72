"""Putting the containers of a job into pods (ephemeraljob.md §6).

Each pod is written once, on the version that was planned with: nobody can have added a container in between, and a pod
that an earlier pass has written is refused until its containers are seen. So no pod gets them twice, and no container
of somebody else is touched: the patch would merge two of one name. A pod that is gone, or a cluster that has no
ephemeral containers, says NotFound: that is no failure, and nothing is tried again before something changes.
"""

from collections.abc import Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mappings
from flotilla_common.api.kinds.ephemeraljob.types import JOB_UID_ENV, EphemeralJob
from flotilla_common.api.resources import POD
from flotilla_common.control.draft import MAX_CHAINS_PER_PASS
from flotilla_common.control.plan import Event, Intent, Patch, PatchType
from flotilla_common.control.writes import patch_of
from flotilla_jobs.ephemeraljob.targets import Target, Targets

PHASE = "inject"


def parallelism_of(job: EphemeralJob) -> int:
    """In how many pods containers of the job may be at work."""
    return 1 if job.spec.parallelism is None else job.spec.parallelism


def next_pods(job: EphemeralJob, targets: Targets, *, failed: bool) -> Sequence[Target]:
    """The pods that get their containers in this pass. `failed`: the last one was refused; then one is tried."""
    if not job.spec.template.ephemeral_containers:
        return ()
    free = max(parallelism_of(job) - len(targets.at_work), 0)
    return targets.open[: min(free, 1 if failed else MAX_CHAINS_PER_PASS)]


def injection(job: EphemeralJob, pod: Pod) -> Patch:
    """All containers of the template at once."""
    failure = f"failed to create ephemeral container in pod {pod.metadata.namespace}/{pod.metadata.name}: "
    containers = [_marked(container, job.metadata.uid) for container in job.spec.template.ephemeral_containers]
    return patch_of(
        POD,
        pod.metadata,
        Intent.INJECT,
        f"inject {', '.join(sorted(job.spec.template.names))}",
        body={"spec": {"ephemeralContainers": containers}},
        patch_type=PatchType.STRATEGIC,
        subresource="ephemeralcontainers",
        on_version=True,
        phase=PHASE,
        on_failure=Event("CreateFailed", failure, warning=True),
    )


def _marked(container: Json, uid: str) -> Json:
    """The container with the variable by which it is known, whatever its template says about that one."""
    env = [one for one in mappings(container.get("env")) if one.get("name") != JOB_UID_ENV]
    return {**container, "env": [*env, {"name": JOB_UID_ENV, "value": uid}]}
