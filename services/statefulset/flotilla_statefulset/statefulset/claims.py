"""The claims of a StatefulSet: one per template and ordinal, found by name (statefulset.md §4.9).

A claim outlives its pod. Owner references decide when it is deleted: with the set, with a pod that is scaled away, or
never. The apiserver's garbage collector does the rest.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

import msgspec

from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, StatefulSet
from flotilla_common.api.meta import ObjectMeta, OwnerReference
from flotilla_common.api.resources import CLAIM, POD, Resource
from flotilla_common.control.plan import Create, Event, Intent, Json, Patch
from flotilla_common.control.writes import create_of, patch_of
from flotilla_common.gates import Gates
from flotilla_common.workload.claims import ClaimTemplate, claim_templates, claims_of_revision
from flotilla_statefulset.ordinals import ordinal_of
from flotilla_statefulset.statefulset.claim_state import DesiredClaim, desired_claim

CLAIM_PHASE = "claim "
"""The prefix of the phase of a claim's creation; the claim's name follows."""

_NOBODY = (False, False)
_PLACE, _VOLUMES = "statefulset_place", "statefulset_volumes"


class Retention(msgspec.Struct, frozen=True):
    """The retention policy: what claims are deleted with."""

    with_set: bool = False  # whenDeleted is Delete
    with_scaled: bool = False  # whenScaled is Delete
    enforced: bool = True  # gate StatefulSetAutoDeletePVC: owner references are corrected

    @classmethod
    def of(cls, statefulset: StatefulSet, gates: Gates) -> "Retention":
        """Return the set's policy; unknown values retain."""
        policy = statefulset.spec.persistent_volume_claim_retention_policy
        on = gates.on("StatefulSetAutoDeletePVC")
        if policy is None or not on:
            return cls(enforced=on)
        known = {policy.when_deleted, policy.when_scaled} <= {"Retain", "Delete"}
        return cls(known and policy.when_deleted == "Delete", known and policy.when_scaled == "Delete")


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The existing claims of a set, with the rules for their owner references."""

    owner: StatefulSet
    templates: tuple[ClaimTemplate, ...]
    former: tuple[ClaimTemplate, ...]  # templates that only kept revisions have
    wanted: Mapping[str, DesiredClaim]  # by template
    retention: Retention
    by_ordinal: Mapping[int, Mapping[str, PersistentVolumeClaim]]  # then by template
    of_former: Mapping[int, Mapping[str, PersistentVolumeClaim]]  # then by former template
    tied: frozenset[int]  # ordinals of claims that will be deleted with a pod

    def of(self, ordinal: int) -> Mapping[str, PersistentVolumeClaim]:
        """Return the claims of one ordinal, by template."""
        return self.by_ordinal.get(ordinal, {})

    def missing(self, ordinal: int, templates: Iterable[ClaimTemplate]) -> list[ClaimTemplate]:
        """Return those of the templates for which the ordinal has no claim."""
        there = self._all(ordinal)
        return [template for template in templates if template.name not in there]

    def used_by(self, pod: Pod, ordinal: int) -> list[ClaimTemplate]:
        """Return the templates whose claims the pod mounts."""
        mounted = _mounted(pod)
        name = self.owner.metadata.name
        every = (*self.templates, *self.former)
        return [template for template in every if mounted.get(template.name) == template.claim_name(name, str(ordinal))]

    def terminating(self, ordinal: int, templates: Iterable[ClaimTemplate]) -> list[str]:
        """Return the names of the ordinal's claims of these templates that are terminating."""
        there = self._of(ordinal, templates)
        return [claim.metadata.name for claim in there if claim.metadata.deletion_timestamp is not None]

    def stale(self, ordinal: int, templates: Iterable[ClaimTemplate]) -> list[str]:
        """Return the names of the ordinal's claims of these templates that are still owned by an earlier pod."""
        if ordinal not in self.tied:
            return []
        return [claim.metadata.name for claim in self._of(ordinal, templates) if self._has_owner(claim, ordinal)]

    def wrongly_owned(self, ordinal: int, pod: Pod, *, scaled_away: bool) -> list[PersistentVolumeClaim]:
        """Return the ordinal's claims whose owner references violate the policy, except the claims of `untied`."""
        if not self.retention.enforced:
            return []
        wanted = self._wanted(scaled_away=scaled_away)
        return [
            claim
            for claim in self._all(ordinal).values()
            if (claim.metadata.owner_references or wanted != _NOBODY)
            and self._references(claim, pod.metadata.uid) != wanted
            and (scaled_away or not self._has_owner(claim, ordinal))
        ]

    def set_owner(self, claim: PersistentVolumeClaim, pod: Pod, *, scaled_away: bool) -> Patch:
        """Correct the owner references of a claim, on exactly the version that was read."""
        with_set, with_pod = self._wanted(scaled_away=scaled_away)
        kept = [self._set_reference()] if with_set else []
        kept += [_reference(POD, pod.metadata)] if with_pod else []
        mine = {self.owner.metadata.uid, pod.metadata.uid}
        others = [reference for reference in claim.metadata.owner_references if reference.uid not in mine]
        return _owned_by(claim, pod.metadata.name, others, kept)

    def without_owner(self, ordinals: Container[int]) -> list[Patch]:
        """Remove pods from the owners of these ordinals' claims, except claims that are terminating already."""
        return [
            self._remove_owner(claim, ordinal)
            for ordinal in sorted(self.tied)
            if ordinal in ordinals
            for claim in self._all(ordinal).values()
            if self._has_owner(claim, ordinal) and claim.metadata.deletion_timestamp is None
        ]

    def _remove_owner(self, claim: PersistentVolumeClaim, ordinal: int) -> Patch:
        others = [
            reference
            for reference in claim.metadata.owner_references
            if reference.uid != self.owner.metadata.uid and not _is_pod(reference, self._pod_name(ordinal))
        ]
        return _owned_by(
            claim, self._pod_name(ordinal), others, [self._set_reference()] if self.retention.with_set else []
        )

    def _has_owner(self, claim: PersistentVolumeClaim, ordinal: int) -> bool:
        return any(_is_pod(reference, self._pod_name(ordinal)) for reference in claim.metadata.owner_references)

    def _pod_name(self, ordinal: int) -> str:
        return f"{self.owner.metadata.name}-{ordinal}"

    def _all(self, ordinal: int) -> Mapping[str, PersistentVolumeClaim]:
        """Return the claims of one ordinal, those of former templates included."""
        former = self.of_former.get(ordinal)
        return {**self.of(ordinal), **former} if former else self.of(ordinal)

    def _of(self, ordinal: int, templates: Iterable[ClaimTemplate]) -> list[PersistentVolumeClaim]:
        there = self._all(ordinal)
        return [there[template.name] for template in templates if template.name in there]

    def create(self, template: ClaimTemplate, ordinal: int, *, before_pod: bool = False) -> Create:
        """Create a missing claim. `before_pod`: a failure prevents the pod, so it gets an event of its own."""
        meta = self.owner.metadata
        owners = [self._set_reference()] if self._wanted(scaled_away=False)[0] and self.retention.enforced else []
        labels = self.owner.spec.selector.match_labels
        body = template.claim(meta.name, str(ordinal), meta.namespace, labels, owners)
        name, pod = body["metadata"]["name"], f"{meta.name}-{ordinal}"
        return create_of(
            CLAIM,
            body,
            Intent.CLAIM,
            f"claim of {pod}",
            pods=(pod,),
            phase=CLAIM_PHASE + name,
            tells_if_taken=False,
            on_success=Event("SuccessfulCreate", f"create Claim {name} Pod {pod} in StatefulSet {meta.name} success"),
            on_failure=(
                _failed_create(f"create Claim {name} for Pod {pod} in StatefulSet {meta.name} failed error: "),
                *([pod_not_created(meta.name, pod, f"{unmade_claim(name)}: ")] if before_pod else []),
            ),
        )

    def _set_reference(self) -> Json:
        """Return the owner reference of claims that are deleted with the set."""
        return _reference(STATEFUL_SET, self.owner.metadata)

    def _wanted(self, *, scaled_away: bool) -> tuple[bool, bool]:
        """Return (owned by the set, owned by its pod)."""
        with_pod = scaled_away and self.retention.with_scaled
        return self.retention.with_set and not with_pod, with_pod

    def _references(self, claim: PersistentVolumeClaim, pod_uid: str) -> tuple[bool, bool]:
        uids = {reference.uid for reference in claim.metadata.owner_references}
        return self.owner.metadata.uid in uids, pod_uid in uids


def unmade_claim(name: str) -> str:
    """Return the error text for a claim that could not be created; users search for it."""
    return f"failed to create PVC {name}"


def pod_not_created(owner: str, pod: str, error: str) -> Event:
    """Return the event of a pod that could not be created."""
    return _failed_create(f"create Pod {pod} in StatefulSet {owner} failed error: {error}")


def own_claims(
    statefulset: StatefulSet,
    stored: Mapping[str, PersistentVolumeClaim],
    gates: Gates,
    kept: Iterable[ControllerRevision] = (),
) -> Claims:
    """Group the claims that may be the set's by ordinal and template.

    `kept`: revisions besides the newest that pods are on or return to.
    """
    templates = claim_templates(statefulset.spec.volume_claim_templates)
    names = {template.name for template in templates}
    recorded = {template.name: template for revision in kept for template in claims_of_revision(revision, templates)}
    former = tuple(template for name, template in recorded.items() if name not in names)
    retention = Retention.of(statefulset, gates)
    by_ordinal: dict[int, dict[str, PersistentVolumeClaim]] = {}
    of_former: dict[int, dict[str, PersistentVolumeClaim]] = {}
    tied: set[int] = set()
    question = (statefulset.metadata.name, tuple(template.name for template in (*templates, *former)))
    for claim in stored.values() if question[1] else ():
        template, ordinal = _place(claim, question)
        if ordinal >= 0:
            (by_ordinal if template in names else of_former).setdefault(ordinal, {})[template] = claim
            owners = claim.metadata.owner_references
            if owners and any(_is_pod(reference, f"{statefulset.metadata.name}-{ordinal}") for reference in owners):
                tied.add(ordinal)
    return Claims(
        owner=statefulset,
        templates=templates,
        former=former,
        wanted={template.name: desired_claim(template) for template in templates},
        retention=retention,
        by_ordinal=by_ordinal,
        of_former=of_former,
        tied=frozenset(tied) if retention.enforced else frozenset(),
    )


def volumes_fit(pod: Pod, ordinal: int, claims: Claims) -> bool:
    """Report whether the pod has a volume of each template, on its own claim. The result is cached on the pod."""
    question = claims.wanted.keys()
    memo: tuple[Collection[str], bool] | None = pod.memo.get(_VOLUMES)
    if memo is None or memo[0] != question:
        memo = pod.memo[_VOLUMES] = (question, _volumes_fit(pod, ordinal, claims))
    return memo[1]


def _volumes_fit(pod: Pod, ordinal: int, claims: Claims) -> bool:
    name, mounted = claims.owner.metadata.name, _mounted(pod)
    return all(mounted.get(template.name) == template.claim_name(name, str(ordinal)) for template in claims.templates)


def _mounted(pod: Pod) -> dict[str, str]:
    """Return claim names by volume."""
    volumes = ((volume.name, volume.persistent_volume_claim) for volume in pod.spec.volumes)
    return {name: source.claim_name for name, source in volumes if source}


def _place(claim: PersistentVolumeClaim, question: tuple[str, Sequence[str]]) -> tuple[str, int]:
    """Return (template, ordinal) of a claim, cached on it; ordinal -1 if it does not belong to the set."""
    memo: tuple[object, tuple[str, int]] | None = claim.memo.get(_PLACE)
    if memo is not None and memo[0] == question:
        return memo[1]
    name, templates = question
    place = _find(claim.metadata.name, name, templates)
    claim.memo[_PLACE] = (question, place)
    return place


def _find(claim_name: str, set_name: str, templates: Collection[str]) -> tuple[str, int]:
    for template in templates:
        ordinal = ordinal_of(claim_name, f"{template}-{set_name}")
        if ordinal >= 0:
            return template, ordinal
    return "", -1


def _is_pod(reference: OwnerReference, name: str) -> bool:
    return reference.kind == POD.kind and reference.api_version == POD.api_version and reference.name == name


def _owned_by(claim: PersistentVolumeClaim, pod: str, others: Iterable[OwnerReference], kept: Iterable[Json]) -> Patch:
    owners = [*(msgspec.to_builtins(reference) for reference in others), *kept]
    return patch_of(
        CLAIM,
        claim.metadata,
        Intent.CLAIM,
        "claim retention policy",
        pods=(pod,),
        body={"metadata": {"ownerReferences": owners or None}},
        on_version=True,
    )


def _failed_create(message: str) -> Event:
    return Event("FailedCreate", message, warning=True)


def _reference(kind: Resource, meta: ObjectMeta) -> Json:
    """Build an owner reference without `controller`: the owner of a claim does not manage it."""
    return {**kind.type_meta, "name": meta.name, "uid": meta.uid}
