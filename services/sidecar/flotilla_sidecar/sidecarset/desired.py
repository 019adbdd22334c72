"""Compiles the spec of a SidecarSet into the form that its pods are compared with.

The result is built from values and cached by them. So it stays the same object while only the status of its SidecarSet
changes, and the cached states of ten thousand pods stay valid (see `pod_state`).
"""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from flotilla_common.api.documents import typed
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.types import Sidecar, SidecarSet
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import Selector

KEPT = 1024
"""The number of SidecarSets that are cached: more than any cluster has."""


class DesiredSidecars(msgspec.Struct, frozen=True, eq=False):
    """The compiled spec of one SidecarSet."""

    name: str
    memo_key: str
    """The key under which pods cache their state."""
    hash: str
    """The hash of its sidecars; empty if no webhook has written it."""
    hash_without_image: str
    selector: Selector
    chosen: Selector | None
    """`updateStrategy.selector`: the pods that may be updated. None: all."""
    chooses_none: bool
    """That selector cannot be read."""
    cold: tuple[Sidecar, ...]
    hot: tuple[Sidecar, ...]
    """The sidecars that are injected as two containers."""
    containers: frozenset[str]
    """The names of all its containers in pods."""
    listed: tuple[str, ...]
    """The names of sidecars that pods record (§6.13)."""

    def chooses(self, labels: Mapping[str, str]) -> bool:
        """Report whether pods with these labels may be updated."""
        return not self.chooses_none and (self.chosen is None or self.chosen.matches(labels))


def desired_sidecars(sidecar_set: SidecarSet) -> DesiredSidecars:
    """Compile the SidecarSet. Raises ValueError that names the unreadable field."""
    spec, annotations = sidecar_set.spec, sidecar_set.metadata.annotations
    return _compiled(
        sidecar_set.metadata.name,
        annotations.get(SIDECAR_SET_HASH, ""),
        annotations.get(SIDECAR_SET_HASH_WITHOUT_IMAGE, ""),
        msgspec.json.encode(spec.selector),
        msgspec.json.encode(spec.update_strategy.selector),
        bytes(spec.containers),
        bytes(spec.init_containers),
    )


@lru_cache(maxsize=KEPT)
def _compiled(
    name: str, whole: str, without_image: str, selector: bytes, chosen: bytes, containers: bytes, inits: bytes
) -> DesiredSidecars:
    sidecars = _sidecars("spec.containers", containers)
    natives = [sidecar.name for sidecar in _sidecars("spec.initContainers", inits) if sidecar.native]
    who, chooses_none = None, False
    try:
        who = _selector("spec.updateStrategy.selector", chosen)
    except ValueError:
        chooses_none = True
    return DesiredSidecars(
        name=name,
        memo_key=f"sidecarset:{name}",
        hash=whole,
        hash_without_image=without_image,
        selector=_not_empty("spec.selector", _selector("spec.selector", selector)),
        chosen=who,
        chooses_none=chooses_none,
        cold=tuple(sidecar for sidecar in sidecars if not sidecar.hot),
        hot=tuple(sidecar for sidecar in sidecars if sidecar.hot),
        containers=frozenset(name for sidecar in sidecars for name in sidecar.names),
        listed=tuple(sorted({*(sidecar.name for sidecar in sidecars), *natives})),
    )


def _sidecars(field: str, raw: bytes) -> list[Sidecar]:
    try:
        given = read_json(raw, object)
        return [] if given is None else typed(given, list[Sidecar])
    except ValueError as fault:
        raise ValueError(f"{field}: {fault}") from fault


def _selector(field: str, raw: bytes) -> Selector | None:
    given = read_json(raw, object)
    if given is None:
        return None
    selector = typed(given, LabelSelector)
    try:
        return Selector.compile(selector)
    except ValueError as fault:
        raise ValueError(f"{field}: {fault}") from fault


def _not_empty(field: str, selector: Selector | None) -> Selector:
    """Return the selector. Raises ValueError for an empty one, which would mean all pods."""
    # Admission rejects it, but it can be written past admission.
    if selector is None or selector.empty:
        raise ValueError(f"{field} is empty")
    return selector
