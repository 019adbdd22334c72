"""Previews of actions: what the apiserver makes of a change, and what would then happen to each pod."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from flotilla_common.api.documents import Json, mapping, member, strings, text
from flotilla_common.api.keys import SPECIFIED_DELETE_LABEL
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.resources import POD, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import PatchType
from flotilla_common.control.replay_controller import Planning
from flotilla_console.actions.client import Client
from flotilla_console.actions.edits import patch_of
from flotilla_console.actions.kinds import ActionKind
from flotilla_insight.preview.dryrun import Applied
from flotilla_insight.preview.manifest import Manifest
from flotilla_insight.preview.preview import Preview, Reader
from flotilla_insight.preview.report import FieldChange, Report, changes_of
from flotilla_insight.views import view_of

MOST_PODS = 3000
"""Replicas above which no rollout is simulated: it would take the console too long."""

NOT_OURS = "Kubernetes' own controllers carry this out; Flotilla cannot foresee them pod by pod."
TOO_MANY = f"It has more than {MOST_PODS} pods, so its rollout is not simulated."

PlanningOf = Callable[[], Mapping[str, Planning]]
"""Returns the settings that the services have published, by plural."""


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """The consequences of an action."""

    changes: Sequence[FieldChange] = ()
    report: Report | None = None
    note: str = ""
    """Why there is no report."""


class Previews:
    """Makes previews, one at a time: each takes a processor."""

    def __init__(self, planning: PlanningOf, clock: Clock) -> None:
        self._planning = planning
        self._clock = clock
        self._turn = asyncio.Lock()

    async def of_edit(self, api: Client, kind: ActionKind, before: Json, after: Json) -> Foreseen:
        """Preview a change of the object. Raises ApiError, Unreachable."""
        patch = patch_of(before, after)
        if not patch:
            return Foreseen(note="Nothing would change.")
        admitted = await dry_run(api, kind.resource, before, patch)
        changes = changes_of(before, admitted, view_of(kind.resource).secret_fields)
        return await self._foreseen(Reader(api), kind, before, admitted, changes)

    async def of_deletion(self, api: Client, kind: ActionKind, document: Json, names: Collection[str]) -> Foreseen:
        """Preview the deletion of these pods by their controller. Raises ApiError, Unreachable."""
        return await self._foreseen(MarkingReader(api, names), kind, document, document, ())

    async def _foreseen(
        self, reader: Reader, kind: ActionKind, before: Json, after: Json, changes: Sequence[FieldChange]
    ) -> Foreseen:
        ours = _kind_of(kind.resource)
        if ours is None:
            return Foreseen(changes=changes, note=NOT_OURS)
        if any(_size(one) > MOST_PODS for one in (before, after)):
            return Foreseen(changes=changes, note=TOO_MANY)
        applied = Applied(
            manifest=Manifest(ours, ours.resource.version, after),
            namespace=text(member(after, "metadata").get("namespace")),
            before=before,
            after=after,
            stored=after,
        )
        async with self._turn:
            report = await Preview(reader, applied, self._planning(), self._clock).report()
        return Foreseen(changes=changes, report=report)


class MarkingReader(Reader):
    """Reads the cluster as if these pods were marked for deletion already."""

    def __init__(self, api: Client, names: Collection[str]) -> None:
        super().__init__(api)
        self._names = frozenset(names)

    async def list(self, resource: Resource, namespace: str, name: str = "") -> Sequence[bytes]:
        """Return the objects, with the mark on the chosen pods."""
        found = await super().list(resource, namespace, name)
        return [self._marked(raw) for raw in found] if resource == POD else found

    def _marked(self, raw: bytes) -> bytes:
        pod = mapping(msgspec.json.decode(raw))
        metadata = member(pod, "metadata")
        if metadata.get("name") not in self._names:
            return raw
        labels = strings(metadata.get("labels")) | {SPECIFIED_DELETE_LABEL: "true"}
        return msgspec.json.encode({**pod, "metadata": {**metadata, "labels": labels}})


async def dry_run(api: Client, resource: Resource, before: Json, patch: Json) -> Json:
    """Return the object as the apiserver would store it. Raises ApiError, Unreachable."""
    metadata = member(before, "metadata")
    raw = await api.patch(
        resource,
        text(metadata.get("namespace")),
        text(metadata.get("name")),
        msgspec.json.encode(patch),
        PatchType.MERGE,
        params={"dryRun": "All"},
    )
    return mapping(msgspec.json.decode(raw))


def _kind_of(resource: Resource) -> Kind | None:
    """Return the kind, if it is one of ours."""
    try:
        return catalogue.named(resource.group, resource.kind)
    except LookupError:
        return None


def _size(document: Json) -> int:
    """Return the larger of the wanted and the existing number of pods."""
    status = member(document, "status")
    counts = (
        member(document, "spec").get("replicas"),
        *(status.get(name) for name in ("replicas", "desiredNumberScheduled", "matchedPods", "desired")),
    )
    return max((one for one in counts if isinstance(one, int)), default=0)
