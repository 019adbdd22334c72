"""Why a pod does not serve (yet): the root cause, in one sentence of Kubernetes' own words, with a stable code.

`cause_of` knows what a pod says of itself, and as much of its surroundings as it is told: services know little more
than the pod, the command line knows the events, claims, nodes and logs, too. A file per domain; `finding` has the order
in which they are asked, and puts pods with the same cause into one sentence.
"""

from flotilla_common.workload.causes.cause import Around, Cause, Claim, PodEvent
from flotilla_common.workload.causes.containers import unstable_cause
from flotilla_common.workload.causes.ending import lingers
from flotilla_common.workload.causes.finding import LOOKED_AT, Group, cause_of, explain_pods, grouped, root_cause
from flotilla_common.workload.causes.nodes import node_trouble

__all__ = [
    "LOOKED_AT",
    "Around",
    "Cause",
    "Claim",
    "Group",
    "PodEvent",
    "cause_of",
    "explain_pods",
    "grouped",
    "lingers",
    "node_trouble",
    "root_cause",
    "unstable_cause",
]
