"""What a SidecarSet wants of pods, compiled: what each of its pods is held against.

It is made from values, and kept by them. So it stays the same object while only the status of its SidecarSet changes,
and what was found out about ten thousand pods stays true (see `look`).
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
"""SidecarSets that are remembered: more than anybody has."""


class Wanted(msgspec.Struct, frozen=True, eq=False):
    """One SidecarSet's demands."""

    name: str
    memo_key: str
    """Under which pods remember what they are to it."""
    hash: str
    """Of its sidecars; empty if no webhook has written it."""
    hash_without_image: str
    selector: Selector
    chosen: Selector | None
    """`updateStrategy.selector`: who may be updated. None: everybody."""
    chooses_nobody: bool
    """That selector cannot be read."""
    cold: tuple[Sidecar, ...]
    hot: tuple[Sidecar, ...]
    """Those that are injected as two containers."""
    containers: frozenset[str]
    """The names of all its containers in pods."""
    listed: tuple[str, ...]
    """What pods remember as its sidecars (§6.13)."""

    def chooses(self, labels: Mapping[str, str]) -> bool:
        """Pods with these labels may be updated."""
        return not self.chooses_nobody and (self.chosen is None or self.chosen.matches(labels))


def wanted_of(sidecar_set: SidecarSet) -> Wanted:
    """What the SidecarSet wants. Raises ValueError that names the field that cannot be read."""
    spec, annotations = sidecar_set.spec, sidecar_set.metadata.annotations
    return _wanted(
        sidecar_set.metadata.name,
        annotations.get(SIDECAR_SET_HASH, ""),
        annotations.get(SIDECAR_SET_HASH_WITHOUT_IMAGE, ""),
        msgspec.json.encode(spec.selector),
        msgspec.json.encode(spec.update_strategy.selector),
        bytes(spec.containers),
        bytes(spec.init_containers),
    )


@lru_cache(maxsize=KEPT)
def _wanted(
    name: str, whole: str, without_image: str, selector: bytes, chosen: bytes, containers: bytes, inits: bytes
) -> Wanted:
    sidecars = _sidecars("spec.containers", containers)
    natives = [sidecar.name for sidecar in _sidecars("spec.initContainers", inits) if sidecar.native]
    who, chooses_nobody = None, False
    try:
        who = _selector("spec.updateStrategy.selector", chosen)
    except ValueError:
        chooses_nobody = True
    return Wanted(
        name=name,
        memo_key=f"sidecarset:{name}",
        hash=whole,
        hash_without_image=without_image,
        selector=_not_empty("spec.selector", _selector("spec.selector", selector)),
        chosen=who,
        chooses_nobody=chooses_nobody,
        cold=tuple(sidecar for sidecar in sidecars if not sidecar.hot),
        hot=tuple(sidecar for sidecar in sidecars if sidecar.hot),
        containers=frozenset(one for sidecar in sidecars for one in sidecar.names),
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
    """Admission refuses empty ones. Written past it, one would mean all pods."""
    if selector is None or selector.empty:
        raise ValueError(f"{field} is empty")
    return selector
