"""Deployment of Kubernetes: its ReplicaSets, as revisions, and their pods."""

from collections.abc import Collection

from flotilla_cli.tree.workload import Workload
from flotilla_cli.views.built_in import BuiltIn, reading
from flotilla_cli.views.kindview import KindView
from flotilla_cli.views.related import controls
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of, metadata_of
from flotilla_common.api.resources import DEPLOYMENT, REPLICA_SET
from flotilla_common.kube.interface import Api


def deployment(raw: bytes) -> Workload:
    """Read a Deployment as a workload. Its newest revision is known from its ReplicaSets only."""
    found = BuiltIn.of(raw)
    return Workload(
        kind=DEPLOYMENT.kind,
        metadata=found.metadata,
        selector=found.spec.selector,
        numbers=found.numbers(),
        observed_generation=found.status.observed_generation,
        update_revision="",
        current_revision="",
        paused=found.spec.paused,
        min_ready_seconds=found.spec.min_ready_seconds,
        revision_of=_replica_set_of,
    )


def _replica_set_of(pod: Pod) -> str:
    controller = controller_of(pod.metadata)
    return controller.name if controller is not None else ""


async def _replica_sets(api: Api, workload: BuiltIn) -> Collection[str]:
    """Return the uids of its ReplicaSets."""
    found = map(metadata_of, (await api.list(REPLICA_SET, workload.metadata.namespace)).items)
    return {meta.uid for meta in found if controls(workload.metadata, meta)}


VIEW = KindView(
    resource=DEPLOYMENT,
    workload=deployment,
    revisions=REPLICA_SET,
    related=reading(DEPLOYMENT.kind, _replica_sets),
)
