"""Which revision of a SidecarSet a new pod gets (sidecarset.md §6.3)."""

import re

import msgspec

from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import ApiError
from flotilla_common.api.keys import CUSTOM_VERSION_LABEL, SIDECAR_SET_NAME_LABEL
from flotilla_common.api.kinds.sidecarset.revisions import restored
from flotilla_common.api.kinds.sidecarset.types import PARTIAL, RevisionChoice, SidecarSet
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.resources import REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.clock import Entropy
from flotilla_common.kube.interface import Api
from flotilla_webhook.injection.source import Source

_PERCENT = re.compile(r"([0-9]+)%")


class Restoring:
    """Finds the spec to inject: the newest, or the one that the injection strategy names."""

    def __init__(self, api: Api, entropy: Entropy, namespace: str) -> None:
        self._api = api
        self._entropy = entropy
        self._namespace = namespace

    async def source(self, sidecar_set: SidecarSet, document: Json, labels: dict[str, str]) -> Source:
        """What a pod with these labels gets. Raises ApiError and Unreachable, and ValueError where the revision is
        missing or cannot be read: the pod must not be created then."""
        choice = sidecar_set.spec.injection_strategy.revision
        newest = Source(document, sidecar_set.status.latest_revision)
        if choice is None or not (choice.revision_name or choice.custom_version):
            return newest
        revision = await self._revision(sidecar_set.metadata.name, choice)
        if not self._gets_it(sidecar_set, choice, labels):
            return newest
        name = text(member(revision, "metadata").get("name"))
        return Source(restored(document, revision), name)

    def _gets_it(self, sidecar_set: SidecarSet, choice: RevisionChoice, labels: dict[str, str]) -> bool:
        strategy = sidecar_set.spec.update_strategy
        if strategy.paused or choice.policy != PARTIAL:
            return True
        if strategy.selector is not None and not Selector.compile(strategy.selector).matches(labels):
            return True
        return self._drawn(strategy.partition)

    def _drawn(self, partition: IntOrString | None) -> bool:
        """By chance, so that of many pods that share of the partition gets it."""
        if not isinstance(partition, str):
            return False
        found = _PERCENT.fullmatch(partition)
        if found is None:
            raise ValueError(f"partition {partition!r} is no percentage")
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
