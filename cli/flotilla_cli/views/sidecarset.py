"""SidecarSet: its sidecars."""

from collections.abc import Iterator

import msgspec

from flotilla_cli.podstory.verb import uninjected
from flotilla_cli.views.kindview import KindView, PodQuery, Summary
from flotilla_cli.views.progress import with_limits
from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.kinds.sidecarset.records import injected
from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, SIDECAR_SET, Sidecar, SidecarSet


def sidecar_set(raw: bytes) -> Summary:
    """How many pods have the sidecars, what may change them, and each sidecar."""
    found = msgspec.json.decode(raw, type=SidecarSet)
    status = found.status
    counts = f"{status.matched_pods} pods: {status.updated_pods} updated, {status.ready_pods} ready"
    headline = ", ".join([counts, *_strategy(found)])
    rows = [_row(sidecar, "native sidecar" if sidecar.native else "init") for sidecar in found.init_sidecars]
    rows += [_row(sidecar, "hot upgrade" if sidecar.hot else "sidecar") for sidecar in found.sidecars]
    return Summary(headline, ("CONTAINER", "AS", "IMAGE"), rows)


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


def _pods(raw: bytes) -> PodQuery | None:
    """Those that were injected with it, wherever they are."""
    found = msgspec.json.decode(raw, type=SidecarSet)
    if found.spec.selector is None:
        return None
    name = found.metadata.name
    return PodQuery(
        selector=found.spec.selector,
        everywhere=True,
        keep=lambda pod: pod.active and name in injected(pod.metadata.annotations),
    )


def _has_injected(stored: Json, pod: Json) -> bool:
    return stored["metadata"]["name"] in injected(strings(member(pod, "metadata").get("annotations")))


def _progress(spec: Json, status: Json) -> str:
    strategy = member(spec, "updateStrategy")
    matched, updated = status.get("matchedPods", 0), status.get("updatedPods", 0)
    if updated >= matched or strategy.get("type") == NOT_UPDATE:
        return ""
    return with_limits([f"{updated} of {matched} pods have the newest sidecars"], strategy)


VIEW = KindView(
    resource=SIDECAR_SET,
    summary=sidecar_set,
    pods=_pods,
    remarks=uninjected,
    revision=lambda live: text(member(live, "status").get("latestRevision")),
    concerns=_has_injected,
    progress=_progress,
)
