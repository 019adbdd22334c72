"""Root causes of pods that do not serve (yet): one sentence in Kubernetes' own words, with a stable code.

`cause_of` uses the pod itself, and the surroundings that the caller has: services have little more than the
pod, the command line has events, claims, nodes and logs, too. There is a file per domain; `finding` decides their
order, and groups pods with the same cause into one sentence.
"""

from flotilla_common.workload.causes.cause import Cause, Claim, PodContext, PodEvent
from flotilla_common.workload.causes.containers import unstable_cause
from flotilla_common.workload.causes.ending import stuck_terminating
from flotilla_common.workload.causes.finding import LOOKED_AT, Group, cause_of, explain_pods, grouped, root_cause
from flotilla_common.workload.causes.nodes import node_trouble

__all__ = [
    "LOOKED_AT",
    "Cause",
    "Claim",
    "Group",
    "PodContext",
    "PodEvent",
    "cause_of",
    "explain_pods",
    "grouped",
    "node_trouble",
    "root_cause",
    "stuck_terminating",
    "unstable_cause",
]
