"""Manages a SidecarSet's ControllerRevisions, which new pods may be injected with instead of the newest spec.

See sidecarset.md §7.4. They are kept in Flotilla's own namespace.
"""

from collections.abc import Sequence

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.keys import CUSTOM_VERSION_LABEL, SIDECAR_SET_NAME_LABEL
from flotilla_common.api.kinds.sidecarset.revisions import canonical_revision, revision_source
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Chain, Intent, PatchType
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.ownership import adopt_orphans, certain
from flotilla_common.workload.revision_codec import RevisionCodec, RevisionOwner
from flotilla_common.workload.revisions import RevisionChoice, choose_revisions, own_revisions, surplus_revisions
from flotilla_sidecar.sidecarset.context import PlanContext
from flotilla_sidecar.sidecarset.pods import pod_state
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot

DEFAULT_LIMIT = 10


def codec(system_namespace: str) -> RevisionCodec:
    """Return the rules by which its revisions are created and matched."""
    return RevisionCodec(canonical=canonical_revision, namespace=system_namespace)


def choose(snapshot: SidecarSetSnapshot) -> RevisionChoice:
    """Choose the revision of the newest spec. Raises ValueError if the spec cannot be read.

    A stored revision that becomes the newest again keeps its labels and annotations.
    """
    sidecar_set = snapshot.sidecar_set
    spec, meta = sidecar_set.spec, sidecar_set.metadata
    version = {CUSTOM_VERSION_LABEL: spec.custom_version} if spec.custom_version else {}
    owner = RevisionOwner(
        resource=SIDECAR_SET,
        metadata=meta,
        selector=_of(meta.name),
        collision_count=sidecar_set.status.collision_count,
        labels={**meta.labels, SIDECAR_SET_NAME_LABEL: meta.name, **version},
    )
    source = revision_source(sidecar_set)
    return choose_revisions(codec(snapshot.options.system_namespace), owner, source, tuple(snapshot.revisions))


def bookkeeping(context: PlanContext) -> list[Chain]:
    """Adopt, label and delete revisions, once the newest one is stored."""
    if context.revisions.writes:
        return []
    own = own_revisions(
        context.snapshot.revisions, context.sidecar_set.metadata.uid, _of(context.sidecar_set.metadata.name)
    )
    loose = [revision for revision in own if controller_of(revision.metadata) is None]
    taken = adopt_orphans(SIDECAR_SET, context.sidecar_set.metadata, REVISION, loose)
    busy = {revision.metadata.name for revision in loose}
    return [*taken, _tag(context, busy), _forget(context, [one for one in own if one.metadata.name not in busy])]


def _of(name: str) -> Selector:
    """Return the selector of that SidecarSet's revisions."""
    return Selector({SIDECAR_SET_NAME_LABEL: name}, ())


def _tag(context: PlanContext, busy: set[str]) -> Chain:
    """Set the custom version on the newest revision, since it may change without the spec."""
    newest, version = context.revisions.update, context.sidecar_set.spec.custom_version
    if not version or newest.metadata.labels.get(CUSTOM_VERSION_LABEL) == version or newest.metadata.name in busy:
        return ()
    patch = patch_of(
        REVISION,
        newest.metadata,
        Intent.REVISION,
        f"custom version {version}",
        body={"metadata": {"labels": {CUSTOM_VERSION_LABEL: version}}},
        patch_type=PatchType.MERGE,
        on_version=True,
    )
    return (patch,)


def _forget(context: PlanContext, own: Sequence[ControllerRevision]) -> Chain:
    """Delete the oldest unused revisions beyond the history limit.

    No pod can be created while the revision that its SidecarSet names is missing. So before any deletion the apiserver
    must confirm that there is no newer spec, which might name one of these.
    """
    limit = context.sidecar_set.spec.revision_history_limit
    limit = max(DEFAULT_LIMIT if limit is None else limit, 1)
    if len(own) <= limit:
        return ()
    deletes = surplus_revisions(own, limit, spared=_needed(context, own))
    return (
        (certain(SIDECAR_SET, context.sidecar_set.metadata, Intent.REVISION), *deletes[:MAX_CHAINS_PER_PASS])
        if deletes
        else ()
    )


def _needed(context: PlanContext, own: Sequence[ControllerRevision]) -> set[str]:
    """Return the names of revisions in use: the newest, those in pods and in the status, and the one to be injected."""
    states = [pod_state(pod, context.desired) for pod in context.pods.matching]
    needed = {context.revision_name, context.sidecar_set.status.latest_revision}
    needed |= {state.revision for state in states if state is not None}
    return needed | _injected(context.sidecar_set, own)


def _injected(sidecar_set: SidecarSet, own: Sequence[ControllerRevision]) -> set[str]:
    choice = sidecar_set.spec.injection_strategy.revision
    if choice is None:
        return set()
    names = {choice.revision_name} if choice.revision_name else set[str]()
    tagged = [one for one in own if one.metadata.labels.get(CUSTOM_VERSION_LABEL) == choice.custom_version]
    return names | {revision.metadata.name for revision in tagged[-1:] if choice.custom_version}
