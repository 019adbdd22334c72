"""Expands volumes with a rollout: claims follow their templates, pod by pod (statefulset.md §4.13).

This needs gate StatefulSetAutoResizePVCGate and volumeClaimUpdateStrategy OnPodRollingUpdate. Claims never shrink.
"""

from flotilla_common.api.core import PersistentVolumeClaim
from flotilla_common.api.documents import member
from flotilla_common.api.keys import CLAIM_OWNER_ANNOTATION
from flotilla_common.api.resources import CLAIM
from flotilla_common.control.plan import Chain, Event, Intent, Patch
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.claims import ClaimTemplate
from flotilla_statefulset.statefulset.claim_state import claim_state
from flotilla_statefulset.statefulset.context import PlanContext

RESIZE = "resize"
"""The phase of the expansion."""


class ResizeRefused(Exception):
    """A claim cannot be changed to match its template; `event`, if any, informs users."""

    def __init__(self, text: str, event: Event | None = None) -> None:
        super().__init__(text)
        self.event = event


class VolumeExpansion:
    """The claims of wanted pods that do not match their templates yet."""

    def __init__(self, context: PlanContext) -> None:
        self._context = context
        self.on = (
            context.snapshot.gates.on("StatefulSetAutoResizePVCGate")
            and context.statefulset.spec.volume_claim_update_strategy.type == "OnPodRollingUpdate"
            and not context.targets.on_delete
        )
        self.unready: set[int] = set()  # ordinals with a claim whose capacity is below its request
        self.incompatible: list[int] = []  # ordinals with a pod and a claim that requests less than its template
        if self.on:
            self._survey()

    def _survey(self) -> None:
        ordinals, pods = self._context.targets.ordinals, self._context.pods.by_ordinal
        for ordinal in self._context.claims.by_ordinal:
            states = [
                claim_state(claim, self._context.claims.wanted[name]) for name, claim in self._active_claims(ordinal)
            ]
            if ordinal in ordinals and not all(state.ready for state in states):
                self.unready.add(ordinal)
            if ordinal in ordinals and ordinal in pods and not all(state.compatible for state in states):
                self.incompatible.append(ordinal)

    def is_complete(self, ordinal: int) -> bool:
        """Report whether the ordinal's claims match their templates, except for what needs the pod."""
        wanted = self._context.claims.wanted
        return all(claim_state(claim, wanted[name]).completed for name, claim in self._active_claims(ordinal))

    def expand(self, ordinal: int) -> list[Chain]:
        """Return the writes that expand the ordinal's claims; empty if they are compatible. Raises ResizeRefused."""
        claims, there = self._context.claims, dict(self._active_claims(ordinal))
        return [
            (self._resize(there[template.name], template, ordinal),)
            for template in claims.templates
            if template.name in there and not claim_state(there[template.name], claims.wanted[template.name]).compatible
        ]

    def _active_claims(self, ordinal: int) -> list[tuple[str, PersistentVolumeClaim]]:
        """Return the ordinal's claims by template, without terminating ones."""
        mine = self._context.claims.of(ordinal)
        return [(name, claim) for name, claim in mine.items() if claim.metadata.deletion_timestamp is None]

    def _resize(self, claim: PersistentVolumeClaim, template: ClaimTemplate, ordinal: int) -> Patch:
        name, owner = claim.metadata.name, self._context.statefulset.metadata.name
        if not claim_state(claim, self._context.claims.wanted[template.name]).only_size_differs:
            text = f"failed to update pvc {name}: contains diff other than spec resource, wait pvc to be deleted"
            raise ResizeRefused(text, Event("FailedUpdatePVC", text, warning=True))
        self._must_expand(claim)
        pod = self._context.pod_name(ordinal)
        return patch_of(
            CLAIM,
            claim.metadata,
            Intent.CLAIM,
            f"volume of {pod} grows",
            pods=(pod,),
            phase=RESIZE,
            body={
                "metadata": {"annotations": {CLAIM_OWNER_ANNOTATION: owner}},
                "spec": {"resources": member(template.document, "spec").get("resources")},
            },
            on_version=True,
            on_success=Event("SuccessfulResize", f"resize Claim {name} Pod {pod} in StatefulSet {owner} success"),
            on_failure=Event(
                "FailedResize", f"resize Claim {name} for Pod {pod} in StatefulSet {owner} failed error: ", warning=True
            ),
        )

    def _must_expand(self, claim: PersistentVolumeClaim) -> None:
        name = claim.spec.storage_class_name
        if not name:
            return
        known = {storage_class.metadata.name: storage_class for storage_class in self._context.snapshot.storage_classes}
        if name not in known:
            raise ResizeRefused(f"storage class {name} of claim {claim.metadata.name} does not exist")
        if not known[name].allow_volume_expansion:
            raise ResizeRefused(f"storage class {name} of claim {claim.metadata.name} does not allow volume expansion")
