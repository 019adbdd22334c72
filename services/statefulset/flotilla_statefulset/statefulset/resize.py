"""Volumes that grow with a rollout: claims follow their templates, pod by pod (statefulset.md §4.13).

Only with gate StatefulSetAutoResizePVCGate and volumeClaimUpdateStrategy OnPodRollingUpdate. Claims never shrink.
"""

from functools import lru_cache

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.core import PersistentVolumeClaim, Resources
from flotilla_common.api.documents import Json, member, sequence
from flotilla_common.api.keys import CLAIM_OWNER_ANNOTATION
from flotilla_common.api.resources import CLAIM
from flotilla_common.control.plan import Chain, Event, Patch
from flotilla_common.control.writes import patch_of
from flotilla_common.workload.claims import ClaimTemplate
from flotilla_statefulset.statefulset.claims import living
from flotilla_statefulset.statefulset.context import PlanContext

PHASE = "resize"
STORAGE = "storage"
NODE_RESIZES = "FileSystemResizePending"
"""The condition of a claim whose volume has grown, and whose file system grows when a pod uses it."""


class ResizeRefused(Exception):
    """A claim cannot become what its template says; `event` tells users, where there is one."""

    def __init__(self, text: str, event: Event | None = None) -> None:
        super().__init__(text)
        self.event = event


class Growth:
    """The claims of wanted pods that are not yet as their templates say."""

    def __init__(self, context: PlanContext) -> None:
        self._context = context
        self.on = (
            context.snapshot.gates.on("StatefulSetAutoResizePVCGate")
            and context.statefulset.spec.volume_claim_update_strategy.type == "OnPodRollingUpdate"
            and not context.targets.on_delete
        )
        self.unready: set[int] = set()  # a claim has less capacity than it asks for
        self.incompatible: list[int] = []  # a claim asks for less than its template
        if self.on:
            self._survey()

    def _survey(self) -> None:
        claims = self._context.claims
        for ordinal, mine in claims.by_ordinal.items():
            if ordinal not in self._context.targets.ordinals:
                continue
            there = list(living(mine.values()))
            if not all(is_ready(claim) for claim in there):
                self.unready.add(ordinal)
            if any(not is_compatible(mine[one.name], one) for one in claims.templates if one.name in mine):
                self.incompatible.append(ordinal)

    def is_complete(self, ordinal: int) -> bool:
        """Whether the ordinal's claims are as their templates say, as far as that can be without the pod."""
        claims = self._context.claims
        mine = claims.of(ordinal)
        return all(
            _is_completed(claim, template)
            for template in claims.templates
            if (claim := mine.get(template.name)) is not None and claim.metadata.deletion_timestamp is None
        )

    def grow(self, ordinal: int) -> list[Chain]:
        """The writes that let the ordinal's claims grow; empty if they are compatible. Raises ResizeRefused."""
        claims = self._context.claims
        mine = claims.of(ordinal)
        return [
            (self._resize(claim, template, ordinal),)
            for template in claims.templates
            if (claim := mine.get(template.name)) is not None
            and claim.metadata.deletion_timestamp is None
            and not is_compatible(claim, template)
        ]

    def _resize(self, claim: PersistentVolumeClaim, template: ClaimTemplate, ordinal: int) -> Patch:
        name, owner = claim.metadata.name, self._context.statefulset.metadata.name
        if not _same_but_size(claim, template):
            text = f"failed to update pvc {name}: contains diff other than spec resource, wait pvc to be deleted"
            raise ResizeRefused(text, Event(reason="FailedUpdatePVC", message=text, warning=True))
        self._must_expand(claim)
        pod = self._context.pod_name(ordinal)
        return patch_of(
            CLAIM,
            claim.metadata,
            cause=f"volume of {pod} grows",
            phase=PHASE,
            body={
                "metadata": {"annotations": {CLAIM_OWNER_ANNOTATION: owner}},
                "spec": {"resources": member(template.document, "spec").get("resources")},
            },
            on_version=True,
            on_success=Event(
                reason="SuccessfulResize", message=f"resize Claim {name} Pod {pod} in StatefulSet {owner} success"
            ),
            on_failure=Event(
                reason="FailedResize",
                message=f"resize Claim {name} for Pod {pod} in StatefulSet {owner} failed error: ",
                warning=True,
            ),
        )

    def _must_expand(self, claim: PersistentVolumeClaim) -> None:
        name = claim.spec.storage_class_name
        if not name:
            return
        found = [one for one in self._context.snapshot.storage_classes if one.metadata.name == name]
        if not found:
            raise ResizeRefused(f"storage class {name} of claim {claim.metadata.name} does not exist")
        if not found[0].allow_volume_expansion:
            raise ResizeRefused(f"storage class {name} of claim {claim.metadata.name} does not allow volume expansion")


def is_compatible(claim: PersistentVolumeClaim, template: ClaimTemplate) -> bool:
    """As the template says, or larger. One that is on its way out is passed over."""
    if claim.metadata.deletion_timestamp is not None:
        return True
    return _same_but_size(claim, template) and _reaches(_asked(claim.spec.resources), _template(template).size)


def is_ready(claim: PersistentVolumeClaim) -> bool:
    """It has the capacity that it asks for."""
    return _reaches(str(claim.status.capacity.get(STORAGE, "0")), _asked(claim.spec.resources))


def _is_completed(claim: PersistentVolumeClaim, template: ClaimTemplate) -> bool:
    grown = is_ready(claim) or any(one.type == NODE_RESIZES and one.status == "True" for one in claim.status.conditions)
    return grown and is_compatible(claim, template)


def _same_but_size(claim: PersistentVolumeClaim, template: ClaimTemplate) -> bool:
    wanted = _template(template)
    classes = (claim.spec.storage_class_name, wanted.storage_class)
    return (None in classes or classes[0] == classes[1]) and tuple(claim.spec.access_modes) == wanted.access_modes


class _Wanted(msgspec.Struct, frozen=True):
    """What a template says that claims are compared by."""

    size: str
    storage_class: str | None
    access_modes: tuple[str, ...]


def _template(template: ClaimTemplate) -> _Wanted:
    return _read(msgspec.json.encode(template.document.get("spec")))


@lru_cache(maxsize=1024)
def _read(spec: bytes) -> _Wanted:
    document: Json = msgspec.json.decode(spec) or {}
    storage_class = document.get("storageClassName")
    return _Wanted(
        size=str(member(document, "resources", "requests").get(STORAGE, "0")),
        storage_class=str(storage_class) if storage_class is not None else None,
        access_modes=tuple(str(mode) for mode in sequence(document.get("accessModes"))),
    )


def _asked(resources: Resources) -> str:
    return str(resources.requests.get(STORAGE, "0"))


@lru_cache(maxsize=1024)
def _reaches(size: str, wanted: str) -> bool:
    try:
        return quantity.parse(size) >= quantity.parse(wanted)
    except ValueError:
        return False
