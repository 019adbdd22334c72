"""Explains the sidecars of a pod: one sentence for each SidecarSet (sidecarset.md §6, §7)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.matching import PodMatcher
from flotilla_common.api.kinds.sidecarset.pods import hash_of, injected
from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, SidecarSet
from flotilla_common.api.selectors import Selector
from flotilla_common.api.webhooks import NAMESPACE_NAME
from flotilla_insight.published import Why

EXEMPT_LABEL = ("control-plane", "openkruise")


class PodSurroundings(msgspec.Struct, frozen=True):
    """The objects that decide about the pod's sidecars."""

    namespace_labels: Mapping[str, str]
    sets: Sequence[SidecarSet]
    whys: Mapping[str, Why]
    """Last plans of the sidecar service for SidecarSets, by name; empty without the bus."""


def sidecar_lines(pod: Pod, surroundings: PodSurroundings, *, everything: bool = False) -> list[str]:
    """Explain each SidecarSet that the pod has, or might have.

    SidecarSets for other pods are only counted, unless `everything` is wanted.
    """
    has = injected(pod.metadata.annotations)
    by_name = {one.metadata.name: one for one in surroundings.sets}
    lines = [_of_injected(pod, name, by_name.get(name), surroundings) for name in has]
    others = [one for one in surroundings.sets if one.metadata.name not in has]
    shown = others if everything else [one for one in others if _concerns(pod, one, surroundings)]
    lines += [f"SidecarSet {one.metadata.name}: {why_not(pod, one, surroundings)}{_leaving(one)}" for one in shown]
    return [*lines, *_rest(len(others) - len(shown))]


def _rest(number: int) -> Iterator[str]:
    if number:
        who = "1 other SidecarSet selects" if number == 1 else f"{number} other SidecarSets select"
        yield f"{who} other pods (-v names {'it' if number == 1 else 'them'})"


def _concerns(pod: Pod, one: SidecarSet, surroundings: PodSurroundings) -> bool:
    """Report whether its absence may surprise: it selects the pod's namespace, and all labels but one at most."""
    try:
        matcher = PodMatcher.of(one)
    except ValueError:
        return True  # not known
    if matcher.pinned is not None and pod.metadata.namespace not in matcher.pinned:
        return False
    if matcher.selector is None or matcher.unreadable or not matcher.includes(surroundings.namespace_labels):
        return False
    labels = pod.metadata.labels
    return matcher.selector.matches(labels) or _nearly(matcher.selector, labels)


def _nearly(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Report whether all requirements hold but one, and one holds for a label that the pod has."""
    held = [part for part in selector.parts if part.matches(labels)]
    return len(held) == len(selector.parts) - 1 and any(not part.matches({}) for part in held)


def _of_injected(pod: Pod, name: str, one: SidecarSet | None, surroundings: PodSurroundings) -> str:
    if one is None:
        return f"SidecarSet {name}: injected; it does not exist any more, so its sidecars stay as they are"
    held, wanted = hash_of(pod.metadata.annotations, name), one.metadata.annotations.get(SIDECAR_SET_HASH, "")
    if one.metadata.deletion_timestamp is not None:
        return f"SidecarSet {name}: injected{_leaving(one)}, so its sidecars stay as they are"
    if held == wanted:
        return f"SidecarSet {name}: injected and up to date{_late(pod, one)}"
    return f"SidecarSet {name}: injected, not updated: {_why_old(pod, one, surroundings.whys.get(name))}"


def _leaving(one: SidecarSet) -> str:
    """Return a text about its deletion, with the finalizers that block it; empty if it is not deleted."""
    if one.metadata.deletion_timestamp is None:
        return ""
    finalizers = one.metadata.finalizers
    held = f" (held by finalizer {', '.join(finalizers)})" if finalizers else ""
    return f"; it is being deleted{held}"


def _late(pod: Pod, one: SidecarSet) -> str:
    """Return the sidecars that are not ready or not updated."""
    names = {name for sidecar in one.sidecars for name in sidecar.names}
    images = {container.name: container.image for container in pod.spec.containers}
    waiting = [
        f"{status.name} ({status.state.waiting.reason or 'waiting'})"
        if status.state.waiting is not None
        else f"{status.name} (runs {status.image}, should run {images.get(status.name)})"
        for status in pod.status.container_statuses
        if status.name in names and not status.ready
    ]
    return f"; not ready: {', '.join(waiting)}" if waiting else ""


def _why_old(pod: Pod, one: SidecarSet, why: Why | None) -> str:
    keys = {pod.metadata.name, f"{pod.metadata.namespace}/{pod.metadata.name}"}
    for reason in why.reasons if why is not None else ():
        if keys & set(reason.objects):
            return reason.sentence
    strategy = one.spec.update_strategy
    annotations = pod.metadata.annotations
    plain = hash_of(annotations, one.metadata.name, SIDECAR_SET_HASH_WITHOUT_IMAGE)
    if plain != one.metadata.annotations.get(SIDECAR_SET_HASH_WITHOUT_IMAGE, ""):
        return "more than sidecar images has changed since the pod was created; a new pod gets the change"
    if strategy.type == NOT_UPDATE:
        return "updateStrategy.type is NotUpdate, only new pods get other sidecars"
    if strategy.paused:
        return "updates are paused (updateStrategy.paused)"
    rest = "; ".join(reason.message for reason in why.reasons) if why is not None else ""
    return f"it waits for its turn{f': {rest}' if rest else ''}"


def why_not(pod: Pod, one: SidecarSet, surroundings: PodSurroundings) -> str:
    """Return why a pod was not injected with a SidecarSet."""
    name, labels = pod.metadata.namespace, surroundings.namespace_labels
    if labels.get(EXEMPT_LABEL[0]) == EXEMPT_LABEL[1] or name == "kube-system":
        return f"not injected: pods of namespace {name} never are"
    try:
        matcher = PodMatcher.of(one)
    except ValueError as fault:
        return f"not injected: its selector cannot be read: {fault}"
    return next(_obstacles(pod, one, matcher, surroundings), "") or _once(pod, one)


def _obstacles(pod: Pod, one: SidecarSet, matcher: PodMatcher, surroundings: PodSurroundings) -> Iterator[str]:
    labels = pod.metadata.labels
    if matcher.selector is None or not matcher.selector.matches(labels):
        held = ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "none"
        yield f"not injected: it selects pods with {matcher.selector or 'nothing'}; the labels of this one: {held}"
    if matcher.pinned is not None and pod.metadata.namespace not in matcher.pinned:
        yield f"not injected: it selects only namespace {', '.join(sorted(matcher.pinned))}"
    if matcher.namespaces is not None and not matcher.includes(surroundings.namespace_labels):
        yield f"not injected: it selects namespaces with {matcher.namespaces}; {_labels(surroundings.namespace_labels)}"
    if one.spec.injection_strategy.paused:
        yield "not injected: its injection is paused (injectionStrategy.paused)"
    for canary in _canaries(pod, surroundings.sets):
        if canary.base == one.metadata.name:
            yield f"not injected: SidecarSet {canary.metadata.name} is its canary, and replaced it"


def _once(pod: Pod, one: SidecarSet) -> str:
    """Return the text for a SidecarSet that would match now."""
    made, since = pod.metadata.creation_timestamp, one.metadata.creation_timestamp
    if made is not None and since is not None and made <= since:  # in whole seconds
        return "not injected: the pod was created before it; sidecars are injected only at creation"
    return (
        "not injected: it matches now, but did not when the pod was created: labels, namespace or the SidecarSet have "
        "changed since; sidecars are injected only at creation"
    )


def _canaries(pod: Pod, sets: Iterable[SidecarSet]) -> list[SidecarSet]:
    has = injected(pod.metadata.annotations)
    return [one for one in sets if one.base and one.metadata.name in has]


def _labels(labels: Mapping[str, str]) -> str:
    held = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()) if key != NAMESPACE_NAME)
    return f"the labels of this one: {held or 'none'}"
