"""SidecarSet: its sidecars."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.kinds.sidecarset.pods import injected
from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, SIDECAR_SET, Sidecar, SidecarSet
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import NAMESPACE
from flotilla_common.control.text import named
from flotilla_common.kube.interface import Api
from flotilla_insight.pods.sidecars import PodSurroundings, sidecar_lines, why_not
from flotilla_insight.views.kindview import KindView, PodQuery, PodQuestion, Summary
from flotilla_insight.views.progress import with_limits
from flotilla_insight.views.related import pods_of


def sidecar_set(raw: bytes) -> Summary:
    """Describe how many pods have the sidecars, how updates are limited, and each sidecar."""
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
    """Return the query for the pods that were injected with it, in all namespaces."""
    found = msgspec.json.decode(raw, type=SidecarSet)
    if found.spec.selector is None:
        return None
    name = found.metadata.name
    return PodQuery(
        selector=found.spec.selector,
        everywhere=True,
        keep=lambda pod: pod.active and name in injected(pod.metadata.annotations),
    )


MOST_UNINJECTED = 500
"""Limit of pods of a SidecarSet that are searched for those that lack it."""


async def _about_pod(about: PodQuestion) -> Sequence[str]:
    """Explain the pod's sidecars."""
    labels = metadata_of(await about.api.get(NAMESPACE, "", about.pod.metadata.namespace)).labels
    whys = await about.whys(SIDECAR_SET, injected(about.pod.metadata.annotations))
    surroundings = PodSurroundings(labels, await _sidecar_sets(about.api), whys)
    return sidecar_lines(about.pod, surroundings, everything=about.everything)


async def _uninjected(api: Api, raw: bytes) -> list[str]:
    """Return the pods that a SidecarSet matches but that lack it, by reason. Raises ApiError and Unreachable."""
    name = metadata_of(raw).name
    sets = await _sidecar_sets(api)
    one = next((one for one in sets if one.metadata.name == name), None)
    if one is None or one.spec.selector is None:
        return []
    query = PodQuery(
        selector=one.spec.selector,
        everywhere=True,
        keep=lambda pod: pod.active and name not in injected(pod.metadata.annotations),
    )
    found: dict[str, list[str]] = {}
    for pod in await pods_of(api, query, one.metadata, MOST_UNINJECTED):
        place = pod.metadata.namespace
        surroundings = PodSurroundings(metadata_of(await api.get(NAMESPACE, "", place)).labels, sets, {})
        found.setdefault(why_not(pod, one, surroundings), []).append(f"{place}/{pod.metadata.name}")
    return [f"{named(pods)}: {why}" for why, pods in found.items()]


async def _sidecar_sets(api: Api) -> list[SidecarSet]:
    """Return all SidecarSets, by name; empty if the kind is not installed."""
    page = await found_or_none(api.list(SIDECAR_SET))
    return sorted(_readable(page.items if page is not None else ()), key=lambda one: one.metadata.name)


def _readable(items: Iterable[msgspec.Raw]) -> Iterable[SidecarSet]:
    for item in items:
        with contextlib.suppress(msgspec.MsgspecError):  # if it cannot be decoded, it injects nothing
            yield msgspec.json.decode(item, type=SidecarSet)


def _has_injected(stored: Json, pod: Json) -> bool:
    return stored["metadata"]["name"] in injected(strings(member(pod, "metadata").get("annotations")))


def _progress(spec: Json, status: Json) -> str:
    strategy = member(spec, "updateStrategy")
    matched, updated = status.get("matchedPods", 0), status.get("updatedPods", 0)
    if updated >= matched or strategy.get("type") == NOT_UPDATE:
        return ""
    return with_limits([f"{updated} of {matched} pods have the newest sidecars"], strategy)


VIEWS = (
    KindView(
        resource=SIDECAR_SET,
        summary=sidecar_set,
        pods=_pods,
        remarks=_uninjected,
        about_pod=_about_pod,
        revision=lambda live: text(member(live, "status").get("latestRevision")),
        concerns=_has_injected,
        progress=_progress,
    ),
)
