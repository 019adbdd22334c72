"""Injects the containers of a job into pods (ephemeraljob.md §6).

Each pod is written once, on the planned version: no other container can have been added in between, and a pod written
by an earlier pass is refused until its containers are seen. So no pod gets them twice, and foreign containers are not
touched: the patch would merge two of the same name. NotFound (the pod is gone, or the cluster has no ephemeral
containers) is no failure, and nothing is retried before something changes.
"""

from collections.abc import Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mappings
from flotilla_common.api.kinds.ephemeraljob.types import JOB_UID_ENV, EphemeralJob
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Event, Intent, Patch, PatchType
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS
from flotilla_common.control.writes import patch_of
from flotilla_jobs.ephemeraljob.targets import Target, TargetPods

PHASE = "inject"


def parallelism_of(job: EphemeralJob) -> int:
    """Return in how many pods containers of the job may be at work."""
    return 1 if job.spec.parallelism is None else job.spec.parallelism


def next_pods(job: EphemeralJob, targets: TargetPods, *, failed: bool) -> Sequence[Target]:
    """Return the pods that get their containers in this pass: at most one after a pass that `failed`."""
    if not job.spec.template.ephemeral_containers:
        return ()
    free = max(parallelism_of(job) - len(targets.at_work), 0)
    return targets.open[: min(free, 1 if failed else MAX_CHAINS_PER_PASS)]


def injection(job: EphemeralJob, pod: Pod) -> Patch:
    """Return the patch that adds all containers of the template at once."""
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
    """Return the container with the variable that identifies the job, replacing one of the template."""
    env = [one for one in mappings(container.get("env")) if one.get("name") != JOB_UID_ENV]
    return {**container, "env": [*env, {"name": JOB_UID_ENV, "value": uid}]}
