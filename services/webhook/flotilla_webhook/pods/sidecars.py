"""Step 3 of the pod webhook: SidecarSets (sidecarset.md §6), each in the revision that a new pod gets (§6.3).

They come from a watch. One that was admitted here a moment ago is read from the apiserver until the watch has shown it,
so that a pod which is created right after it is not missed.
"""

import re
from collections.abc import Iterator

import msgspec
import structlog

from flotilla_common.api.admission.review import Request
from flotilla_common.api.documents import Json, member, strings, text
from flotilla_common.api.errors import ApiError, found_or_none
from flotilla_common.api.keys import CUSTOM_VERSION_LABEL, SIDECAR_SET_NAME_LABEL
from flotilla_common.api.kinds.sidecarset.admission import convert
from flotilla_common.api.kinds.sidecarset.matching import PodMatcher, without_bases
from flotilla_common.api.kinds.sidecarset.revisions import restored
from flotilla_common.api.kinds.sidecarset.types import PARTIAL, SIDECAR_SET, RevisionChoice, SidecarSet
from flotilla_common.api.meta import IntOrString, LabelSelector, metadata_of, rfc3339
from flotilla_common.api.podrules import PodRule, labels_match
from flotilla_common.api.resources import NAMESPACE, REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.clock import Clock, Entropy
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_webhook.cache import Cache, read_all
from flotilla_webhook.pods.admission import AdmissionStep
from flotilla_webhook.pods.sidecar_injection import SidecarSource, inject

UNSEEN_SECONDS = 3.0
"""Limit of reading an admitted SidecarSet from the apiserver. It may never be stored: another webhook may refuse it."""

_log = structlog.get_logger()

_PERCENT = re.compile(r"([0-9]+)%")


class StoredSidecarSet(msgspec.Struct, frozen=True):
    """A stored SidecarSet."""

    typed: SidecarSet
    document: Json
    matcher: PodMatcher | None
    """The matching rules; None if the selector cannot be parsed."""
    rules: tuple[PodRule, ...]
    """The rules of the pods that it matches."""


class _Unseen(msgspec.Struct, frozen=True):
    """An admitted SidecarSet that the watch may not have shown."""

    uid: str
    generation: int
    until: float  # it is read until then


class Sidecars:
    """The step, and the rules that SidecarSets require."""

    def __init__(self, api: Api, clock: Clock, entropy: Entropy, gates: Gates, namespace: str) -> None:
        """Read revisions from `namespace`, the system's own."""
        self.cache = Cache(SIDECAR_SET, read_stored, lambda one: one.rules)
        self._api = api
        self._clock = clock
        self._revision_lookup = RevisionLookup(api, entropy, namespace)
        self._on = gates.on("PodWebhook")
        self._sorted = gates.on("EnableSortSidecarContainerByName")
        self._unseen: dict[str, _Unseen] = {}

    def step(self) -> AdmissionStep:
        """Return the step; idle without the gate PodWebhook."""
        return AdmissionStep("SidecarSet", self.rules, self.change, lambda: self.cache.known or not self._on)

    async def rules(self) -> list[PodRule]:
        """Return the rules of pods that a SidecarSet matches, unless its injection is paused."""
        if not self._on:
            return []
        return [rule for one in self.cache.values() for rule in one.rules]

    async def rules_of(self, document: Json, namespace: str) -> list[PodRule]:
        """Return the rules that a SidecarSet about to be stored requires."""
        one = read_stored(msgspec.Raw(msgspec.json.encode(_hub(document)))) if self._on else None
        return [] if one is None else list(one.rules)

    def admitted(self, document: Json) -> None:
        """Record that the SidecarSet is about to be stored."""
        metadata = member(document, "metadata")
        self._unseen[text(metadata.get("name"))] = _Unseen(
            uid=text(metadata.get("uid")),
            generation=metadata.get("generation") or 1,
            until=self._clock.monotonic() + UNSEEN_SECONDS,
        )

    async def change(self, pod: Json, request: Request) -> None:
        """Inject the SidecarSets that match the pod.

        Raises ApiError or Unreachable, and ValueError if one cannot be injected.
        """
        if not self._on:
            return
        labels = strings(member(pod, "metadata").get("labels"))
        matching = await self._matching(labels, request.namespace)
        sources = [await self._revision_lookup.source(one.typed, one.document, labels) for one in matching]
        if sources:
            inject(pod, sources, rfc3339(self._clock.now()), sorted_by_name=self._sorted)

    async def _matching(self, labels: dict[str, str], namespace: str) -> list[StoredSidecarSet]:
        found: dict[str, StoredSidecarSet] = {}
        namespace_labels: dict[str, str] | None = None
        for one in await self._stored():
            if one.typed.spec.injection_strategy.paused:
                continue
            if one.matcher is None:
                raise ValueError(f"the selector of SidecarSet {one.typed.metadata.name} cannot be read")
            if not one.matcher.may_select(labels, namespace):
                continue
            if one.matcher.namespaces is not None and namespace_labels is None:
                namespace_labels = await self._labels_of(namespace)
            if one.matcher.includes(namespace_labels or {}):
                found[one.typed.metadata.name] = one
        return [found[one.metadata.name] for one in without_bases(known.typed for known in found.values())]

    async def _stored(self) -> list[StoredSidecarSet]:
        """Return all SidecarSets, by name."""
        await self._read_unseen()
        if self.cache.known:
            return self.cache.values()
        items = await found_or_none(read_all(self._api, SIDECAR_SET))  # None: the kind is not installed
        found = [one for one in map(read_stored, items or ()) if one is not None]
        return sorted(found, key=lambda one: one.typed.metadata.name)

    async def _read_unseen(self) -> None:
        for name, unseen in list(self._unseen.items()):
            if self._is_seen(name, unseen) or self._clock.monotonic() > unseen.until:
                if self._unseen.get(name) is unseen:  # it may have been admitted again during a read of another
                    del self._unseen[name]
                continue
            stored = await found_or_none(self._api.get(SIDECAR_SET, "", name))
            if stored is not None:
                self.cache.take(stored)

    def _is_seen(self, name: str, unseen: _Unseen) -> bool:
        held = self.cache.get("", name)
        if held is None or held.typed.metadata.uid != unseen.uid:  # a former object of this name proves nothing
            return False
        return held.typed.metadata.generation >= unseen.generation

    async def _labels_of(self, namespace: str) -> dict[str, str]:
        """Return the labels of the namespace, read directly: one may be new. A deleted namespace has none."""
        body = await found_or_none(self._api.get(NAMESPACE, "", namespace))
        return {} if body is None else metadata_of(body).labels


def read_stored(item: msgspec.Raw) -> StoredSidecarSet | None:
    """Decode a stored SidecarSet. One that cannot be decoded injects nothing.

    One with an unreadable selector is kept, because it fails requests.
    """
    try:
        typed = msgspec.json.decode(item, type=SidecarSet)
    except msgspec.MsgspecError as fault:
        _log.warning("cannot read a SidecarSet", error=str(fault))
        return None
    try:
        matcher = PodMatcher.of(typed)
    except ValueError:
        matcher = None
    return StoredSidecarSet(typed, msgspec.json.decode(item), matcher, tuple(_rules_of(typed, matcher)))


def _rules_of(typed: SidecarSet, matcher: PodMatcher | None) -> Iterator[PodRule]:
    if typed.spec.injection_strategy.paused or matcher is None or matcher.selector is None or matcher.unreadable:
        return
    why, expression = f"SidecarSet {typed.metadata.name}", labels_match(typed.spec.selector or LabelSelector())
    if matcher.pinned is not None:
        yield from (PodRule(why, expression, namespace) for namespace in sorted(matcher.pinned))
    elif matcher.namespaces is not None:
        labels = msgspec.json.encode(typed.spec.namespace_selector, order="sorted").decode()
        yield PodRule(why, expression, namespace_labels=labels)
    else:
        yield PodRule(why, expression)


def _hub(document: Json) -> Json:
    if document.get("apiVersion") == SIDECAR_SET.api_version:
        return document
    return convert(document, SIDECAR_SET.api_version)


class RevisionLookup:
    """Finds the spec to inject: the newest, or the one that the injection strategy names."""

    def __init__(self, api: Api, entropy: Entropy, namespace: str) -> None:
        self._api = api
        self._entropy = entropy
        self._namespace = namespace

    async def source(self, sidecar_set: SidecarSet, document: Json, labels: dict[str, str]) -> SidecarSource:
        """Return the source for a pod with these labels.

        Raises ApiError and Unreachable, and ValueError where the revision is missing or cannot be read: the pod must
        not be created then.
        """
        choice = sidecar_set.spec.injection_strategy.revision
        newest = SidecarSource(document, sidecar_set.status.latest_revision)
        if choice is None or not (choice.revision_name or choice.custom_version):
            return newest
        revision = await self._revision(sidecar_set.metadata.name, choice)
        if not self._applies(sidecar_set, choice, labels):
            return newest
        name = text(member(revision, "metadata").get("name"))
        return SidecarSource(restored(document, revision), name)

    def _applies(self, sidecar_set: SidecarSet, choice: RevisionChoice, labels: dict[str, str]) -> bool:
        strategy = sidecar_set.spec.update_strategy
        if strategy.paused or choice.policy != PARTIAL:
            return True
        if strategy.selector is not None and not Selector.compile(strategy.selector).matches(labels):
            return True
        return self._is_drawn(strategy.partition)

    def _is_drawn(self, partition: IntOrString | None) -> bool:
        """Decide at random, with the partition as the probability."""
        if not isinstance(partition, str):
            return False
        found = _PERCENT.fullmatch(partition)
        if found is None:
            raise ValueError(f"partition {partition!r} is not a percentage")
        return self._entropy.uniform(0.0, 1.0) <= int(found[1]) / 100

    async def _revision(self, name: str, choice: RevisionChoice) -> Json:
        wanted = (
            choice.revision_name if choice.revision_name is not None else f"of custom version {choice.custom_version}"
        )
        missing = f"SidecarSet {name}: cannot find ControllerRevision {wanted}"
        try:
            if choice.revision_name:
                return msgspec.json.decode(await self._api.get(REVISION, self._namespace, choice.revision_name))
            found = await self._of_version(name, choice.custom_version or "")
        except ApiError as failure:
            if failure.code == 404:
                raise ValueError(missing) from failure
            raise
        if not found:
            raise ValueError(missing)
        return max(found, key=lambda revision: revision.get("revision") or 0)

    async def _of_version(self, name: str, version: str) -> list[Json]:
        selector = f"{SIDECAR_SET_NAME_LABEL}={name},{CUSTOM_VERSION_LABEL}={version}"
        page = await self._api.list(REVISION, self._namespace, label_selector=selector)
        return [msgspec.json.decode(item, type=Json) for item in page.items]
