"""Declares the StatefulSet controller: its watches, its writes, and the gatherer of its snapshots.

Pods and claims belong to a set by name: its pods are `<set>-<ordinal>`, its claims `<template>-<set>-<ordinal>`. So
indexes find objects without an owner reference (orphans, claims), and a change of one wakes the sets that it may belong
to.
"""

import re
from collections.abc import Callable, Iterable

from flotilla_common.api.core import PersistentVolumeClaim, Pod, StorageClass
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.api.meta import Object, controller_of
from flotilla_common.api.resources import CLAIM, POD, STORAGE_CLASS
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Pods, Trigger, Watch, owned
from flotilla_common.workload.gathering import (
    BUDGETS,
    BudgetsOfPods,
    Options,
    PullsAhead,
    revisions_of,
    watch_pulls,
    watch_revisions,
)
from flotilla_statefulset.statefulset.plan import plan
from flotilla_statefulset.statefulset.snapshot import StatefulSetSnapshot

ORPHAN_PODS = "orphan pods"
"""Index: pods without a controller, by `namespace/<prefix of their name>`."""

BY_SET = "by set"
"""Index: claims by `namespace/<set>`, for every set to which the claim may belong."""

_NUMBERED = re.compile(r"(.+)-[0-9]+")


def parent(name: str) -> str:
    """Return the set whose pod has this name; empty if the name does not end with a number."""
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else ""


def orphan_parent(pod: Pod) -> Iterable[str]:
    """Return the set to which a pod without a controller may belong."""
    name = "" if controller_of(pod.metadata) else parent(pod.metadata.name)
    return [f"{pod.metadata.namespace}/{name}"] if name else []


def possible_sets(claim: str) -> list[str]:
    """Return the sets whose claim may have this name: template and set names may both contain dashes."""
    parts = parent(claim).split("-")
    return ["-".join(parts[start:]) for start in range(1, len(parts))]


def claim_sets(claim: PersistentVolumeClaim) -> Iterable[str]:
    """Return the sets to which the claim may belong."""
    return [f"{claim.metadata.namespace}/{name}" for name in possible_sets(claim.metadata.name)]


def _may_be_its_claim(statefulset: Json, claim: Json) -> bool:
    mine, other = member(statefulset, "metadata"), member(claim, "metadata")
    return mine.get("namespace") == other.get("namespace") and mine.get("name") in possible_sets(
        text(other.get("name"))
    )


STATEFUL_SETS = Watch(STATEFUL_SET, StatefulSet, subresources=("status",))
PODS = Watch(
    POD,
    Pod,
    owner=STATEFUL_SET,
    indexes={ORPHAN_PODS: orphan_parent},
    writes=("create", "delete", "patch"),
    subresources=("status", "resize"),
    pods=Pods(owners=(STATEFUL_SET,), orphans=True),
)
CLAIMS = Watch(
    CLAIM,
    PersistentVolumeClaim,
    indexes={BY_SET: claim_sets},
    writes=("create", "patch"),
    concerns=_may_be_its_claim,
)
REVISIONS = watch_revisions(STATEFUL_SET)
STORAGE_CLASSES = Watch(
    STORAGE_CLASS, StorageClass, gate="StatefulSetAutoResizePVCGate", concerns=lambda statefulset, other: True
)
PULL_JOBS = watch_pulls(STATEFUL_SET, gate="PreDownloadImageForInPlaceUpdate")
"""Jobs that pull images ahead of in-place updates."""


class Gatherer:
    """Builds the snapshot of one StatefulSet from the mirror's tables."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._sets = context.table(STATEFUL_SETS)
        self._pods = context.table(PODS)
        self._claims = context.table(CLAIMS)
        self._revisions = context.table(REVISIONS)
        self._storage_classes = context.table(STORAGE_CLASSES)
        self._pulls_ahead = PullsAhead(context, PULL_JOBS, STATEFUL_SET)
        self.budgets = BudgetsOfPods(context)
        self._gates = context.gates
        self._options = options

    def gather(self, key: Key, memory: Memory) -> StatefulSetSnapshot | None:
        """Return the StatefulSet and its surroundings; None when it does not exist."""
        statefulset = self._sets.get(*key)
        if statefulset is None:
            return None
        namespace, name = key
        meta = statefulset.metadata
        pods = list(owned(self._pods, STATEFUL_SET, meta))
        return StatefulSetSnapshot(
            statefulset=statefulset,
            pods=pods,
            orphans=list(self._pods.by_index(ORPHAN_PODS, f"{namespace}/{name}")),
            taken_names=self._pods.names(namespace),
            claims={claim.metadata.name: claim for claim in self._claims.by_index(BY_SET, f"{namespace}/{name}")},
            storage_classes=list(self._storage_classes),
            revisions=revisions_of(self._revisions, STATEFUL_SET, meta),
            pull_jobs=self._pulls_ahead.of(meta),
            budgets=self.budgets.of(key, pods),
            gates=self._gates,
            options=self._options,
            failures=memory.failures,
        )

    def of_pod(self, old: Pod | None, new: Pod | None) -> list[Key]:
        """Return the set of the pod's name, if it exists."""
        return self._existing(new or old, lambda name: [parent(name)])

    def of_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> list[Key]:
        """Return the existing sets that the claim may belong to by its name."""
        return self._existing(new or old, possible_sets)

    def _existing(self, obj: Object | None, names: Callable[[str], list[str]]) -> list[Key]:
        """Return the existing sets to which the object belongs by its name."""
        if obj is None:
            return []
        namespace = obj.metadata.namespace
        return [(namespace, name) for name in names(obj.metadata.name) if self._sets.get(namespace, name) is not None]


CONTROLLER = ControllerSpec(
    name="statefulset-controller",
    primary=STATEFUL_SETS,
    watches=(PODS, CLAIMS, REVISIONS, STORAGE_CLASSES, PULL_JOBS, BUDGETS),
    options=spec.Options(Options, Options.of),
    build=Gatherer,
    triggers=lambda gatherer: [
        Trigger(PODS, gatherer.of_pod),
        Trigger(CLAIMS, gatherer.of_claim),
        Trigger(BUDGETS, gatherer.budgets.of_budget),
    ],
    plan=plan,
)
