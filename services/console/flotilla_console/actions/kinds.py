"""The kinds that actions can change, with the fields that each action writes."""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, REPLICA_SET, REVISION, Resource

Path = tuple[str, ...]

BUILT_IN_DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")

_ROLLING = ("spec", "updateStrategy", "rollingUpdate")
_TEMPLATE = ("spec", "template")
_REPLICAS = ("spec", "replicas")


class ActionKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind; without a path it does not have the field, and so not the action."""

    resource: Resource
    paused: Path = ()
    partition: Path = ()
    percent: bool = False
    """The partition may be a percentage."""
    replicas: Path = ()
    template: Path = ()
    """Its pod template."""
    containers: tuple[Path, ...] = ()
    """Lists of containers with images."""
    revisions: Resource | None = None
    """The objects that keep its earlier templates."""
    has_pods: bool = False
    marks_pods: bool = False
    """Its controller deletes pods that a label marks, within the limits of the rollout."""


def _workload(
    resource: Resource,
    *,
    revisions: Resource = REVISION,
    paused: Path = (),
    partition: Path = (),
    percent: bool = False,
    replicas: Path = (),
    marks_pods: bool = False,
) -> ActionKind:
    """Return a kind with a pod template and revisions."""
    return ActionKind(
        resource=resource,
        paused=paused,
        partition=partition,
        percent=percent,
        replicas=replicas,
        template=_TEMPLATE,
        containers=((*_TEMPLATE, "spec", "initContainers"), (*_TEMPLATE, "spec", "containers")),
        revisions=revisions,
        has_pods=True,
        marks_pods=marks_pods,
    )


_PAUSED, _PARTITION = (*_ROLLING, "paused"), (*_ROLLING, "partition")

_KINDS = (
    _workload(CLONE_SET, paused=_PAUSED, partition=_PARTITION, percent=True, replicas=_REPLICAS, marks_pods=True),
    _workload(STATEFUL_SET, paused=_PAUSED, partition=_PARTITION, replicas=_REPLICAS, marks_pods=True),
    _workload(DAEMON_SET, paused=_PAUSED, partition=_PARTITION, percent=True, marks_pods=True),
    _workload(DEPLOYMENT, revisions=REPLICA_SET, paused=("spec", "paused"), replicas=_REPLICAS),
    _workload(BUILT_IN_STATEFUL_SET, partition=_PARTITION, replicas=_REPLICAS),
    _workload(BUILT_IN_DAEMON_SET),
    ActionKind(
        resource=SIDECAR_SET,
        paused=("spec", "updateStrategy", "paused"),
        partition=("spec", "updateStrategy", "partition"),
        percent=True,
        containers=(("spec", "initContainers"), ("spec", "containers")),
    ),
    ActionKind(resource=UNITED_DEPLOYMENT, replicas=_REPLICAS),
    ActionKind(resource=BROADCAST_JOB, paused=("spec", "paused"), has_pods=True),
    ActionKind(resource=ADVANCED_CRON_JOB, paused=("spec", "paused")),
)

KINDS: Mapping[tuple[str, str], ActionKind] = {(one.resource.group, one.resource.plural): one for one in _KINDS}
"""The kinds by group and plural."""
