"""SidecarSet: a card with its sidecars."""

from collections.abc import Iterator
from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, Sidecar, SidecarSet


def sidecar_set(raw: bytes) -> Rendering:
    """How many pods have the sidecars, what may change them, and each sidecar."""
    found = msgspec.json.decode(raw, type=SidecarSet)
    status = found.status
    counts = f"{status.matched_pods} pods: {status.updated_pods} updated, {status.ready_pods} ready"
    headline = ", ".join([counts, *_strategy(found)])
    rows = [_row(sidecar, "native sidecar" if sidecar.native else "init") for sidecar in found.init_sidecars]
    rows += [_row(sidecar, "hot upgrade" if sidecar.hot else "sidecar") for sidecar in found.sidecars]
    return Rendering(headline, ("CONTAINER", "AS", "IMAGE"), rows)


def _strategy(found: SidecarSet) -> Iterator[str]:
    update, injection = found.spec.update_strategy, found.spec.injection_strategy
    if update.type == NOT_UPDATE:
        yield "existing pods are not updated"
    elif update.paused:
        yield "updates are paused"
    else:
        yield f"{1 if update.max_unavailable is None else update.max_unavailable} at a time"
        if update.partition not in (None, 0):
            yield f"{update.partition} stay on old revisions"
    if injection.paused:
        yield "injection is paused"
    if (revision := injection.revision) is not None:
        yield f"new pods get {revision.revision_name or f'custom version {revision.custom_version}'}"
    if found.base:
        yield f"canary of {found.base}"


def _row(sidecar: Sidecar, role: str) -> tuple[str, ...]:
    idle = sidecar.upgrade_strategy.hot_upgrade_empty_image
    return (sidecar.name, role, f"{sidecar.image}, idle {idle}" if sidecar.hot else sidecar.image)


picture: Opener = partial(LiveCard, sidecar_set)
