"""Deletion protection: a label on an object that refuses its deletion (deletionprotection.md).

The label is read from the stored object in the request, never from a cache: its owner may have removed it a moment ago.
The objects below a namespace or a CRD are counted live, page by page, and only when a labelled one is deleted. One live
object is enough to protect its parent, so the first page that has any ends the search: its objects are the count. A
search that times out fails, and the deletion is refused. Of custom resources only the metadata are read: objects may be
large, and their content is private.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, identity
from flotilla_common.api.documents import Json, mappings, member, strings, text
from flotilla_common.api.meta import Model
from flotilla_common.api.resources import CLAIM, CRD, POD, Resource
from flotilla_common.api.webhooks import COUNTED_LABEL, DELETE_PROTECTION
from flotilla_common.control.metrics import LegacyCounter
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError, Unreachable, pages
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.server.reviews import Handler

SEARCH_SECONDS = 10.0
"""Timeout of a search: the apiserver waits for 30 seconds, and would then let the deletion happen."""

_ALLOW = f"a ClusterRole that allows it needs the label {COUNTED_LABEL}=true"

_FINISHED = ("Succeeded", "Failed")
_UNFINISHED = ",".join(f"status.phase!={phase}" for phase in _FINISHED)

CASCADING_CRDS = "DeletionProtectionForCRDCascadingGate"
"""The gate that protects CRDs while they have objects."""

_PREFIX = "forbidden by ResourcesProtectionDeletion for "
_ALWAYS = f"{_PREFIX}{DELETE_PROTECTION}=Always"
_CASCADING = f"{_PREFIX}{DELETE_PROTECTION}=Cascading and "
_CRD_VERSIONS = ("v1", "v1beta1")

CascadingReason = Callable[[Json], Awaitable[str]]
"""Returns why an object labelled Cascading must stay, or "" if nothing alive is below it."""

_log = structlog.get_logger()


class CountError(Exception):
    """The objects could not be counted."""


class _Metadata(Model):
    deletion_timestamp: datetime | None = None


class _Status(Model):
    phase: str = ""


class _Phased(Model):
    """An object of a native kind."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


class _Custom(Model):
    """An object of any kind: its status may have any shape."""

    metadata: _Metadata = _Metadata()


_Item = TypeVar("_Item", _Phased, _Custom)


class LiveCounts:
    """Counts of live objects: those of the first page that has any, or 0. Every method raises CountError."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def definition(self, name: str, uid: str) -> Json:
        """Return the stored CRD of this name and uid."""
        try:
            stored = msgspec.json.decode(await self.api.get(CRD, "", name), type=Json)
        except (ApiError, Unreachable, msgspec.MsgspecError, ValueError) as failure:
            raise CountError(str(failure)) from failure
        if member(stored, "metadata").get("uid") != uid:
            raise CountError(f"the CRD {name} has another uid")
        return stored

    async def active_pods(self, namespace: str) -> int:
        """Count the pods of the namespace that are neither finished nor terminating."""
        return await self._count(POD, namespace, _Phased, lambda pod: pod.status.phase not in _FINISHED, _UNFINISHED)

    async def bound_claims(self, namespace: str) -> int:
        """Count the bound claims of the namespace that are not terminating."""
        return await self._count(CLAIM, namespace, _Phased, lambda claim: claim.status.phase == "Bound")

    async def custom_resources(self, group: str, version: str, plural: str) -> int:
        """Count the objects of all namespaces that are not terminating."""
        resource = Resource(group, version, plural, kind="")
        try:
            return await self._count(resource, "", _Custom, lambda one: True, metadata_only=True)
        except CountError as failure:
            if isinstance(failure.__cause__, ApiError) and failure.__cause__.code == 403:
                raise CountError(f"{failure}; {_ALLOW}") from failure
            raise

    async def _count(
        self,
        resource: Resource,
        namespace: str,
        kind: type[_Item],
        counts: Callable[[_Item], bool],
        fields: str = "",
        *,
        metadata_only: bool = False,
    ) -> int:
        decode = msgspec.json.Decoder(kind).decode
        try:
            async with asyncio.timeout(SEARCH_SECONDS):
                async for page in pages(
                    self.api, resource, namespace, field_selector=fields, metadata_only=metadata_only
                ):
                    items = (decode(raw) for raw in page.items)
                    if found := sum(item.metadata.deletion_timestamp is None and counts(item) for item in items):
                        return found
        except TimeoutError as failure:
            raise CountError(f"the search took longer than {SEARCH_SECONDS:g} s") from failure
        except (ApiError, Unreachable, msgspec.MsgspecError) as failure:
            raise CountError(str(failure)) from failure
        return 0


class Protection(msgspec.Struct, frozen=True):
    """The rules, the counts that they need, and the records of refusals."""

    gates: Gates
    counts: LiveCounts
    metrics: Metrics
    record: Callable[[bytes], None]

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of the native kinds, by path."""
        paths: dict[str, Handler] = {
            "/validate-apps-deployment": self.workload,
            "/validate-apps-replicaset": self.workload,
            "/validate-apps-statefulset": self.workload,
            "/validate-namespace": self.namespace,
            "/validate-customresourcedefinition": self.definition,
        }
        if self.gates.on("ResourcesDeletionProtection"):
            paths |= {"/validate-service": self.unrecorded, "/validate-ingress": self.unrecorded}
        return paths

    async def workload(self, request: Request) -> Answer:
        """Check a workload: Cascading refuses while replicas are wanted, regardless of the number of pods."""
        return await self._decide(request, _replicas_wanted, self.metrics.workloads)

    async def namespace(self, request: Request) -> Answer:
        """Check a namespace: Cascading refuses while active pods or bound claims are in it."""
        return await self._decide(request, self._occupied, self.metrics.namespaces)

    async def definition(self, request: Request) -> Answer:
        """Check a CRD: Cascading refuses while custom resources of it exist."""
        if request.kind.version not in _CRD_VERSIONS:
            return ALLOWED
        return await self._decide(request, self._in_use, self.metrics.definitions)

    async def unrecorded(self, request: Request) -> Answer:
        """Check a Service or Ingress: only Always, no metric, no record."""
        return await self._decide(request, None, None)

    async def _decide(
        self, request: Request, cascading: CascadingReason | None, counter: LegacyCounter | None
    ) -> Answer:
        old = request.old_object
        if request.operation != "DELETE" or request.sub_resource or old is None:
            return ALLOWED
        if not isinstance(old.get("metadata"), dict):
            return error(400, "the old object has no metadata")
        if not self.gates.on("ResourcesDeletionProtection") or member(old, "metadata").get("deletionTimestamp"):
            return ALLOWED
        label = strings(member(old, "metadata").get("labels")).get(DELETE_PROTECTION)
        why = _ALWAYS if label == "Always" else ""
        if label == "Cascading" and cascading is not None:
            why = await cascading(old)
        if not why:
            return ALLOWED
        if counter is not None:
            self._count(request, old, counter)
        return error(403, why)

    def _count(self, request: Request, old: Json, counter: LegacyCounter) -> None:
        namespace, name = identity(old, request)
        kind, user = request.kind.kind, request.user_info.username
        series = f"{kind}_{namespace}_{name}" if counter is self.metrics.workloads else name
        counter.count(series, user)
        line = {"Event": "DeletionProtection", "Kind": kind, "Namespace": namespace, "Name": name, "UserAgent": user}
        self.record(msgspec.json.encode(line))

    async def _occupied(self, namespace: Json) -> str:
        name = text(member(namespace, "metadata").get("name"))
        try:
            pods = await self.counts.active_pods(name)
        except CountError as failure:
            return f"{_PREFIX}list pods error: {failure}"
        if pods:
            return f"{_CASCADING}active pods {pods}>0"
        try:
            claims = await self.counts.bound_claims(name)
        except CountError as failure:
            return f"{_PREFIX}list pvc error: {failure}"
        return f'{_CASCADING}"Bound" status pvc {claims}>0' if claims else ""

    async def _in_use(self, definition: Json) -> str:
        if not self.gates.on(CASCADING_CRDS):
            return f"feature-gate {CASCADING_CRDS} is not enabled"
        meta = member(definition, "metadata")
        try:  # never trust the request: any client of the webhook may have made it up
            stored = await self.counts.definition(text(meta.get("name")), text(meta.get("uid")))
        except CountError as failure:
            return f"failed to get the CRD: {failure}"
        spec = member(stored, "spec")
        versions = [text(item.get("name")) for item in mappings(spec.get("versions")) if item.get("storage") is True]
        group, version = text(spec.get("group")), versions[0] if versions else text(spec.get("version"))
        names = member(spec, "names")
        try:
            living = await self.counts.custom_resources(group, version, text(names.get("plural")))
        except CountError as failure:
            return f"failed to list CRs of {group}/{version}, Kind={text(names.get('listKind'))}: {failure}"
        return f"{_CASCADING}active CRs {living}>0" if living else ""


async def _replicas_wanted(workload: Json) -> str:
    replicas = member(workload, "spec").get("replicas")
    wanted = replicas if isinstance(replicas, int) else 0
    return f"{_CASCADING}replicas {wanted}>0" if wanted > 0 else ""


def protection_log(directory: str) -> Callable[[bytes], None]:
    """Return a function that appends the record of a refused deletion to protection.log in the directory (§4).

    Without a directory, it logs the record. Raises OSError when the directory cannot be created.
    """
    if not directory:
        return lambda line: _log.info("deletion refused", record=line.decode())
    path = Path(directory) / "protection.log"
    path.parent.mkdir(parents=True, exist_ok=True)

    def append(line: bytes) -> None:
        with path.open("ab") as file:
            file.write(line + b"\n")

    return append
