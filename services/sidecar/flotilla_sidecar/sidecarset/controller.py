"""Declares the SidecarSet controller: its watches, its writes, and the gatherer of its snapshots.

A SidecarSet has no namespace, and does not own its pods: pods record what was injected into them, and an index finds
them by that.
"""

from collections.abc import Iterable

from flotilla_common.api.core import ControllerRevision, Namespace, Pod
from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE, SIDECAR_SET_NAME_LABEL
from flotilla_common.api.kinds.sidecarset.pods import injected
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet
from flotilla_common.api.resources import NAMESPACE, POD, REVISION
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Pods, Trigger, Watch
from flotilla_common.settings import Settings
from flotilla_common.workload.gathering import BUDGETS, BudgetsOfPods
from flotilla_sidecar.sidecarset.desired import desired_sidecars
from flotilla_sidecar.sidecarset.plan import plan
from flotilla_sidecar.sidecarset.pods import pod_state
from flotilla_sidecar.sidecarset.snapshot import Options, SidecarSetSnapshot

INJECTED = "injected"
"""Index: pods by the SidecarSets that were injected into them."""

CALLED = "called"
"""Index: revisions by the SidecarSet of their label, and by the prefix of their own name.

A foreign revision may occupy the name of one to be created.
"""


def injected_into(pod: Pod) -> Iterable[str]:
    """Return the SidecarSets that were injected into the pod."""
    return injected(pod.metadata.annotations)


def called_for(revision: ControllerRevision) -> Iterable[str]:
    """Return the names of SidecarSets that the revision may affect."""
    meta = revision.metadata
    names = {meta.name.rpartition("-")[0], meta.labels.get(SIDECAR_SET_NAME_LABEL, "")}
    return names - {""}


def _was_injected(sidecar_set: Json, pod: Json) -> bool:
    name = text(member(sidecar_set, "metadata").get("name"))
    return name in injected(strings(member(pod, "metadata").get("annotations")))


SIDECAR_SETS = Watch(SIDECAR_SET, SidecarSet, subresources=("status",))
PODS = Watch(
    POD,
    Pod,
    indexes={INJECTED: injected_into},
    writes=("patch",),
    subresources=("status",),
    pods=Pods(sidecars=True),
    concerns=_was_injected,
)
NAMESPACES = Watch(NAMESPACE, Namespace, concerns=lambda sidecar_set, namespace: True)
REVISIONS = Watch(
    REVISION,
    ControllerRevision,
    owner=SIDECAR_SET,
    indexes={CALLED: called_for},
    writes=("create", "delete", "patch"),
    private="namespace",
)
"""Revisions of Flotilla's own namespace, where SidecarSets keep theirs: no others may be read or written."""


class Gatherer:
    """Builds the snapshot of one SidecarSet. The events that wake it are listed in sidecarset.md §7.1."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._sets = context.table(SIDECAR_SETS)
        self._pods = context.table(PODS)
        self._namespaces = context.table(NAMESPACES)
        self._revisions = context.table(REVISIONS)
        self.budgets = BudgetsOfPods(context)
        self._gates = context.gates
        self._options = options

    def gather(self, key: Key, memory: Memory) -> SidecarSetSnapshot | None:
        """Return the SidecarSet and its surroundings; None when it does not exist."""
        sidecar_set = self._sets.get(*key)
        if sidecar_set is None:
            return None
        name = key[1]
        pods = list(self._pods.by_index(INJECTED, name))
        return SidecarSetSnapshot(
            sidecar_set=sidecar_set,
            pods=pods,
            namespaces=list(self._namespaces) if sidecar_set.spec.namespace_selector is not None else (),
            revisions=list(self._revisions.by_index(CALLED, name)),
            budgets=self.budgets.of(key, pods),
            gates=self._gates,
            options=self._options,
        )

    def of_pod(self, old: Pod | None, new: Pod | None) -> list[Key]:
        """Return the SidecarSets for which the state of the pod has changed."""
        names = {name for pod in (old, new) if pod is not None for name in injected_into(pod)}
        sets = [self._sets.get("", name) for name in names]
        return [("", known.metadata.name) for known in sets if known is not None and _concerns(known, old, new)]

    def of_namespace(self, old: Namespace | None, new: Namespace | None) -> list[Key]:
        """Return the SidecarSets with a namespaceSelector if the namespace is new: it may have earlier pods."""
        if old is not None or new is None:
            return []
        return [("", known.metadata.name) for known in self._sets if known.spec.namespace_selector is not None]


def _of_set(old: SidecarSet | None, new: SidecarSet | None) -> list[Key]:
    """Return the SidecarSet if its spec or hash has changed, or its status names another revision."""
    # The former revision may then be no longer needed. Other changes of the status do not matter.
    sidecar_set = new or old
    if sidecar_set is None or (old is not None and new is not None and _asked(old) == _asked(new)):
        return []
    return [("", sidecar_set.metadata.name)]


def _asked(sidecar_set: SidecarSet) -> tuple[object, ...]:
    meta = sidecar_set.metadata
    hashes = (meta.annotations.get(SIDECAR_SET_HASH), meta.annotations.get(SIDECAR_SET_HASH_WITHOUT_IMAGE))
    return meta.generation, meta.deletion_timestamp is None, sidecar_set.status.latest_revision, *hashes


def _concerns(sidecar_set: SidecarSet, old: Pod | None, new: Pod | None) -> bool:
    """Report whether a change of the pod matters. With an unreadable spec only new pods do."""
    try:
        desired = desired_sidecars(sidecar_set)
    except ValueError:
        return old is None
    before = None if old is None else pod_state(old, desired)
    after = None if new is None else pod_state(new, desired)
    return before != after


def options(settings: Settings, server_version: str) -> Options:
    """Return the settings that affect plans."""
    return Options(system_namespace=settings.namespace, drop_field_owners=not settings.keep_managed_fields)


CONTROLLER = ControllerSpec(
    name="sidecarset-controller",
    primary=SIDECAR_SETS,
    wakes_itself=False,  # the gatherer selects the changes of a SidecarSet that matter
    watches=(PODS, NAMESPACES, REVISIONS, BUDGETS),
    options=spec.Options(Options, options),
    build=Gatherer,
    triggers=lambda gatherer: [
        Trigger(SIDECAR_SETS, _of_set),
        Trigger(PODS, gatherer.of_pod),
        Trigger(NAMESPACES, gatherer.of_namespace),
        Trigger(BUDGETS, gatherer.budgets.of_budget),
    ],
    plan=plan,
)
