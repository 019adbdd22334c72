"""ReplicaSet of Kubernetes: its pods, for a WorkloadSpread that selects it."""

from flotilla_cli.views.built_in import reading
from flotilla_cli.views.kindview import KindView
from flotilla_common.api.resources import REPLICA_SET

VIEW = KindView(resource=REPLICA_SET, related=reading(REPLICA_SET.kind))
