"""The resources that the console reads."""

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import NODE, POD, REPLICA_SET, REVISION, Resource
from flotilla_console.model.kinds import KINDS
from flotilla_console.model.kinds.sets import BUILT_IN_DAEMON_SET

DISRUPTION_BUDGET = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
ROLLOUT = Resource("rollouts.kruise.io", "v1beta1", "rollouts", "Rollout")
AUTOSCALER = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")

TEMPLATES = (REVISION, REPLICA_SET)
"""Resources that hold the templates of workloads, one for each revision."""

STORED: tuple[Resource, ...] = tuple(
    dict.fromkeys(
        (
            *(kind.resource for kind in KINDS.values()),
            *(kind.resource for kind in catalogue.KINDS),
            DISRUPTION_BUDGET,
            AUTOSCALER,
            ROLLOUT,
        )
    )
)
"""Resources whose objects have rows and pages, or act on such objects."""

RESOURCES = (POD, NODE, *TEMPLATES, *STORED)
"""All resources of the model."""

NOT_ON_BUS = (BUILT_IN_DAEMON_SET, DISRUPTION_BUDGET, AUTOSCALER, ROLLOUT)
"""Resources that no service of Flotilla needs, so the watcher does not publish them: they are watched directly."""
