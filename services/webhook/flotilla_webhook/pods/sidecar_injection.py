"""Injects SidecarSets into a pod, and records them in its annotations (sidecarset.md §6.5 to §6.13)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from flotilla_common.api.documents import Json, ensured, mappings, member, sequence, strings, text, typed
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import (
    SIDECAR_SET_HASH,
    SIDECAR_SET_HASH_WITHOUT_IMAGE,
    SIDECAR_SET_INJECTED,
    SIDECAR_SET_WORKING_CONTAINER,
    SIDECAR_VERSION,
    SIDECAR_VERSION_ALT,
)
from flotilla_common.api.kinds.sidecarset.pods import (
    Record,
    injected,
    injected_list,
    is_hot,
    names_in_pods,
    patched_annotations,
    records,
    written,
)
from flotilla_common.api.kinds.sidecarset.types import BEFORE_APP, PatchPodMetadata
from flotilla_webhook.pods.sidecar_containers import hot_pair, prepared, used_volumes


class SidecarSource(msgspec.Struct, frozen=True):
    """One SidecarSet, as it is injected into one pod."""

    document: Json
    revision: str = ""
    """The name of its ControllerRevision, or ""."""

    @property
    def name(self) -> str:
        """The name of the SidecarSet."""
        return text(member(self.document, "metadata").get("name"))

    @property
    def containers(self) -> list[Json]:
        """The containers to inject, as the user wrote them."""
        return mappings(member(self.document, "spec").get("containers"))

    @property
    def init_containers(self) -> list[Json]:
        """The init containers to inject."""
        return mappings(member(self.document, "spec").get("initContainers"))

    @property
    def volumes(self) -> dict[str, Json]:
        """The volumes by name."""
        return {text(one.get("name")): one for one in mappings(member(self.document, "spec").get("volumes"))}

    @property
    def pull_secrets(self) -> list[Json]:
        """The secrets to pull their images with."""
        return mappings(member(self.document, "spec").get("imagePullSecrets"))

    @property
    def pod_metadata(self) -> list[PatchPodMetadata]:
        """The metadata that it puts on pods. Raises ValueError if they cannot be parsed."""
        entries = mappings(member(self.document, "spec").get("patchPodMetadata"))
        return typed(entries, list[PatchPodMetadata])

    @property
    def listed(self) -> list[str]:
        """The sidecars that pods record: its containers and its native sidecars."""
        native = [one for one in self.init_containers if is_native(one)]
        return sorted(text(one.get("name")) for one in (*self.containers, *native))

    @property
    def hashes(self) -> tuple[str, str]:
        """The hash of its containers, and the same without images."""
        annotations = strings(member(self.document, "metadata").get("annotations"))
        return annotations.get(SIDECAR_SET_HASH, ""), annotations.get(SIDECAR_SET_HASH_WITHOUT_IMAGE, "")


def is_native(container: Json) -> bool:
    """Report whether the init container keeps running beside the pod's containers."""
    return container.get("restartPolicy") == "Always"


Placed = tuple[str, Json]
"""The position of a container (podInjectPolicy), and the container."""


def inject(pod: Json, sources: Sequence[SidecarSource], now: str, *, sorted_by_name: bool = False) -> None:
    """Change the pod in place; a second call changes nothing.

    Raises ValueError if a source cannot be injected into this pod. `sorted_by_name` is the gate
    EnableSortSidecarContainerByName.
    """
    _patch_metadata(pod, sources)
    if not any(source.containers or source.init_containers for source in sources):
        return
    spec = ensured(pod, "spec")
    sidecars = _names(sources)
    starting = by_name(_placed(pod, sources, sidecars, init=True))
    running = list(_placed(pod, sources, sidecars, init=False))
    volumes = list(_volumes(sources))
    for key, value in (
        ("initContainers", merged_containers(spec.get("initContainers"), starting)),
        ("containers", merged_containers(spec.get("containers"), by_name(running) if sorted_by_name else running)),
        ("volumes", with_missing(spec.get("volumes"), volumes)),
        ("imagePullSecrets", pull_secrets(spec.get("imagePullSecrets"), _pull_secrets(sources))),
    ):
        if value or spec.get(key):
            spec[key] = value
    _annotate(pod, marks(_annotations(pod), sources, now))
    _annotate(pod, hot_marks(_annotations(pod), _hot_containers(sources)))


def _patch_metadata(pod: Json, sources: Sequence[SidecarSource]) -> None:
    before = _annotations(pod)
    after = before
    for source in sources:
        after = patched_annotations(after, source.pod_metadata)
    _annotate(pod, {key: value for key, value in after.items() if before.get(key) != value})


def _placed(pod: Json, sources: Sequence[SidecarSource], sidecars: frozenset[str], *, init: bool) -> Iterator[Placed]:
    for source in sources:
        for sidecar in source.init_containers if init else source.containers:
            policy, container = text(sidecar.get("podInjectPolicy")), prepared(sidecar, pod, sidecars)
            if is_hot(sidecar) and (not init or is_native(sidecar)):
                empty = text(member(sidecar, "upgradeStrategy").get("hotUpgradeEmptyImage"))
                yield from ((policy, one) for one in hot_pair(container, empty))
            else:
                yield policy, container


def _names(sources: Sequence[SidecarSource]) -> frozenset[str]:
    every = [one for source in sources for one in (*source.containers, *source.init_containers)]
    return frozenset(name for one in every for name in names_in_pods(one))


def _hot_containers(sources: Sequence[SidecarSource]) -> Iterator[Json]:
    for source in sources:
        yield from source.containers
        yield from (one for one in source.init_containers if is_native(one))


def _volumes(sources: Sequence[SidecarSource]) -> Iterator[Json]:
    """Yield the volumes that are used; a mount without a volume is left for the apiserver to refuse."""
    for source in sources:
        volumes = source.volumes
        for sidecar in (*source.init_containers, *source.containers):
            yield from (volumes[name] for name in used_volumes(sidecar) if name in volumes)


def _pull_secrets(sources: Sequence[SidecarSource]) -> Iterator[Json]:
    for source in sources:
        yield from source.pull_secrets


def _annotations(pod: Json) -> dict[str, str]:
    return strings(member(pod, "metadata").get("annotations"))


def _annotate(pod: Json, annotations: dict[str, str]) -> None:
    if annotations:
        ensured(ensured(pod, "metadata"), "annotations").update(annotations)


def merged_containers(own: object, placed: Sequence[Placed]) -> list[Json]:
    """Return the pod's containers and the placed ones.

    A placed one replaces that of the same name, or goes before or after all.
    """
    names = {text(one.get("name")) for one in mappings(own)}
    replacing = {text(one.get("name")): one for _, one in placed if text(one.get("name")) in names}
    kept = [replacing.get(text(one.get("name")), one) for one in mappings(own)]
    new = [(policy, one) for policy, one in placed if text(one.get("name")) not in names]
    before = [one for policy, one in new if policy == BEFORE_APP]
    return [*before, *kept, *(one for policy, one in new if policy != BEFORE_APP)]


def by_name(placed: Iterable[Placed]) -> list[Placed]:
    """Return the containers sorted by name."""
    return sorted(placed, key=lambda one: text(one[1].get("name")))


def with_missing(own: object, more: Iterable[Json]) -> list[Json]:
    """Return the pod's volumes, and those of the others whose names it does not have."""
    kept = sequence(own)
    names = {text(one.get("name")) for one in mappings(kept)}
    return [*kept, *(one for one in _unique(more) if text(one.get("name")) not in names)]


def pull_secrets(own: object, more: Iterable[Json]) -> list[Json]:
    """Return the pod's secrets, then the others, each name once."""
    return _unique([*mappings(own), *more])


def _unique(items: Iterable[Json]) -> list[Json]:
    found: dict[str, Json] = {}
    for one in items:
        found.setdefault(text(one.get("name")), one)
    return list(found.values())


def marks(annotations: Mapping[str, str], sources: Sequence[SidecarSource], now: str) -> dict[str, str]:
    """Return the annotations to set; `now` is RFC 3339 in UTC. Raises ValueError for records that cannot be parsed."""
    full: dict[str, Record] = {}
    without: dict[str, Record] = {}
    for source in sources:
        hash_, plain = source.hashes
        revision = source.revision or msgspec.UNSET
        full[source.name] = _record(source, hash_, now, revision)
        without[source.name] = _record(source, plain, now, msgspec.UNSET)
    names = [*injected(annotations), *(source.name for source in sources)]
    return {
        SIDECAR_SET_HASH: _merged(annotations.get(SIDECAR_SET_HASH, ""), full),
        SIDECAR_SET_HASH_WITHOUT_IMAGE: _merged(annotations.get(SIDECAR_SET_HASH_WITHOUT_IMAGE, ""), without),
        SIDECAR_SET_INJECTED: injected_list(names),
    }


def hot_marks(annotations: Mapping[str, str], containers: Iterable[Json]) -> dict[str, str]:
    """Return the annotations of containers that were injected as two: the first one works, at version 1.

    Raises ValueError for earlier ones that cannot be parsed.
    """
    hot = [text(one.get("name")) for one in containers if is_hot(one)]
    if not hot:
        return {}
    held = annotations.get(SIDECAR_SET_WORKING_CONTAINER)
    working = strings(read_json(held, object)) if held else {}
    working |= {name: f"{name}-1" for name in hot}
    made = {SIDECAR_SET_WORKING_CONTAINER: msgspec.json.encode(working, order="sorted").decode()}
    for name in hot:
        for number, (version, other) in ((1, ("1", "0")), (2, ("0", "1"))):
            made[f"{SIDECAR_VERSION}{name}-{number}"] = version
            made[f"{SIDECAR_VERSION_ALT}{name}-{number}"] = other
    return made


def _record(source: SidecarSource, hash_: str, now: str, revision: str | msgspec.UnsetType) -> Record:
    return Record(
        update_timestamp=now,
        hash=hash_,
        sidecar_set_name=source.name,
        sidecar_list=source.listed,
        controller_revision=revision,
    )


def _merged(held: str, new: Mapping[str, Record]) -> str:
    """Return the annotation's value with the new records.

    An equal record keeps its time, so that a pod that is admitted again stays as it is.
    """
    known = records(held)
    for name, record in new.items():
        before = known.get(name)
        if before is None or msgspec.structs.replace(before, update_timestamp=record.update_timestamp) != record:
            known[name] = record
    return written(known)
