"""A SidecarSet's ControllerRevisions: what new pods may be injected with instead of the newest spec (sidecarset.md
§7.4). They are kept in Flotilla's own namespace."""

from collections.abc import Sequence

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.keys import CUSTOM_VERSION_LABEL, SIDECAR_SET_NAME_LABEL
from flotilla_common.api.kinds.sidecarset.revisions import canonical_revision, revision_source
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.control.draft import MAX_CHAINS_PER_PASS
from flotilla_common.control.plan import Chain, Intent, PatchType
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.ownership import certain, take_in
from flotilla_common.workload.recipe import RevisionOwner, RevisionRecipe
from flotilla_common.workload.revisions import RevisionChoice, choose_revisions, own_revisions, surplus_revisions
from flotilla_sidecar.sidecarset.context import PlanContext
from flotilla_sidecar.sidecarset.look import look
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot

DEFAULT_LIMIT = 10


def recipe(system_namespace: str) -> RevisionRecipe:
    """How its revisions are made and recognised."""
    return RevisionRecipe(canonical=canonical_revision, namespace=system_namespace)


def choose(snapshot: SidecarSetSnapshot) -> RevisionChoice:
    """The revision of the newest spec. One that stands for it again keeps its labels and annotations. Raises ValueError
    when the spec cannot be read."""
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
    return choose_revisions(recipe(snapshot.options.system_namespace), owner, source, tuple(snapshot.revisions))


def bookkeeping(context: PlanContext) -> list[Chain]:
    """What else becomes of revisions, once that of the newest spec is stored: taken in, tagged, forgotten."""
    if context.revisions.writes:
        return []
    own = own_revisions(
        context.snapshot.revisions, context.sidecar_set.metadata.uid, _of(context.sidecar_set.metadata.name)
    )
    loose = [one for one in own if controller_of(one.metadata) is None]
    taken = take_in(SIDECAR_SET, context.sidecar_set.metadata, REVISION, loose)
    busy = {one.metadata.name for one in loose}
    return [*taken, _tag(context, busy), _forget(context, [one for one in own if one.metadata.name not in busy])]


def _of(name: str) -> Selector:
    """The revisions of that SidecarSet."""
    return Selector({SIDECAR_SET_NAME_LABEL: name}, ())


def _tag(context: PlanContext, busy: set[str]) -> Chain:
    """The newest revision gets the custom version, which may change without it."""
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
    """Delete the oldest ones beyond the history limit that nobody needs.

    No pod can be created while the revision is missing that its SidecarSet names. So that none is deleted which a newer
    spec names, the apiserver has to confirm first that there is no newer one.
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
    """The newest one, those that pods remember, the one that pods are told now (by the status), and the one that they
    are to be injected with."""
    looks = [look(pod, context.wanted) for pod in context.pods.matching]
    needed = {context.revision_name, context.sidecar_set.status.latest_revision}
    needed |= {found.revision for found in looks if found is not None}
    return needed | _injected(context.sidecar_set, own)


def _injected(sidecar_set: SidecarSet, own: Sequence[ControllerRevision]) -> set[str]:
    choice = sidecar_set.spec.injection_strategy.revision
    if choice is None:
        return set()
    names = {choice.revision_name} if choice.revision_name else set[str]()
    tagged = [one for one in own if one.metadata.labels.get(CUSTOM_VERSION_LABEL) == choice.custom_version]
    return names | {one.metadata.name for one in tagged[-1:] if choice.custom_version}
