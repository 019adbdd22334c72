"""The metrics of SidecarSets. They have no namespace."""

from collections.abc import Callable, Iterator

import msgspec

from flotilla_common.api.kinds.sidecarset.matching import pinned_namespaces
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet, UpgradeStrategy
from flotilla_common.api.meta import Model
from flotilla_common.api.numbers import partition_value, strict_value
from flotilla_statemetrics.families import Family, Series, StateKind, created, generation, number, object_labels, word

DEFAULT_MAX_UNAVAILABLE = 1


class _SharePolicy(Model):
    type: str = ""


class _Sidecar(Model):
    """The fields of an injected container that metrics read."""

    name: str = ""
    pod_inject_policy: str = ""
    share_volume_policy: _SharePolicy = _SharePolicy()
    upgrade_strategy: UpgradeStrategy = UpgradeStrategy()


_sidecars = msgspec.json.Decoder(list[_Sidecar] | None).decode


def _containers(name: str, text: str, label: str, read: Callable[[_Sidecar], str]) -> Family[SidecarSet]:
    """Return a family with a series for each container for which `read` returns a word."""

    def series(sidecar_set: SidecarSet) -> Iterator[Series]:
        for container in _sidecars(sidecar_set.spec.containers) or ():
            if value := read(container):
                yield (("container", container.name), (label, value)), 1

    return Family(name, text, series)


def _namespaces(sidecar_set: SidecarSet) -> Iterator[Series]:
    """Yield a series for each namespace, if they are selected by name."""
    selector = sidecar_set.spec.namespace_selector
    for namespace in sorted((selector and pinned_namespaces(selector)) or ()):
        yield (("namespace", namespace),), 1


def _max_unavailable(sidecar_set: SidecarSet) -> int:
    limit = sidecar_set.spec.update_strategy.max_unavailable
    wanted = DEFAULT_MAX_UNAVAILABLE if limit is None else limit
    return max(strict_value(wanted, sidecar_set.status.matched_pods, round_up=True), 0)


def _partition(sidecar_set: SidecarSet) -> int:
    return partition_value(sidecar_set.spec.update_strategy.partition, sidecar_set.status.matched_pods)


SIDECAR_SETS = StateKind(
    resource=SIDECAR_SET,
    type=SidecarSet,
    labels=("sidecarset",),
    families=(
        created("kruise_sidecarset_created"),
        object_labels("kruise_sidecarset_labels"),
        generation("kruise_sidecarset_spec_metadata_generation"),
        Family("kruise_sidecarset_spec_namespcace", "Namespaces that are selected by name.", _namespaces),
        number(
            "kruise_sidecarset_spec_strategy_rollingupdate_max_unavailable",
            "Pods that may be unavailable during a rollout.",
            _max_unavailable,
        ),
        number("kruise_sidecarset_spec_strategy_partition", "Pods that stay on old revisions.", _partition),
        word(
            "kruise_sidecarset_spec_strategy_type",
            "How pods are updated.",
            "type",
            lambda one: one.spec.update_strategy.type,
        ),
        _containers(
            "kruise_sidecarset_spec_containers_injectpolicy",
            "Where containers are inserted in pods.",
            "policy",
            lambda one: one.pod_inject_policy,
        ),
        _containers(
            "kruise_sidecarset_spec_containers_strategy_type",
            "How containers are upgraded.",
            "type",
            lambda one: one.upgrade_strategy.upgrade_type,
        ),
        _containers(
            "kruise_sidecarset_spec_containers_strategy_hotupgradeemptyimage",
            "The image of the idle container of a hot upgrade.",
            "image",
            lambda one: one.upgrade_strategy.hot_upgrade_empty_image,
        ),
        _containers(
            "kruise_sidecarset_spec_containers_volumepolicy",
            "Whether containers get the volume mounts of the others.",
            "policy",
            lambda one: one.share_volume_policy.type,
        ),
        number("kruise_sidecarset_status_replicas_matched", "Pods.", lambda one: one.status.matched_pods),
        number("kruise_sidecarset_status_replicas_updated", "Updated pods.", lambda one: one.status.updated_pods),
        number("kruise_sidecarset_status_replicas_ready", "Ready pods.", lambda one: one.status.ready_pods),
        number(
            "kruise_sidecarset_status_replicas_updated_ready",
            "Updated pods that are ready.",
            lambda one: one.status.updated_ready_pods,
        ),
        number(
            "kruise_sidecarset_status_observed_generation",
            "The generation that the status describes.",
            lambda one: one.status.observed_generation,
        ),
    ),
)
