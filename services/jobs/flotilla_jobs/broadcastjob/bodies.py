"""The pods that a BroadcastJob creates (broadcastjob.md §2.3, §4.4)."""

from flotilla_common.api.documents import mapping, strings
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, NAME_LABEL, UID_LABEL
from flotilla_common.workload.newpods import decode_template, wanted_gates, with_readiness_gates
from flotilla_common.workload.pernode import PodFactory
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot


def pod_factory(snapshot: BroadcastJobSnapshot) -> PodFactory:
    """Return what makes the pods of a pass."""
    meta, template = snapshot.job.metadata, decode_template(snapshot.job.spec.template)
    metadata = mapping(template.get("metadata"))
    return PodFactory(
        resource=BROADCAST_JOB,
        owner=meta,
        metadata=metadata,
        labels={**strings(metadata.get("labels")), NAME_LABEL: meta.name, UID_LABEL: meta.uid},
        spec=with_readiness_gates(mapping(template.get("spec")), gates_of(snapshot)),
        by_scheduler=snapshot.options.assign_by_scheduler,
        taken=snapshot.taken_names,
        former=snapshot.former_names,
    )


def gates_of(snapshot: BroadcastJobSnapshot) -> tuple[str, ...]:
    """Return the readiness gates of the pods: with one, they are ready only with a condition of ours."""
    return wanted_gates(snapshot.gates, snapshot.job.metadata.namespace, snapshot.options.system_namespace)
