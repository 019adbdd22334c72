"""The pods that a DaemonSet creates (daemonset.md §4.7)."""

from flotilla_common.api import keys
from flotilla_common.api.documents import mapping, strings
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.workload.newpods import decode_template, wanted_gates, with_readiness_gates
from flotilla_common.workload.pernode import PodFactory
from flotilla_common.workload.placement import with_daemon_tolerations
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pods import GENERATION_ANNOTATION, GENERATION_LABEL


def pod_factory(context: PlanContext) -> PodFactory:
    """Return what makes the pods of a pass, all of the revision of the template."""
    snapshot, meta = context.snapshot, context.daemonset.metadata
    template = decode_template(context.daemonset.spec.template)
    metadata, spec = mapping(template.get("metadata")), mapping(template.get("spec"))
    gates = wanted_gates(snapshot.gates, meta.namespace, snapshot.options.system_namespace)
    gates = (keys.IN_PLACE_READY, *gates) if context.targets.in_place else gates
    generation = meta.annotations.get(GENERATION_ANNOTATION)
    return PodFactory(
        resource=DAEMON_SET,
        owner=meta,
        metadata=metadata,
        labels={
            **strings(metadata.get("labels")),
            keys.REVISION_LABEL: context.revisions.hash,
            **({GENERATION_LABEL: generation} if generation is not None else {}),
        },
        spec=with_readiness_gates({**spec, "tolerations": with_daemon_tolerations(spec)}, gates),
        by_scheduler=snapshot.options.assign_by_scheduler,
        scheduler="kubernetes.io/daemonset-controller",
        revision=context.revisions.name,
        taken=snapshot.taken_names,
        former={node: former.name for node, former in snapshot.former.items()},
        seed=context.revisions.hash,
    )
