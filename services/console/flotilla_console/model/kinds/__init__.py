"""The kinds with a page: all of Flotilla's but those that its services make, and the workloads of Kubernetes."""

from collections.abc import Mapping

from flotilla_console.model.kinds import jobs, policies, sets
from flotilla_console.model.kinds.kind import ConsoleKind

KINDS: Mapping[tuple[str, str], ConsoleKind] = {
    (kind.resource.group, kind.resource.plural): kind for kind in (*sets.KINDS, *jobs.KINDS, *policies.KINDS)
}
"""By group and plural."""
